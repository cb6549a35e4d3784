"""Costs of wrong answers in the machines with relative margins: as their margins, or as factors of their losses."""

from dataclasses import replace

import numpy as np
import pytest
from problems import COSTS, cost_objective, cost_table, small, small_tree

from solvers.core.base import Outline, ParamsError
from solvers.core.problem import Problem, ProblemError
from solvers.core.stored_models import load_model
from solvers.estimator.classifier import PolymarginClassifier
from solvers.registry import SOLVERS, parse_params

METHODS = ("crammer_singer", "weston_watkins")
everywhere = pytest.mark.parametrize("name", METHODS)
both_ways = pytest.mark.parametrize("scaling", ["margin", "slack"])


def on_tree(problem: Problem) -> Problem:
    return replace(problem, taxonomy=small_tree(problem.classes))


def machine(name, **params):
    return SOLVERS[name](parse_params(name, params))


def trained(name, problem, **params):
    made = machine(name, **params)
    steps = list(made.steps(problem))
    return steps, made.model(problem, steps[-1].state)


@everywhere
@both_ways
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("costs", ["tree", "table"])
def test_the_primal_of_every_certificate_is_the_objective_with_the_costs(name, scaling, dense, costs):
    problem = on_tree(small(n=80, density=1.0 if dense else 0.15))
    nodes = problem.tree.find(problem.classes)
    L = problem.tree.distance(nodes[:, None], nodes[None]) if costs == "tree" else cost_table(5)
    params = {"costs": "tree"} if costs == "tree" else COSTS
    made = machine(name, C=0.7, tol=1e-6, max_epochs=5000, cost_scaling=scaling, **params)
    checked, dual = 0, -np.inf
    for step in made.steps(problem):
        if np.isnan(step.primal):
            continue
        W = made.model(problem, step.state).coef
        assert step.primal == pytest.approx(cost_objective(name, problem, L, 0.7, W, scaling), rel=1e-9)
        assert dual - 1e-12 <= step.dual <= step.primal
        checked, dual = checked + 1, step.dual
    assert step.converged
    assert checked > 1


@everywhere
@both_ways
def test_costs_of_one_for_all_leave_every_bit_as_it_is(name, scaling):
    problem = small(n=80)
    plain, _ = trained(name, problem, tol=1e-3)
    priced, model = trained(name, problem, tol=1e-3, costs={"0": {"1": 1.0}}, cost_scaling=scaling)
    for array in plain[-1].state:
        np.testing.assert_array_equal(plain[-1].state[array], priced[-1].state[array])
    assert model.costs is not None


@everywhere
def test_costs_twice_as_large_at_half_the_c_make_weights_twice_as_large(name):
    problem = small(n=60)
    (*_, one), first = trained(name, problem, tol=1e-6, C=1.0, costs={"0": {"1": 4.0}}, other_cost=2.0)
    (*_, two), second = trained(name, problem, tol=1e-6, C=0.5, costs={"0": {"1": 2.0}}, other_cost=1.0)
    assert one.primal == pytest.approx(4.0 * two.primal, rel=2e-6)
    np.testing.assert_allclose(first.coef, 2.0 * second.coef, atol=5e-3)


@everywhere
def test_losses_times_costs_are_those_of_half_the_costs_at_twice_the_c(name):
    problem = small(n=60)
    (*_, one), first = trained(
        name, problem, tol=1e-7, C=1.0, costs={"0": {"1": 4.0}}, other_cost=2.0, cost_scaling="slack"
    )
    (*_, two), second = trained(name, problem, tol=1e-7, C=2.0, costs={"0": {"1": 2.0}}, cost_scaling="slack")
    assert one.primal == pytest.approx(two.primal, rel=2e-7)
    np.testing.assert_allclose(first.coef, second.coef, atol=2e-3)


@everywhere
@pytest.mark.parametrize("dense", [False, True])
def test_equal_costs_as_factors_are_a_factor_of_c(name, dense):
    problem = small(n=60, density=1.0 if dense else 0.2)
    (*_, one), _ = trained(
        name, problem, tol=1e-7, C=1.0, costs={"0": {"1": 3.0}}, other_cost=3.0, cost_scaling="slack"
    )
    (*_, two), _ = trained(name, problem, tol=1e-7, C=3.0)
    assert one.primal == pytest.approx(two.primal, rel=2e-7)


@everywhere
def test_dual_variables_of_other_costs_start_a_training_within_their_bounds(name):
    problem = on_tree(small(n=80))
    dear, cheap = {"0": {"1": 50.0}}, {"0": {"1": 0.0, "2": 0.01}}
    first = machine(name, costs=dear, cost_scaling="slack", tol=1e-4)
    *_, last = first.steps(problem)
    shares = first.dual_shares(problem, last.state)
    second = machine(name, costs=cheap, cost_scaling="slack", tol=1e-6)
    *_, warm = second.steps(problem, second.warm(problem, shares))
    *_, cold = second.steps(problem)
    assert warm.converged
    assert warm.primal == pytest.approx(cold.primal, rel=2e-6)


