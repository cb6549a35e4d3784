"""Answers that are certain are those of the exact optimum, and training can end as soon as they are."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.base import Solver, Step
from solvers.core.certain_answers import Reach, certain, radius
from solvers.core.certain_training import MEASURE, UntilCertain, certified_model
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.estimator.classifier import PolymarginClassifier
from solvers.registry import SOLVERS, make
from tests.solvers.problems import small

BOUNDED = sorted(name for name, method in SOLVERS.items() if method.bounds_answers)
# a bias that is held back, weights apart from those that the dual variables make, and a method of each kind
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("crammer_singer", {"bias": 1.0}),
    ("lee_lin_wahba", {"algorithm": "interior"}),
    ("one_vs_rest", {"bias": 1.0, "C": 10.0}),
    ("one_vs_rest", {"loss": "squared_hinge", "algorithm": "newton"}),
    ("softmax", {"class_weight": "balanced"}),
]
EVERY_WAY: list[tuple[str, dict[str, Any]]] = [
    *WAYS,
    *((name, {}) for name in BOUNDED),
    ("lee_lin_wahba", {"algorithm": "ascent", "bias": 1.0}),
    ("one_vs_rest", {"loss": "squared_hinge", "algorithm": "ascent", "bias": 1.0}),
    ("weston_watkins", {"bias": 1.0, "C": 10.0}),
]


def last_certificate(solver: Solver[Any], problem: Problem) -> Step:
    return [step for step in solver.steps(problem) if np.isfinite(step.primal)][-1]


def model_of(name: str, params: dict[str, Any], problem: Problem) -> Model:
    solver = make(name, params)
    last = last_certificate(solver, problem)
    return certified_model(solver, problem, last.state, last.primal, last.dual)


def rows(seed: int, n: int = 300, d: int = 12) -> sp.csr_matrix:
    rng = np.random.default_rng([1, seed])
    return sp.random(n, d, density=0.4, random_state=rng, data_rvs=rng.standard_normal, format="csr")


def check_against_the_optimum(name: str, params: dict[str, Any], problem: Problem, X: sp.csr_matrix) -> list[float]:
    """The share of rows that is certain at each gap."""
    precise = {"tol": 1e-9, "max_epochs": 10**6, "dtype": "float64"}
    optimum = model_of(name, params | precise, problem).predict(X)
    shares = []
    for tol in (1e-1, 1e-2, 1e-3, 1e-6):
        model = model_of(name, params | {"tol": tol}, problem)
        sure = certain(model, X)
        np.testing.assert_array_equal(model.predict(X)[sure], optimum[sure])
        shares.append(float(sure.mean()))
    return shares


def test_methods_with_a_strongly_convex_objective_over_linear_scores_bound_answers() -> None:
    flat = {"crammer_singer", "weston_watkins", "lee_lin_wahba", "one_vs_rest", "softmax"}
    assert flat <= set(BOUNDED)
    assert not {"auto", "multiboost", "output_code", "kernel_ridge"} & set(BOUNDED)


@pytest.mark.parametrize(("name", "params"), WAYS)
def test_no_certain_answer_differs_from_the_optimum(name: str, params: dict[str, Any]) -> None:
    shares = check_against_the_optimum(name, params, small(), rows(0))
    assert shares[2] > 0.1
    assert shares[3] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), EVERY_WAY)
def test_no_certain_answer_differs_from_the_optimum_on_random_problems(name: str, params: dict[str, Any]) -> None:
    for seed in range(12):
        rng = np.random.default_rng([2, seed])
        n, d, k = int(rng.integers(12, 40)), int(rng.integers(2, 8)), int(rng.integers(2, 6))
        problem = small(n, d, k, seed=seed, density=float(rng.uniform(0.3, 1.0)))
        check_against_the_optimum(name, {"C": float(10.0 ** rng.uniform(-1, 1)), **params}, problem, rows(seed, d=d))


def test_a_feature_without_weights_in_a_sparse_model_counts_as_it_may_have_some_at_the_optimum() -> None:
    W = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 0.0]]))
    model, X = SparseLinearModel(["a", "b"], W), sp.csr_matrix(np.array([[1.0, 0.0], [1.0, 3.0]]))
    model.reach = Reach(np.array([0.2]), 0.0, 1.0)
    assert certain(model, X).tolist() == [True, False]


def test_the_middle_of_both_weights_is_never_the_larger_ball() -> None:
    for apart in (0.0, 0.3, 1.0):
        assert radius(1.0, apart) < radius(1.0)
    assert radius(1.0, 0.0) == 1.0


def test_the_reach_is_kept_with_the_model_and_allowed_classes_alone_are_compared(tmp_path: Any) -> None:
    model, X = model_of("one_vs_rest", {"bias": 1.0}, small()), rows(0)
    model.save(tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model")
    np.testing.assert_array_equal(certain(loaded, X), certain(model, X))
    two = np.array([True, True, False, False, False])
    assert certain(model, X, two).mean() > certain(model, X).mean()
    only = np.arange(5) == 3
    assert certain(model, X, only).all()


def test_training_ends_as_soon_as_enough_answers_are_certain_and_resumes_alike() -> None:
    problem, X = small(), rows(0)
    solver = UntilCertain(make("weston_watkins", {"tol": 1e-4}), X, 0.5)
    steps = list(solver.steps(problem))
    shares = [step.measures[MEASURE] for step in steps if MEASURE in step.measures]
    assert steps[-1].converged
    assert shares[-1] >= 0.5
    assert all(share < 0.5 for share in shares[:-1])
    assert steps[-1].gap > 1e-4
    # the states are live: another run stops after its first rung
    begun = next(step for step in solver.steps(problem) if MEASURE in step.measures)
    *_, resumed = solver.steps(problem, {name: np.array(array) for name, array in begun.state.items()})
    assert (resumed.epoch, resumed.primal, resumed.dual) == (steps[-1].epoch, steps[-1].primal, steps[-1].dual)


def test_training_that_begins_from_dual_variables_ends_by_answers() -> None:
    problem, X, solver = small(), rows(0), make("weston_watkins", {"tol": 1e-4})
    *_, former = solver.at_tol(0.1).steps(problem)
    state = solver.warm(problem, solver.dual_shares(problem, former.state))
    *_, last = UntilCertain(solver, X, 0.5).steps(problem, state)
    assert last.converged
    assert last.measures[MEASURE] >= 0.5
    assert last.gap > 1e-4


def test_training_ends_at_its_own_tol_where_answers_tie() -> None:
    solver = UntilCertain(make("crammer_singer", {"tol": 1e-3}), sp.csr_matrix((2, 12)), 1.0)
    *_, last = solver.steps(small())
    assert last.converged
    assert last.gap <= 1e-3
    assert last.measures[MEASURE] == 0.0


def test_a_fitted_classifier_says_it_of_rows_and_one_without_a_bound_says_why() -> None:
    problem, X = small(), rows(0)
    fitted = PolymarginClassifier("weston_watkins", tol=1e-4).fit(problem.X, problem.y)
    np.testing.assert_array_equal(fitted.certain(X), certain(fitted.model_, X))
    with pytest.raises(AttributeError, match="centroids has no gap"):
        PolymarginClassifier("centroids").fit(problem.X, problem.y).certain(X)
