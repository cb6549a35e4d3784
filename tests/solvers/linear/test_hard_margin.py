"""Machines without a regulariser against linear and quadratic programs: least loss, least norm, and separation."""

import json

import cvxpy as cp
import numpy as np
import pytest
from problems import intercept, linear_map, small
from scipy.optimize import linprog

from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem, ProblemError
from solvers.linear import levels
from solvers.registry import SOLVERS, parse_params

LOSSES = ("weston_watkins", "crammer_singer", "lee_lin_wahba")
every_loss = pytest.mark.parametrize("loss", LOSSES)


def trained(problem: Problem, **params):
    method = SOLVERS["hard_margin"](parse_params("hard_margin", {"max_epochs": 20_000} | params))
    *_, last = method.steps(problem)
    return last, method.model(problem, last.state)


def rows_of(problem: Problem, loss: str, bias: float = 0.0):
    """A row for each margin of an example and a wrong class, of the weights (k d,) class by class; and the examples."""
    X, k = problem.X.toarray(), problem.n_classes
    if bias:
        X = np.hstack([X, np.full((len(X), 1), bias)])
    A, example = [], []
    for i, (x, y) in enumerate(zip(X, problem.y, strict=True)):
        for c in range(k):
            if c != y:
                row = np.zeros((k, X.shape[1]))
                row[c] = -x
                if loss != "lee_lin_wahba":
                    row[y] = x
                A.append(row.ravel())
                example.append(i)
    return np.array(A), np.array(example), X.shape[1]


def least_loss(problem: Problem, loss: str, bias: float = 0.0, weights=None) -> float:
    """By HiGHS."""
    A, example, d = rows_of(problem, loss, bias)
    k, m = problem.n_classes, A.shape[1]
    of = example if loss == "crammer_singer" else np.arange(len(A))
    n_slacks = int(of.max()) + 1
    weights = problem.weights if weights is None else weights
    slack_costs = weights if loss == "crammer_singer" else weights[example]
    S = np.zeros((len(A), n_slacks))
    S[np.arange(len(A)), of] = 1.0
    sums = np.hstack([np.tile(np.eye(d), (1, k)), np.zeros((d, n_slacks))])
    found = linprog(
        np.concatenate([np.zeros(m), slack_costs]), A_ub=-np.hstack([A, S]), b_ub=-np.ones(len(A)),
        A_eq=sums, b_eq=np.zeros(d), bounds=[(None, None)] * m + [(0, None)] * n_slacks, method="highs",
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


def least_norm(problem: Problem, loss: str, most: float, bias: float = 0.0, weights=None) -> float:
    """Of all weights of at most that loss; 0 requires margins of at least 1."""
    A, example, d = rows_of(problem, loss, bias)
    k = problem.n_classes
    w = cp.Variable(A.shape[1])
    weights = problem.weights if weights is None else weights
    violations = cp.pos(1 - A @ w)
    if loss == "crammer_singer":
        total = sum(weights[i] * cp.max(violations[np.flatnonzero(example == i)]) for i in range(problem.n_samples))
    else:
        total = weights[example] @ violations
    limits = [A @ w >= 1] if most == 0 else [total <= most]
    if loss == "lee_lin_wahba":
        limits.append(sum(w[c * d : (c + 1) * d] for c in range(k)) == 0)
    task = cp.Problem(cp.Minimize(cp.sum_squares(w)), limits)
    return float(np.sqrt(task.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)))


CASES = {
    "inseparable": {"problem": small()},
    "weighted, with a bias": {"problem": small(n=60, d=5, k=3, seed=2), "bias": 0.5, "class_weight": {"0": 3.0}},
    "separable": {"problem": small(d=60)},
    "text": {"problem": small(n=40, d=200, k=4, seed=3, density=0.05)},
}


