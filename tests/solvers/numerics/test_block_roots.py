"""Roots of the equations of a block: each solves its equation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.numerics.block_roots import box_root, boxes_root, simplex_root, weighted_simplex_root

values = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12).map(np.array)
bounds = st.sampled_from([1e-3, 0.1, 1.0, 50.0, 1e6])


@settings(deadline=None, max_examples=300, derandomize=True)
@given(values, bounds, st.booleans(), st.floats(-10, 10))
def test_box_root_solves_its_equation(b, bound, shared, start):
    gamma = 1.0 if shared else -1.0 / (len(b) + 1)
    S = box_root(b, len(b), bound, gamma, start)
    assert np.clip(b - gamma * S, 0, bound).sum() == pytest.approx(S, abs=1e-11 * max(1.0, np.abs(b).max() * len(b)))


@settings(deadline=None, max_examples=300, derandomize=True)
@given(values, bounds)
def test_simplex_root_solves_its_equation(b, bound):
    theta = simplex_root(b, len(b), bound)
    total = np.maximum(b - theta, 0).sum()
    assert total == pytest.approx(min(theta, bound), abs=1e-11 * max(1.0, np.abs(b).max() * len(b)))


weighted = st.lists(
    st.tuples(st.floats(-1e3, 1e3), st.sampled_from([0.0, 1e-3, 0.5, 1.0, 7.0, 1e4])), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(weighted, bounds, st.floats(-10, 10))
def test_boxes_root_solves_its_equation(entries, bound, start):
    b, weights = np.array(entries).T
    S = boxes_root(b, weights, len(b), bound, start)
    assert np.clip(b - S, 0, bound * weights).sum() == pytest.approx(S, abs=1e-11 * max(1.0, np.abs(b).max() * len(b)))


@settings(deadline=None, max_examples=300, derandomize=True)
@given(weighted, bounds)
def test_weighted_simplex_root_satisfies_the_conditions_of_the_optimum(entries, bound):
    b, weights = np.array(entries).T
    S, mu = weighted_simplex_root(b, weights, len(b), bound)
    some = weights > 0
    b, weights = b[some], weights[some]
    a = np.maximum(b - S - mu / weights, 0.0)
    scale = max(1.0, np.abs(b).max(initial=0.0) * len(b))
    assert a.sum() == pytest.approx(S, abs=1e-11 * scale)
    # a part of what rounding makes of the largest term
    used, allowed = (a / weights).sum(), 1e-10 * scale / weights.min(initial=1.0)
    assert used <= bound + allowed
    assert mu >= 0.0
    assert mu == 0.0 or used == pytest.approx(bound, abs=allowed)


def test_equal_weights_make_the_roots_those_without():
    rng = np.random.default_rng(0)
    for bound in (0.1, 1.0, 10.0):
        b, ones = rng.normal(size=9) * 3.0, np.ones(9)
        S, mu = weighted_simplex_root(b, ones, 9, bound)
        assert S + mu == pytest.approx(simplex_root(b, 9, bound), rel=1e-12)
        assert boxes_root(b, ones, 9, bound, 0.0) == pytest.approx(box_root(b, 9, bound, 1.0, 0.0), rel=1e-12)