@everywhere
@both_ways
def test_answers_that_are_certain_are_those_of_the_optimum(name, scaling):
    problem = small(n=120, d=30, density=0.3)
    made = machine(name, tol=1e-5, cost_scaling=scaling, **COSTS)
    *_, last = made.steps(problem)
    model = made.model(problem, last.state)
    reach = made.reach(problem, last.state, model, last.primal, last.dual)
    _, best = trained(name, problem, tol=1e-9, cost_scaling=scaling, **COSTS)
    second, first = np.sort(model.scores(problem.X), axis=1)[:, -2:].T
    lengths = np.sqrt(np.asarray(problem.X.multiply(problem.X).sum(axis=1)).ravel())
    certain = first - second > 2.0 * reach.of_classes[0] * lengths
    assert certain.sum() > 60
    np.testing.assert_array_equal(model.predict(problem.X)[certain], best.predict(problem.X)[certain])


@everywhere
@both_ways
def test_a_training_in_slices_goes_on_to_the_same_bits(name, scaling):
    problem = on_tree(small(n=80))
    made = machine(name, tol=1e-4, costs="tree", bias=1.0, cost_scaling=scaling)
    steps = [replace(step, state={k: np.array(v) for k, v in step.state.items()}) for step in made.steps(problem)]
    middle = steps[len(steps) // 2]
    *_, last = made.steps(problem, middle.state)
    for array, values in steps[-1].state.items():
        np.testing.assert_array_equal(values, last.state[array])


@everywhere
@both_ways
def test_the_order_of_classes_changes_nothing(name, scaling):
    problem = small(n=120, d=60, density=0.1)
    steps, model = trained(name, problem, tol=1e-7, cost_scaling=scaling, **COSTS)
    order = np.array([3, 1, 4, 0, 2])
    other = Problem.check(problem.X, np.argsort(order)[problem.y], tuple(problem.classes[c] for c in order))
    turned, its_model = trained(name, other, tol=1e-7, cost_scaling=scaling, **COSTS)
    assert turned[-1].primal == pytest.approx(steps[-1].primal, rel=1e-6)
    np.testing.assert_allclose(its_model.coef, model.coef[order], atol=2e-3)


@everywhere
@both_ways
def test_a_path_in_c_starts_from_the_dual_variables_of_another(name, scaling):
    problem = on_tree(small(n=80))
    first = machine(name, tol=1e-5, C=0.1, costs="tree", cost_scaling=scaling)
    *_, last = first.steps(problem)
    second = first.at(1.0)
    *_, ended = second.steps(problem, second.rescaled(problem, last.state, 0.1))
    *_, cold = second.steps(problem)
    assert ended.primal == pytest.approx(cold.primal, rel=2e-5)


@everywhere
@both_ways
def test_rows_without_features_lose_the_largest_cost_or_the_sum(name, scaling):
    base = small(n=40)
    X = base.X.toarray()
    X[[0, 7, 9]] = 0.0
    problem = Problem.check(X, base.y)
    steps, model = trained(name, problem, tol=1e-6, cost_scaling=scaling, **COSTS)
    found = cost_objective(name, problem, cost_table(5), 1.0, model.coef, scaling)
    assert steps[-1].primal == pytest.approx(found, rel=1e-9)


@everywhere
def test_a_stored_model_keeps_its_costs(name, tmp_path):
    problem = on_tree(small(n=60))
    _, model = trained(name, problem, costs="tree", bias=1.0)
    model.save(tmp_path / "model")
    stored, _ = load_model(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(stored.scores(problem.X), model.scores(problem.X))
    true, said = problem.y, model.predict(problem.X)
    np.testing.assert_array_equal(stored.costs.between(true, said), model.costs.between(true, said))


@everywhere
def test_costs_that_make_no_sense_are_refused(name):
    for params, detail in (
        ({"costs": {"a": {"b": -1.0}}}, "greater than or equal to 0"),
        ({"costs": {"a": {"b": float("nan")}}}, "expected a number"),
        ({"costs": {"a": {"b": 1e10}}}, "less than or equal to"),
        ({"costs": {"a": {"a": 1.0}}}, "the right answer costs nothing: remove 'a'"),
        ({"costs": {"a": {"b": 0.0}}, "other_cost": 0.0}, "all answers cost nothing"),
        ({"other_cost": 2.0}, "needs an object of costs"),
        ({"costs": "tree", "other_cost": 2.0}, "needs an object of costs"),
        ({"cost_scaling": "slack"}, "cost_scaling needs costs"),
    ):
        with pytest.raises(ParamsError, match=detail):
            machine(name, **params)


@everywhere
def test_requests_are_refused_for_unknown_labels_and_a_missing_tree(name):
    with pytest.raises(ParamsError, match="1 label that no training row has: 'z'"):
        machine(name, costs={"a": {"z": 1.0}}).check_request(Outline(["a", "b"], 10))
    with pytest.raises(ParamsError, match="tree needs a hierarchy"):
        machine(name, costs="tree").check_request(Outline(["a", "b"], 10))
    machine(name, costs="tree").check_request(Outline(["a", "b"], 10, 3))
    with pytest.raises(ProblemError, match="tree needs a hierarchy"):
        list(machine(name, costs="tree").steps(small()))


def test_an_estimator_takes_labels_of_any_kind_and_names_unknown_ones():
    base = small(n=80)
    free = {0: {1: 50.0, 2: 50.0, 3: 50.0, 4: 50.0}}
    plain = PolymarginClassifier("crammer_singer").fit(base.X, base.y)
    careful = PolymarginClassifier("crammer_singer", costs=free).fit(base.X, base.y)
    assert (careful.predict(base.X) == 0).sum() > (plain.predict(base.X) == 0).sum()
    with pytest.raises(ParamsError, match="'9'"):
        PolymarginClassifier("crammer_singer", costs={9: {1: 2.0}}).fit(base.X, base.y)
