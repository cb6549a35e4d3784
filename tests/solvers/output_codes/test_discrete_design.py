"""Columns of -1 and +1 for given classifiers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.output_codes.codes import CodeError
from solvers.output_codes.design.discrete import best_first_column, expected_error, greedy_code, next_column


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
    with pytest.raises(CodeError, match="expected one of each per example"):
        best_first_column(np.array([1, 1]), np.array([0]), 2)
    with pytest.raises(CodeError, match="at least two classes"):
        best_first_column(np.array([1]), np.array([0]), 1)
