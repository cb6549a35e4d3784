"""The end game of Weston and Watkins's machine on few examples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from training import machine

from solvers.core.problem import Problem
from solvers.linear import active_set


def _problem(n: int = 45, d: int = 6, k: int = 5) -> Problem:
    rng, y = np.random.default_rng(0), (np.arange(n) % k).astype(np.int32)
    return Problem.check(sp.csr_matrix(rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y]), y)


def _dual(G: np.ndarray, y: np.ndarray, alpha: np.ndarray) -> float:
    V = -alpha
    V[np.arange(len(y)), y] = alpha.sum(axis=1)
    return float(alpha.sum() - 0.5 * (V * (G @ V)).sum())


def test_the_dual_never_falls_and_the_optimum_is_reached_from_anywhere() -> None:
    problem = _problem(20, 8, 3)
    X, y = problem.X.toarray(), problem.y
    G, bounds = X @ X.T, np.linspace(0.5, 2.0, 20)
    rng = np.random.default_rng(1)
    ends = []
    for share in (0.0, 0.5, 1.0):
        alpha = share * rng.random((20, 3)) * bounds[:, None]
        alpha[np.arange(20), y] = 0.0
        found = active_set.ascend(G, y, bounds, alpha, 1e-10)
        assert (found >= 0.0).all()
        assert (found <= bounds[:, None]).all()
        assert (found[np.arange(20), y] == 0.0).all()
        assert _dual(G, y, found) >= _dual(G, y, alpha)
        ends.append(_dual(G, y, found))
    np.testing.assert_allclose(ends, ends[0], rtol=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_few_examples_are_certified_to_a_ten_millionth(dense: bool) -> None:
    problem = _problem()
    if not dense:
        # as many columns without an entry in most rows keep the rows sparse
        y = problem.y
        X = sp.csr_matrix(sp.hstack([problem.X, sp.random(45, 200, 0.002, random_state=0)]))
        problem = Problem.check(X, y)
    solver = machine("weston_watkins", C=20, tol=1e-7)
    *_, last = solver.steps(problem)
    assert last.converged
    assert last.epoch <= 100  # 990 without the end game


@pytest.mark.slow
def test_rows_that_are_nearly_alike_are_certified_too() -> None:
    X, y = load_iris(return_X_y=True)
    solver = machine("weston_watkins", C=20, tol=1e-7)
    *_, last = solver.steps(Problem.check(sp.csr_matrix(X), y.astype(np.int32)))
    assert last.converged  # at a gap of 0.018 after 1,000 epochs without the end game
