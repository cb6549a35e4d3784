"""Every objective against a general convex solver."""

from pathlib import Path

import numpy as np
import pytest
from problems import BOOSTED, ORACLES, TREES, boosted_optimum, intercept, linear_map, optimum, settings, small
from training import trained

from solvers.core.machine import SingleLabelParams
from solvers.core.problem import Problem
from solvers.registry import SOLVERS

# every method has an objective of its own
pytestmark = pytest.mark.each_method
slow = pytest.mark.slow


def train(name, problem, **params):
    return trained(name, problem, **settings(name, **params))


@pytest.mark.parametrize("C", [pytest.param(0.05, marks=slow), 1.0, pytest.param(5.0, marks=slow)])
@pytest.mark.parametrize("case", ORACLES)
def test_the_bounds_enclose_the_optimum_and_meet_there(case, C):
    problem = small()
    name, extra = case.split(",")[0], ORACLES[case][1]
    value, W = optimum(case, problem, C)
    step, model = train(name, problem, C=C, tol=1e-7, max_epochs=200_000, **extra)
    assert step.converged
    assert step.dual <= value * (1 + 1e-8)
    assert step.primal >= value * (1 - 1e-8)
    assert step.primal == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(linear_map(model), W, atol=2e-3 * np.abs(W).max() + 1e-9)


@slow
@pytest.mark.parametrize("case", ORACLES)
def test_weights_of_examples_multiply_their_losses(case):
    plain = small(n=30)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, plain.n_samples)
    problem = Problem.check(plain.X, plain.y, plain.classes, weights)
    name, extra = case.split(",")[0], ORACLES[case][1]
    value, _ = optimum(case, problem, 1.0)
    step, _ = train(name, problem, C=1.0, tol=1e-7, max_epochs=200_000, **extra)
    assert step.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("class_weight", [pytest.param("balanced", marks=slow), {"1": 3.0, "4": 0.25}])
@pytest.mark.parametrize(
    "case", [case for case in ORACLES if issubclass(SOLVERS[case.split(",")[0]].Params, SingleLabelParams)]
)
def test_a_constant_feature_and_weights_of_classes_are_part_of_the_objective(case, class_weight):
    plain = small(n=30)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, plain.n_samples)
    problem = Problem.check(plain.X, plain.y, plain.classes, weights)
    name, extra = case.split(",")[0], ORACLES[case][1]
    value, W = optimum(case, problem, 1.0, bias=2.0, class_weight=class_weight)
    step, model = train(
        name, problem, C=1.0, bias=2.0, class_weight=class_weight, tol=1e-7, max_epochs=200_000, **extra
    )
    assert step.converged
    assert step.dual <= value * (1 + 1e-8)
    assert step.primal == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(linear_map(model), W[:, :-1], atol=2e-3 * np.abs(W).max())
    np.testing.assert_allclose(intercept(model), 2.0 * W[:, -1], atol=4e-3 * np.abs(W).max())


@pytest.mark.parametrize("C", [pytest.param(0.5, marks=slow), 20.0, pytest.param(500.0, marks=slow)])
@pytest.mark.parametrize("name", BOOSTED)
def test_boosting_reaches_the_optimum_over_all_weak_learners(name, C):
    plain = small(n=40, d=8)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, plain.n_samples)
    problem = Problem.check(plain.X, plain.y, plain.classes, weights)
    value, margins = boosted_optimum(problem, C)
    step, model = train(name, problem, C=C, tol=1e-7, max_epochs=10_000, **BOOSTED[name])
    assert step.converged
    assert step.dual <= value * (1 + 1e-8)
    assert step.primal >= value * (1 - 1e-8)
    assert step.primal == pytest.approx(value, rel=1e-6)
    F = model.scores(problem.X)
    np.testing.assert_allclose(
        F[np.arange(40), problem.y][:, None] - F, margins, atol=5e-3 * np.abs(margins).max() + 1e-9
    )


# tests that hold methods over sets of labels and label trees, and of two levels, against a convex solver
SETS = {
    "hard_margin": "linear/test_hard_margin.py",
    "hm3": "hierarchical/test_hm3.py",
    "node_svm": "hierarchical/test_node_machines.py",
    "hierarchical_svm": "hierarchical/test_node_machines.py",
    "hierarchical_rls": "hierarchical/test_node_machines.py",
    "label_trees": "hierarchical/test_learnt_trees.py",
    "subjects": "subjects/test_subjects.py",
}


@pytest.mark.parametrize(
    "name", [name for name, method in SOLVERS.items() if method.handles.certified and not method.chooses]
)
def test_every_certified_method_has_an_oracle(name):
    if name in SETS:
        assert f'"{name}"' in (Path(__file__).parent / SETS[name]).read_text()
    else:
        assert name in BOOSTED or name in TREES or any(case.split(",")[0] == name for case in ORACLES)
