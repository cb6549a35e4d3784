"""Proximal steps on all dual variables, where dense rows have few features."""

import numpy as np
import pytest
import scipy.sparse as sp
from training import machine

from solvers.core.problem import Problem
from solvers.linear import augmented_lagrangian

MACHINES = {"weston_watkins": False, "crammer_singer": True}


def _problem(n: int = 60, d: int = 5, k: int = 4) -> Problem:
    rng, y = np.random.default_rng(0), (np.arange(n) % k).astype(np.int32)
    return Problem.check(sp.csr_matrix(4.0 * (rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y])), y)


def _bounds(X, y, bounds, alpha, W, largest):
    """Objective of W and dual value of alpha."""
    at, V = np.arange(len(y)), -alpha
    V[at, y] = alpha.sum(axis=1)
    F = X @ W
    Z = np.maximum(1.0 - F[at, y][:, None] + F, 0.0)
    Z[at, y] = 0.0
    primal = 0.5 * (W**2).sum() + bounds @ (Z.max(axis=1) if largest else Z.sum(axis=1))
    return float(primal), float(alpha.sum() - 0.5 * ((X.T @ V) ** 2).sum())


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_dual_never_falls_and_the_optimum_is_reached_from_anywhere(largest: bool, share: float) -> None:
    problem = _problem()
    X, y, n = problem.X.toarray(), problem.y, problem.n_samples
    bounds, rng = np.linspace(0.5, 2.0, n), np.random.default_rng(1)
    alpha = share * rng.random((n, 4)) * bounds[:, None]
    alpha[np.arange(n), y] = 0.0
    found, W = augmented_lagrangian.ascend(X, y, bounds, alpha, 1e-9, largest=largest)
    assert (found >= 0.0).all()
    assert ((found.sum(axis=1) if largest else found.max(axis=1)) <= bounds * (1 + 1e-12)).all()
    assert (found[np.arange(n), y] == 0.0).all()
    primal, dual = _bounds(X, y, bounds, found, W, largest)
    assert dual >= _bounds(X, y, bounds, alpha, W, largest)[1]
    assert abs(primal - dual) <= 1e-8 * primal


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_long_dense_rows_are_certified_within_a_few_epochs(name: str, tol: float) -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 4).astype(np.int32)
    X = 20.0 * (rng.normal(size=(400, 6)) + rng.normal(size=(4, 6))[y])
    problem = Problem.check(sp.csr_matrix(X), y)
    solver = machine(name, tol=tol)
    *_, last = solver.steps(problem)
    assert last.converged
    assert last.epoch <= 20  # hundreds, or more than a thousand, by passes alone
    W, at = solver.model(problem, last.state).W, np.arange(400)
    F = X @ W
    Z = np.maximum(1.0 - F[at, y][:, None] + F, 0.0)
    Z[at, y] = 0.0
    primal = 0.5 * (W.astype(float) ** 2).sum() + (Z.max(axis=1) if MACHINES[name] else Z.sum(axis=1)).sum()
    np.testing.assert_allclose(primal, last.primal, rtol=1e-4 if tol > 1e-4 else 1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_a_run_goes_on_to_a_smaller_gap_from_weights_that_the_dual_variables_do_not_make(name: str) -> None:
    problem = _problem(400, 6, 4)
    first = machine(name, tol=1e-2, dtype="float64", C=100)
    *_, last = first.steps(problem)
    assert last.converged
    dual, steps = last.dual, machine(name, tol=1e-6, C=100).steps(problem, last.state)
    for step in steps:
        if np.isfinite(step.dual):
            assert step.dual >= dual - 1e-9 * abs(dual)
            dual = step.dual
    assert step.converged


def test_many_weights_or_little_memory_are_left_to_passes() -> None:
    assert augmented_lagrangian.suits(15_000, 16, 26, 1 << 30)
    assert not augmented_lagrangian.suits(15_000, 64, 26, 1 << 30)
    assert not augmented_lagrangian.suits(10_000_000, 16, 26, 1 << 40)
    assert not augmented_lagrangian.suits(15_000, 16, 26, 1 << 20)
