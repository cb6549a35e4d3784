"""Scores of the classes from the margins of the columns."""

import itertools
import tracemalloc

import numpy as np
import pytest

from solvers.output_codes import codes
from solvers.output_codes.code_families import make
from solvers.output_codes.codes import closest_rows
from solvers.output_codes.decoding import decode

LOSSES = {
    "hinge": lambda z: max(0.0, 1.0 - z),
    "squared_hinge": lambda z: max(0.0, 1.0 - z) ** 2,
    "exponential": lambda z: np.exp(-z),
    "logistic": lambda z: np.log(1.0 + np.exp(-2.0 * z)),
}


@pytest.mark.parametrize("how", ["inner_product", "hamming", "loss"])
@pytest.mark.parametrize("kind", ["ternary", "continuous"])
def test_decoding_is_its_definition(how, kind):
    rng = np.random.default_rng(1)
    code = rng.choice([-1, 0, 1], (5, 7)) if kind == "ternary" else rng.standard_normal((5, 7))
    h = 2 * rng.standard_normal((20, 7))
    h[0, :3] = 0.0
    for loss, of in LOSSES.items():
        scores = decode(h, code, how, loss)
        for i, r in itertools.product(range(20), range(5)):
            products = [code[r, t] * h[i, t] for t in range(7)]
            if how == "inner_product":
                expected = sum(products)
            elif how == "hamming":
                expected = -sum((1 - np.sign(product)) / 2 for product in products)
            else:
                expected = -sum(of(product) for product in products)
            assert scores[i, r] == pytest.approx(expected, abs=1e-9)


def test_extreme_margins_leave_finite_scores_and_an_unknown_decoding_is_refused():
    h = np.array([[1e9, -1e9]])
    for loss in LOSSES:
        assert np.isfinite(decode(h, np.array([[1, 1], [-1, 1]]), "loss", loss)).all()
    with pytest.raises(ValueError, match="unknown decoding"):
        decode(h, np.array([[1, 1], [-1, 1]]), "chance")


@pytest.mark.parametrize("how", ["inner_product", "votes", "hamming", "loss"])
def test_many_classes_are_decoded_in_parts(how, monkeypatch):
    code, h = make("sparse_random", 23), np.random.default_rng(0).standard_normal((9, 68))
    whole = decode(h, code, how)
    monkeypatch.setattr(codes, "CHUNK_BYTES", 8 * 5 * 68)
    np.testing.assert_allclose(decode(h, code, how), whole, rtol=1e-12)


def test_many_classes_take_no_more_memory_than_a_part_of_them(monkeypatch):
    code = make("one_vs_rest", 800)
    monkeypatch.setattr(codes, "CHUNK_BYTES", 1 << 17)
    tracemalloc.start()
    try:
        assert closest_rows(code) == (2.0, 800 * 799 // 2)
        decode(np.ones((1, 800)), code)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20 < 8 * code.size
    finally:
        tracemalloc.stop()