@every_loss
@pytest.mark.parametrize("case", CASES)
def test_both_levels_are_those_of_a_linear_and_a_quadratic_program(loss, case):
    problem, params = CASES[case]["problem"], {k: v for k, v in CASES[case].items() if k != "problem"}
    tol, bias = 1e-3, params.get("bias", 0.0)
    weights = np.where(problem.y == 0, params.get("class_weight", {}).get("0", 1.0), 1.0) * problem.weights
    last, model = trained(problem, loss=loss, tol=tol, **params)
    assert last.converged
    report = model.report
    least = least_loss(problem, loss, bias, weights)
    # what is measured is of the model that is handed out
    F = model.scores(problem.X)
    W = np.hstack([linear_map(model), (intercept(model) / bias)[:, None]]) if bias else linear_map(model)
    A, example, _ = rows_of(problem, loss, bias)
    violations = np.maximum(1.0 - A @ W.ravel(), 0.0)
    each = np.zeros(problem.n_samples)
    (np.maximum if loss == "crammer_singer" else np.add).at(each, example, violations)
    assert weights @ each == pytest.approx(report["loss"], rel=1e-8, abs=1e-8)
    assert np.linalg.norm(W) == pytest.approx(report["norm"], rel=1e-8)
    assert F.shape == (problem.n_samples, problem.n_classes)
    assert report["separable"] == float(least < 1e-7)
    assert least * (1 - 1e-8) <= report["loss"] <= least / (1 - tol) + 1e-9
    norm = least_norm(problem, loss, 0.0 if least < 1e-7 else report["loss"], bias, weights)
    assert report["norm_bound"] <= norm * (1 + 1e-6)
    assert norm * (1 - 1e-6) <= report["norm"] <= norm / np.sqrt(1 - tol) * (1 + 1e-6)
    if not report["separable"]:
        assert report["loss_radius"] >= 10.0 * report["norm"]


@every_loss
def test_a_tight_tolerance_ends_at_the_shortest_of_the_minimisers(loss):
    problem = small(n=30, d=4, k=3, seed=5)
    last, model = trained(problem, loss=loss, tol=1e-6)
    assert last.converged
    least = least_loss(problem, loss)
    assert model.report["loss"] == pytest.approx(least, rel=1e-6)
    assert model.report["norm"] == pytest.approx(least_norm(problem, loss, least * (1 + 1e-9)), rel=1e-3)


@every_loss
def test_whether_rows_can_be_separated_is_what_a_linear_program_says(loss):
    verdicts = []
    for seed in range(6):
        problem = small(n=12, d=12 if seed % 2 else 5, k=3, seed=seed)
        _, model = trained(problem, loss=loss)
        verdicts.append(model.report["separable"])
        assert verdicts[-1] == float(least_loss(problem, loss) < 1e-7)
        if verdicts[-1]:
            A, _, _ = rows_of(problem, loss)
            assert (A @ linear_map(model).ravel() >= 1.0 - 1e-12).all()
    assert len(set(verdicts)) == 2


def test_tiny_problems_have_the_solutions_that_paper_gives():
    apart = Problem.check([[1.0], [-2.0]], [0, 1])
    _, model = trained(apart, tol=1e-6)
    assert (model.report["separable"], model.report["norm"]) == (1.0, pytest.approx(np.sqrt(0.5), rel=1e-6))
    # with w_0 - w_1 = t the loss (1 - t)_+ + (1 - 2 t)_+ + (1 + 1.5 t)_+ is least at t = 1/2
    mixed = Problem.check([[1.0], [2.0], [1.5]], [0, 0, 1])
    _, model = trained(mixed, tol=1e-6)
    assert (model.report["separable"], model.report["loss"]) == (0.0, pytest.approx(2.25, rel=1e-6))
    np.testing.assert_allclose(model.coef.ravel(), [0.25, -0.25], rtol=1e-4)


@every_loss
def test_equal_rows_of_two_classes_and_empty_rows_are_contradictions(loss):
    base = small(n=20, d=40, k=3)
    X = np.vstack([base.X.toarray(), base.X.toarray()[:1], np.zeros((2, 40))])
    problem = Problem.check(X, np.concatenate([base.y, [(base.y[0] + 1) % 3], [0, 1]]))
    last, model = trained(problem, loss=loss, tol=1e-3)
    assert last.converged
    assert (model.report["contradictions"], model.report["separable"]) == (4.0, 0.0)
    assert model.report["loss"] == pytest.approx(least_loss(problem, loss), rel=1e-3)
    json.dumps(model.report, allow_nan=False)


