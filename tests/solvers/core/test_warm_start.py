"""Dual variables of one training as the start of another: feasible, carried by row and class, to the same optimum."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from training import machine

from solvers.core.base import Solver, Step
from solvers.core.dual_variables import DualShares
from solvers.core.problem import Problem, ProblemError
from solvers.registry import SOLVERS

WARM = sorted(name for name, method in SOLVERS.items() if method.starts_warm)


def _solver(name: str, **params: Any) -> Solver[Any]:
    return machine(name, **({"tol": 1e-4, "dtype": "float64"} | params))


def _last(solver: Solver[Any], problem: Problem, start: Any = None) -> Step:
    *_, last = solver.steps(problem, start)
    return last


def _rows(n: int, n_features: int, labels: list[str], seed: int = 0) -> tuple[sp.csr_matrix, list[str]]:
    random = np.random.default_rng(seed)
    X = sp.random(n, n_features, density=0.3, format="csr", random_state=random, data_rvs=random.standard_normal)
    return X, [labels[i % len(labels)] for i in range(n)]


def _problem(X: sp.csr_matrix, y: list[str]) -> Problem:
    classes, index = np.unique(y, return_inverse=True)
    return Problem.check(X, index, [str(name) for name in classes])


def _grown(n_old: int = 60) -> tuple[Problem, Problem, np.ndarray]:
    """A problem; one with new rows before, a new class that sorts first, a new feature and two changed labels."""
    X, y = _rows(n_old, 12, ["b", "c", "d"])
    more, new = _rows(12, 13, ["a", "b", "c"], seed=1)
    wider = sp.csr_matrix(sp.vstack([more, sp.hstack([X, sp.csr_matrix((n_old, 1))])]))
    changed = ["b" if i in (1, 2) else label for i, label in enumerate(y)]
    former = np.concatenate([np.full(12, -1), np.arange(n_old)])
    return _problem(X, y), _problem(wider, new + changed), former


def test_the_machines_that_begin_from_dual_variables() -> None:
    assert WARM == ["crammer_singer", "weston_watkins"]


@pytest.mark.parametrize("name", WARM)
@pytest.mark.parametrize("changes", [{}, {"C": 2.0}, {"C": 0.1}, {"class_weight": "balanced"}, {"bias": 1.0}])
def test_from_dual_variables_the_optimum_of_all_rows_is_reached(name: str, changes: dict[str, Any]) -> None:
    old, new, former = _grown()
    before = _solver(name)
    state = _last(before, old).state
    shares = DualShares(before.dual_shares(old, state), old.y, old.classes)
    solver = _solver(name, **changes)
    warm = _last(solver, new, solver.warm(new, shares.onto(new, former)))
    cold = _last(solver, new)
    assert warm.converged
    assert warm.gap <= 1e-4
    assert warm.primal == pytest.approx(cold.primal, rel=3e-4)
    assert max(warm.dual, cold.dual) <= min(warm.primal, cold.primal)


@pytest.mark.parametrize("name", WARM)
def test_from_its_own_solution_a_training_is_over_at_once(name: str) -> None:
    old, _, _ = _grown()
    solver = _solver(name, tol=1e-3)
    state = _last(_solver(name), old).state
    shares = DualShares(solver.dual_shares(old, state), old.y, old.classes)
    again = _last(solver, old, solver.warm(old, shares.onto(old, np.arange(old.n_samples))))
    assert again.epoch <= 2
    assert again.gap <= 1e-3


@pytest.mark.parametrize("name", WARM)
def test_shares_are_of_the_bounds_and_survive_a_change_of_columns(name: str) -> None:
    old, new, former = _grown()
    solver = _solver(name, class_weight="balanced")
    shares = DualShares(solver.dual_shares(old, _last(solver, old).state), old.y, old.classes)
    found = shares.onto(new, former)
    assert found.shape == (new.n_samples, new.n_classes)
    assert (found.data > 0).all()
    assert found.data.max() <= 1 + 1e-6
    assert found[:12].nnz == 0  # new rows
    assert found[[13, 14]].nnz == 0  # rows with another label
    assert found[:, 0].nnz == 0  # a new class
    np.testing.assert_array_equal(found[15:].toarray()[:, 1:], shares.shares[3:].toarray())
    if name == "crammer_singer":
        assert found.sum(axis=1).max() <= 1 + 1e-5


def test_a_method_without_dual_variables_refuses() -> None:
    old, _, _ = _grown()
    solver = machine("centroids")
    with pytest.raises(ProblemError, match="centroids"):
        solver.dual_shares(old, {})
