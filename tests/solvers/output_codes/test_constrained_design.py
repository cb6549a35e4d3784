"""Continuous codes with a bounded norm, and with a hard margin, against a generic solver of the programs."""

import cvxpy as cp
import numpy as np
import pytest
from problems import small
from training import fitted, machine

from solvers.core.base import ParamsError
from solvers.core.problem import Problem, ProblemError
from solvers.registry import SOLVERS, parse_params

norms = pytest.mark.parametrize(
    "norm", ["l2", pytest.param("l1", marks=pytest.mark.slow), pytest.param("linf", marks=pytest.mark.slow)]
)


def trained(problem: Problem, **params):
    return fitted(machine("continuous_code", **({"inputs": "features"} | params)), problem)


def of_generic_solver(problem: Problem, norm: str, radius: float | None):
    """The least losses with the norm at most the radius, or the least norm (half its square for l2) without a loss."""
    X, y, k = problem.X.toarray(), problem.y, problem.n_classes
    M = cp.Variable((k, X.shape[1]))
    F, own = X @ M.T, np.eye(k)[y]
    right = cp.sum(cp.multiply(F, own), axis=1, keepdims=True) @ np.ones((1, k))
    violations = cp.multiply(1 - right + F, 1 - own)
    size = {"l1": cp.sum(cp.abs(M)), "l2": cp.norm(M, "fro"), "linf": cp.max(cp.abs(M))}[norm]
    if radius is None:
        objective = 0.5 * cp.sum_squares(M) if norm == "l2" else size
        task = cp.Problem(cp.Minimize(objective), [violations <= 0])
    else:
        losses = problem.weights @ cp.pos(cp.max(violations, axis=1))
        task = cp.Problem(cp.Minimize(losses), [size <= radius])
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return float(value)


def separated() -> Problem:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    return Problem.check(np.eye(3)[y] + 0.1 * rng.standard_normal((30, 3)), y)


@norms
@pytest.mark.parametrize("radius", [0.3, pytest.param(2.0, marks=pytest.mark.slow)])
def test_the_least_losses_within_a_norm_are_found(norm: str, radius: float) -> None:
    plain = small(n=40, d=6, k=4)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    problem = Problem.check(plain.X, plain.y, plain.classes, weights)
    value = of_generic_solver(problem, norm, radius)
    last, model = trained(problem, norm=norm, program="norm", radius=radius, tol=1e-4)
    assert last.converged
    assert last.dual <= value * (1 + 1e-6)
    assert value * (1 - 1e-6) <= last.primal <= value * (1 + 2e-4)
    size = {"l1": np.abs(model.coef).sum(), "l2": np.linalg.norm(model.coef), "linf": np.abs(model.coef).max()}[norm]
    assert size <= radius * (1 + 1e-6)


@norms
def test_the_least_norm_without_a_loss_is_found(norm: str) -> None:
    problem = separated()
    value = of_generic_solver(problem, norm, None)
    last, model = trained(problem, norm=norm, program="hard", tol=1e-4)
    assert last.converged
    assert last.dual <= value * (1 + 1e-6)
    assert value * (1 - 1e-6) <= last.primal <= value * (1 + 2e-4)
    F = model.scores(problem.X)
    leads = F[np.arange(30), problem.y][:, None] - F
    leads[np.arange(30), problem.y] = np.inf
    assert leads.min() >= 1 - 1e-5


@pytest.mark.slow
def test_a_ball_that_holds_a_separating_code_has_no_loss() -> None:
    last, _ = trained(separated(), program="norm", radius=100.0, tol=1e-4)
    assert last.converged
    assert last.primal == last.dual == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_examples_that_no_code_separates_have_no_hard_margin() -> None:
    problem = Problem.check(np.ones((4, 2)), [0, 1, 0, 1])
    with pytest.raises(ProblemError, match="no code separates"):
        trained(problem, program="hard", tol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("params", [{"program": "norm", "radius": 0.3}, {"program": "hard"}])
def test_a_search_goes_on_anywhere_with_the_same_bits(params) -> None:
    problem = separated()
    given = parse_params("continuous_code", {"inputs": "features", "tol": 1e-3} | params)
    method = SOLVERS["continuous_code"](given)
    kept, expected = [], []
    for step in method.steps(problem):
        kept.append({name: np.array(array) for name, array in step.state.items()})
        expected.append((step.epoch, step.primal, step.dual))
    for place in {0, len(kept) // 2, len(kept) - 2}:
        rest = [(step.epoch, step.primal, step.dual) for step in method.steps(problem, kept[place])]
        np.testing.assert_array_equal(rest[-1], expected[-1])


@pytest.mark.parametrize(
    "params", [{"program": "hard", "kernel": "rbf"}, {"program": "norm", "incremental": True}, {"radius": 0.0}]
)
def test_what_does_not_go_with_a_constraint_is_refused(params) -> None:
    with pytest.raises(ParamsError):
        parse_params("continuous_code", params)
