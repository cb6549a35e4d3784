"""Rows answered by ridge regression on the others: as if each was left out, and compared row by row."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.labels.label_sets import closed
from solvers.labels.taxonomy import Taxonomy
from solvers.selection.row_losses import Gain, gain, row_losses, some_rows

N, K, D = 60, 3, 5


def made(noise: float) -> Problem:
    rng = np.random.default_rng(4)
    y = rng.integers(K, size=N).astype(np.int32)
    X = rng.normal(size=(K, D))[y] + noise * rng.normal(size=(N, D))
    return Problem.check(X / np.linalg.norm(X, axis=1, keepdims=True), y, tuple("abc"))


def as_sets(problem: Problem) -> Problem:
    tree = Taxonomy.flat(tuple("abc"))
    nodes = np.array([tree.names.index(problem.classes[label]) for label in problem.y])
    labels, _ = closed(tree, np.arange(N + 1), nodes)
    return Problem.check_sets(problem.X, sp.csr_matrix(labels, dtype=bool), tree)


def test_each_row_is_answered_by_a_regression_without_it() -> None:
    problem = made(0.7)
    X, Y = problem.X.toarray(), np.eye(K)[problem.y]
    mu = float((X**2).sum() / N)
    ranks = []
    for row in range(N):
        others = np.arange(N) != row
        W = np.linalg.solve(X[others].T @ X[others] + mu * np.eye(D), X[others].T @ Y[others])
        scores = X[row] @ W
        ranks.append(1 + int((scores > scores[problem.y[row]]).sum()))
    expected = 1.0 - 1.0 / np.log2(1.0 + np.array(ranks))
    np.testing.assert_allclose(row_losses(as_sets(problem)), expected, rtol=1e-12)


@pytest.mark.parametrize("sets", [False, True])
def test_features_with_less_noise_have_a_clear_gain_and_their_own_have_none(sets: bool) -> None:
    good, bad = (row_losses(as_sets(each) if sets else each) for each in (made(0.2), made(3.0)))
    assert gain(good, bad).is_clear
    assert not gain(bad, good).is_clear
    assert gain(good, good) == Gain(0.0, 0.0)
    assert not gain(good, good).is_clear


def test_rows_of_zeros_and_labels_of_one_row_have_a_loss() -> None:
    X = sp.csr_matrix(np.vstack([np.zeros((2, 2)), np.eye(2), np.eye(2)]))
    losses = row_losses(Problem.check(X, np.array([0, 1, 0, 1, 0, 2], np.int32), tuple("abc")))
    assert np.isfinite(losses).all()
    assert losses.shape == (6,)


def test_many_rows_are_thinned_alike_each_time() -> None:
    assert some_rows(100).tolist() == list(range(100))
    first, second = some_rows(5000), some_rows(5000)
    assert first.tolist() == second.tolist()
    assert len(first) == 2000