@every_loss
def test_bounds_hold_of_any_weights_and_dual_variables(loss):
    rng = np.random.default_rng(0)
    problem = small(n=30, d=6, k=4)
    task = levels.Task(problem.X, problem.y, problem.weights, 4, loss)

    def centred(size: float):
        W = rng.standard_normal((6, 4))
        W -= W.mean(axis=1, keepdims=True)
        return size * W / np.linalg.norm(W)

    for C in (0.1, 1.0, 100.0):
        found = levels.certify(task, centred(2.0), C * rng.uniform(-0.2, 1.2, (30, 4)), C)
        assert found.dual <= found.primal
        for size in (0.1, 1.0, 10.0, 1000.0):
            other = levels.certify(task, centred(size), np.zeros((30, 4)), C)
            assert other.loss >= found.loss_bound(size)
            assert other.loss > found.loss or other.norm >= found.norm_bound


def test_the_units_of_the_features_are_those_of_the_weights():
    problem = small()
    _, model = trained(problem)
    _, scaled = trained(Problem.check(problem.X * 1e-5, problem.y))
    np.testing.assert_allclose(scaled.coef * 1e-5, model.coef, rtol=1e-4, atol=1e-6)
    for name in ("norm", "norm_bound", "separation"):
        assert scaled.report[name] == pytest.approx(1e5 * model.report[name], rel=0.1)


def test_a_model_between_certificates_claims_nothing():
    method = SOLVERS["hard_margin"](parse_params("hard_margin", {"tol": 1e-6}))
    first = next(method.steps(small()))
    assert not first.measures
    assert "loss" not in method.model(small(), first.state).report


def test_what_is_too_large_or_has_no_machine_is_refused():
    with pytest.raises(TooLargeError, match="hard_margin with 3,000 examples"):
        next(iter(SOLVERS["hard_margin"](parse_params("hard_margin", {"memory_mb": 1})).steps(small(n=3000))))
    with pytest.raises(ProblemError, match="names 1 label that no training row has"):
        next(iter(SOLVERS["hard_margin"](parse_params("hard_margin", {"class_weight": {"x": 1}})).steps(small())))


# of the first, block ascent has to change dual variables by less than 1e-12 of them
@every_loss
@pytest.mark.parametrize("tol", [1e-7, 1e-9])
def test_a_tolerance_near_the_precision_ends_certified_or_says_that_no_more_is_to_be_had(loss, tol):
    for problem in (small(n=30, d=4, k=3, seed=5), small(d=60)):
        last, model = trained(problem, loss=loss, tol=tol, max_epochs=10_000)
        assert last.epoch < 1_000
        assert last.converged or model.report["exhausted"] == 1.0
        assert last.converged or not model.report["separable"]
        # what is certified is as good as the precision allows
        gap = 1.0 - (model.report["norm_bound"] / model.report["norm"]) ** 2
        assert gap <= 1e-5


def test_block_ascent_certifies_the_least_norm_at_the_tolerance_that_float64_allows():
    last, model = trained(small(n=30, d=4, k=3, seed=5), tol=1e-7)
    assert last.converged
    assert "exhausted" not in model.report


def test_what_is_not_certified_is_named_with_a_way_out():
    uncertified = SOLVERS["hard_margin"].uncertified
    problem = small(n=30, d=4, k=3, seed=5)
    params = {"tol": 1e-9, "loss": "lee_lin_wahba"}
    _, model = trained(problem, **params)
    assert model.report["exhausted"] == 1.0
    reason = uncertified(params, model.report)
    assert reason.startswith("Not certified: the least norm (at least ")
    assert reason.endswith("Float64 resolves no more on these rows: raise tol.")
    method = SOLVERS["hard_margin"](parse_params("hard_margin", params | {"max_epochs": 6}))
    *_, last = method.steps(problem)
    reason = uncertified(params, method.model(problem, last.state).report)
    assert "the least loss (only among weights of length" in reason
    assert reason.endswith("use loss=crammer_singer, a larger tol, or lee_lin_wahba with a C of your choice.")
    assert uncertified(params, {}) is None
