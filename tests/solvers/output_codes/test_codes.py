"""Code matrices, decoding, and columns for given classifiers."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.output_codes import codes
from solvers.output_codes.code_families import FAMILIES, make, most_columns
from solvers.output_codes.codes import (
    CodeError,
    best_first_column,
    check,
    closest_rows,
    column_distances,
    decode,
    expected_error,
    greedy_code,
    next_column,
    row_distances,
)

LOSSES = {
    "hinge": lambda z: max(0.0, 1.0 - z),
    "squared_hinge": lambda z: max(0.0, 1.0 - z) ** 2,
    "exponential": lambda z: np.exp(-z),
    "logistic": lambda z: np.log(1.0 + np.exp(-2.0 * z)),
}


def samples(most: int):
    """Labels of up to ``most`` classes, each with an example, and the answers of a classifier."""
    return st.integers(2, most).flatmap(
        lambda k: st.lists(st.tuples(st.integers(0, k - 1), st.sampled_from([-1, 1])), min_size=1, max_size=40).map(
            lambda rows: (k, np.array([row[0] for row in rows]), np.array([row[1] for row in rows]))
        )
    )


def every_column(k: int):
    """All columns with two sides."""
    for signs in itertools.product([-1, 1], repeat=k):
        if abs(sum(signs)) < k:
            yield np.array(signs)


@given(samples(10))
@settings(max_examples=40, deadline=None)
def test_the_first_column_is_the_best_of_all(sample):
    k, y, h = sample
    column, error = best_first_column(h, y, k)
    assert sorted(set(column.tolist())) == [-1, 1]
    assert error == pytest.approx(expected_error(h[:, None], y, column[:, None]), abs=1e-12)
    columns = np.array(list(every_column(k)))
    right = columns[:, y] == h
    sides = (h[None, :] * columns.sum(axis=1)[:, None] + k) / 2
    assert error == pytest.approx((1 - (right / sides).mean(axis=1)).min(), abs=1e-12)


@given(samples(6))
@settings(max_examples=40, deadline=None)
def test_the_expected_error_is_the_mean_over_all_ways_to_break_ties(sample):
    k, y, h = sample
    column = best_first_column(h, y, k)[0]
    wrong = 0.0
    for label, answer in zip(y, h, strict=True):
        scores = [answer * entry for entry in column]
        winners = [r for r in range(k) if scores[r] == max(scores)]
        wrong += np.mean([r != label for r in winners])
    assert expected_error(h[:, None], y, column[:, None]) == pytest.approx(wrong / len(y), abs=1e-12)


def test_the_largest_case_of_theorem_one_takes_no_time():
    rng = np.random.default_rng(0)
    y, h = rng.integers(0, 400, 100_000), rng.choice([-1, 1], 100_000)
    column, error = best_first_column(h, y, 400)
    assert error == pytest.approx(expected_error(h[:, None], y, column[:, None]))
    assert error < 1 - 1 / 400


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_a_greedy_column_is_a_local_best_and_never_harms(seed):
    rng = np.random.default_rng(seed)
    k, n, t = int(rng.integers(2, 6)), 40, int(rng.integers(1, 4))
    y, h = rng.integers(0, k, n), rng.choice([-1, 1], (n, t + 1))
    code = rng.choice([-1, 0, 1], (k, t))
    column, error = next_column(h[:, :t], y, code, h[:, t])
    whole = np.column_stack([code, column])
    assert error == pytest.approx(expected_error(h, y, whole), abs=1e-12)
    assert error <= expected_error(h[:, :t], y, code) + 1e-12
    for r in range(k):
        other = whole.copy()
        other[r, -1] *= -1
        assert expected_error(h, y, other) >= error - 1e-9


def test_a_greedy_code_gets_better_with_every_column_and_may_miss_the_best():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 6, 300)
    truth = np.array(list(every_column(6)))[rng.choice(62, 5, replace=False)]
    h = truth[:, y].T * rng.choice([1, 1, 1, 1, -1], (300, 5))
    code, errors = greedy_code(h, y, 6)
    assert code.shape == (6, 5)
    assert (np.diff(errors) <= 1e-12).all()
    assert errors[-1] == pytest.approx(expected_error(h, y, code))
    assert errors[0] == best_first_column(h[:, 0], y, 6)[1]
    assert errors[-1] < 0.6 * errors[0]


def test_answers_other_than_minus_and_plus_one_are_refused():
    with pytest.raises(CodeError, match=r"-1 and \+1"):
        best_first_column(np.array([0, 1]), np.array([0, 1]), 2)
    with pytest.raises(CodeError, match="one of each an example"):
        best_first_column(np.array([1, 1]), np.array([0]), 2)
    with pytest.raises(CodeError, match="at least two classes"):
        best_first_column(np.array([1]), np.array([0]), 1)


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
    with pytest.raises(ValueError, match="no decoding"):
        decode(h, np.array([[1, 1], [-1, 1]]), "chance")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [2, 3, 5, 11, 26])
def test_every_family_makes_valid_codes_without_twin_columns(family, k):
    if family == "exhaustive" and k > 11:
        return
    code = make(family, k, seed=1)
    assert code.dtype == np.int8
    np.testing.assert_array_equal(check(code), code)
    np.testing.assert_array_equal(make(family, k, seed=1), code)
    if code.shape[1] > 1:
        apart = column_distances(code)[np.triu_indices(code.shape[1], 1)]
        assert apart.min() > 0
    if k == 2:
        assert code.ravel().tolist() == [-1, 1]


def test_the_families_have_the_shapes_of_the_literature():
    assert make("one_vs_rest", 6).tolist() == (2 * np.eye(6, dtype=int) - 1).tolist()
    assert make("all_pairs", 6).shape == (6, 15)
    assert (np.abs(make("all_pairs", 6)).sum(axis=0) == 2).all()
    assert make("exhaustive", 6).shape == (6, 31)
    assert make("dense_random", 26).shape == (26, 48)
    assert make("sparse_random", 26).shape == (26, 71)
    assert make("dense_random", 26, 20).shape == (26, 20)
    assert make("dense_random", 4, 100).shape == (4, 7)
    share = (make("sparse_random", 100) == 0).mean()
    assert 0.4 < share < 0.6
    assert not np.array_equal(make("dense_random", 26, seed=1), make("dense_random", 26, seed=2))


def test_exhaustive_holds_every_split_once():
    code = make("exhaustive", 5)
    splits = {tuple(column) for column in code.T} | {tuple(-column) for column in code.T}
    assert splits == {tuple(column) for column in every_column(5)}


@pytest.mark.parametrize(
    ("k", "columns", "least"), [(26, 63, 31), (60, 63, 31), (26, 31, 15), (16, 15, 7), (100, 127, 63)]
)
def test_words_of_bch_codes_keep_their_distance(k, columns, least):
    code = make("bch", k, columns)
    assert code.shape[0] == k
    assert code.shape[1] >= columns - 5
    distances = row_distances(code)[np.triu_indices(k, 1)]
    assert distances.min() >= least - (columns - code.shape[1])


def test_random_codes_are_chosen_for_the_distance_of_their_rows():
    rng = np.random.default_rng(0)
    chosen = row_distances(make("dense_random", 20))[np.triu_indices(20, 1)].min()
    drawn = [row_distances(rng.choice([-1, 1], (20, 44)))[np.triu_indices(20, 1)].min() for _ in range(50)]
    assert chosen > np.median(drawn)


def test_the_closest_rows_are_found_a_few_rows_at_a_time(monkeypatch):
    code = np.random.default_rng(0).choice([-1, 0, 1], (40, 9)).astype(np.int8)
    distances = row_distances(code)[np.triu_indices(40, 1)]
    expected = distances.min(), np.count_nonzero(distances == distances.min())
    for size in (1, 7, 1000):
        monkeypatch.setattr("solvers.output_codes.codes.CHUNK_BYTES", 4 * 40 * size)
        assert closest_rows(code) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [3, 5, 11])
def test_how_many_columns_there_will_be_is_known_before_a_code_is_made(family, k):
    for columns in (None, 20) if family in ("dense_random", "sparse_random", "bch") else (None,):
        made = make(family, k, columns).shape[1]
        assert made <= most_columns(family, k, columns)
        assert most_columns(family, k, columns) <= max(64, 2 * made)


def test_distances_are_their_definitions():
    rng = np.random.default_rng(0)
    code = rng.choice([-1, 0, 1], (6, 9))
    rows, columns = row_distances(code), column_distances(code)
    for r, s in itertools.combinations(range(6), 2):
        assert rows[r, s] == rows[s, r] == sum((1 - a * b) / 2 for a, b in zip(code[r], code[s], strict=True))
    for t, u in itertools.combinations(range(9), 2):
        either = [sum((1 - a * b) / 2 for a, b in zip(code[:, t], sign * code[:, u], strict=True)) for sign in (1, -1)]
        assert columns[t, u] == min(either)
    assert not rows.diagonal().any()
    real = rng.standard_normal((4, 3))
    assert row_distances(real)[0, 1] == pytest.approx(np.linalg.norm(real[0] - real[1]))
    nearest = min(np.linalg.norm(real[:, 0] - real[:, 1]), np.linalg.norm(real[:, 0] + real[:, 1]))
    assert column_distances(real)[0, 1] == pytest.approx(nearest)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ([[1, -1], [1, -1], [-1, 1]], "rows of classes 'a' and 'b' are equal"),
        ([[1, 1], [1, -1], [1, 0]], "no class on one of their sides: 0"),
        ([[1, 0], [-1, 1], [0, 1]], "no class on one of their sides: 1"),
        ([[1, 1], [0, 0], [-1, -1]], "row of class 'b' is zero"),
        ([[1, 1], [-1, 1]], "2 rows; there are 3 classes"),
        ([[1, 2], [-1, 1], [1, -1]], "2 was given"),
        ([[1, 1], [-1], [1, -1]], "differ in length"),
        ([1, -1, 1], "two rows and one column"),
        ([[1, float("nan")], [-1, 1], [1, -1]], "nan was given"),
    ],
)
def test_matrices_that_are_no_codes_are_refused_with_the_reason(code, fault):
    with pytest.raises(CodeError, match=fault):
        check(code, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("family", "k", "columns", "fault"),
    [
        ("exhaustive", 12, None, "2047 columns; at most 11 classes"),
        ("one_vs_rest", 5, 7, "follows from that of the classes"),
        ("dense_random", 1, None, "at least two classes"),
        ("dense_random", 5, 0, "at least one column"),
        ("dense_random", 40, 5, "told all 40 classes apart"),
        ("bch", 5, 5000, "at most 4095"),
        ("hadamard", 5, None, "known are one_vs_rest"),
    ],
)
def test_codes_that_do_not_exist_are_refused_with_the_reason(family, k, columns, fault):
    with pytest.raises(CodeError, match=fault):
        make(family, k, columns)


@pytest.mark.parametrize("how", ["inner_product", "votes", "hamming", "loss"])
def test_many_classes_are_decoded_in_parts(how, monkeypatch):
    code, h = make("sparse_random", 23), np.random.default_rng(0).standard_normal((9, 68))
    whole = codes.decode(h, code, how)
    monkeypatch.setattr(codes, "CHUNK_BYTES", 8 * 5 * 68)
    np.testing.assert_allclose(codes.decode(h, code, how), whole, rtol=1e-12)


def test_many_classes_take_no_more_memory_than_a_part_of_them(monkeypatch):
    code = make("one_vs_rest", 2000)
    monkeypatch.setattr(codes, "CHUNK_BYTES", 1 << 19)
    tracemalloc.start()
    try:
        assert codes.closest_rows(code) == (2.0, 2000 * 1999 // 2)
        codes.decode(np.ones((1, 2000)), code)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20 < 8 * code.size
    finally:
        tracemalloc.stop()
