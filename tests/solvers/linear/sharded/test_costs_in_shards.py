"""Costs of wrong answers in class shards: the objective, the bounds and the optimum of one worker."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from gangs import in_shards, model_of
from problems import COSTS, cost_objective, cost_table, optimum, small, small_tree

import solvers.linear.layouts.hybrid_layout
import solvers.linear.sharded.training
from solvers.core.problem import Problem
from solvers.labels.costs import Costs, add_costs, cost_of, costs_of
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.steps import slack_step
from solvers.registry import make

everywhere = pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins"])
both_ways = pytest.mark.parametrize("scaling", ["margin", "slack"])


def on_tree(problem: Problem) -> Problem:
    return replace(problem, taxonomy=small_tree(problem.classes))


def certified(step):
    return np.isfinite(step.primal)


@everywhere
@both_ways
@pytest.mark.parametrize("size", [2, pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)])
def test_the_bounds_enclose_the_optimum_of_a_generic_solver_and_meet_there(name, scaling, size):
    problem = small()
    value, _ = optimum(f"{name}, {'costs' if scaling == 'margin' else 'losses times costs'}", problem, 0.7)
    solver = make(name, {"C": 0.7, "tol": 1e-5, "max_epochs": 10**4, "cost_scaling": scaling, **COSTS})
    shards = in_shards(solver, problem, size, keep=certified)
    last, dual = shards[0][-1][0], -np.inf
    assert last.converged
    assert last.primal == pytest.approx(value, rel=2e-5)
    for at, (step, _) in enumerate(shards[0]):
        W = model_of(solver, problem, shards, at).gathered().coef
        assert step.primal == pytest.approx(cost_objective(name, problem, cost_table(5), 0.7, W, scaling), rel=1e-9)
        assert dual - 1e-12 <= step.dual <= value * (1.0 + 1e-8)
        dual = step.dual
    *_, alone = solver.steps(problem)
    assert last.primal == pytest.approx(alone.primal, rel=2e-5)
    assert model_of(solver, problem, shards).costs.arrays().keys() == solver.params.costs_of(problem).arrays().keys()


@everywhere
@both_ways
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_classes_of_a_tree_reach_the_objective_of_one_worker_in_any_number_of_shards(name, scaling, dtype):
    rng = np.random.default_rng(3)
    n, k = 400, 60
    X = sp.random(n, 80, 0.1, format="csr", random_state=rng)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    problem = on_tree(Problem.check(X, y))
    solver = make(name, {"tol": 1e-3, "costs": "tree", "cost_scaling": scaling, "dtype": dtype, "bias": 1.0})
    *_, alone = solver.steps(problem)
    for size in (2, 7):
        step = in_shards(solver, problem, size, keep=certified)[0][-1][0]
        assert step.converged
        assert step.primal == pytest.approx(alone.primal, rel=2e-3)
        assert max(step.dual, alone.dual) <= min(step.primal, alone.primal)


@everywhere
@both_ways
@pytest.mark.slow
def test_lists_of_rare_features_and_threads_change_no_bit(name, scaling, monkeypatch):
    problem = on_tree(small(n=120, d=40, density=0.1))
    params = {"tol": 1e-4, "costs": "tree", "cost_scaling": scaling}
    expected = in_shards(make(name, params), problem, 2)
    within = HybridLayout.within
    for n_hot, threads in ((None, 2), (5, 1)):
        if n_hot is not None:

            def few(X, n_classes, dtype, *args, n_hot=n_hot):
                return replace(within(X, n_classes, dtype, *args), n_hot=n_hot)

            monkeypatch.setattr(solvers.linear.layouts.hybrid_layout.HybridLayout, "within", staticmethod(few))
        found = in_shards(make(name, params, threads=threads), problem, 2)
        for steps, references in zip(found, expected, strict=True):
            assert [repr(step.primal) for step, _ in steps] == [repr(step.primal) for step, _ in references]


@everywhere
@both_ways
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(name, scaling, monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.training, "SLICE_PRODUCTS", 20_000)
    problem = on_tree(small(n=80))
    solver = make(name, {"tol": 1e-9, "max_epochs": 6, "costs": "tree", "cost_scaling": scaling})
    whole = in_shards(solver, problem, 2)
    stop = len(whole[0]) // 2
    resumed = in_shards(solver, problem, 2, [steps[stop][1] for steps in whole])
    for steps, reference in zip(resumed, whole, strict=True):
        assert len(steps) == len(reference) - stop - 1
        for key, array in reference[-1][1].items():
            np.testing.assert_array_equal(steps[-1][1][key], array, err_msg=key)


@everywhere
def test_rows_without_features_lose_the_largest_cost_or_the_sum(name):
    X = small(n=40).X.toarray()
    X[[0, 7, 9]] = 0.0
    problem = Problem.check(X, small(n=40).y)
    solver = make(name, {"tol": 1e-6, **COSTS})
    shards = in_shards(solver, problem, 2, keep=certified)
    W = model_of(solver, problem, shards).gathered().coef
    expected = cost_objective(name, problem, cost_table(5), 1.0, W, "margin")
    assert shards[0][-1][0].primal == pytest.approx(expected, rel=1e-9)


@everywhere
def test_costs_of_one_for_all_leave_every_bit_as_it_is(name):
    problem = small(n=80)
    plain = in_shards(make(name, {"tol": 1e-3}), problem, 2, keep=certified)
    priced = in_shards(make(name, {"tol": 1e-3, "costs": {"0": {"1": 1.0}}}), problem, 2, keep=certified)
    for key, array in plain[0][-1][1].items():
        np.testing.assert_array_equal(priced[0][-1][1][key], array, err_msg=key)


@pytest.mark.parametrize("kind", ["table", "tree"])
def test_costs_of_some_classes_are_those_of_all_under_other_numbers(kind):
    problem = on_tree(small(n=80))
    tree = problem.taxonomy
    whole = (
        Costs.of_tree(problem.classes, tree) if kind == "tree" else Costs.of_table(problem.classes, COSTS["costs"], 2.5)
    )
    for some in ([0, 3], [1, 2, 4], [2]):
        own = np.array(some, np.int32)
        among, answers = whole.among(own), whole.of_answers(own)
        for y in range(5):
            row = np.zeros(len(own))
            add_costs(answers, y, 0.0, row)
            expected = [cost_of(whole, y, c) for c in some]
            others = own != y
            np.testing.assert_allclose(row[others], np.array(expected)[others])
        for at, y in enumerate(some):
            row = np.zeros(len(own))
            costs_of(among, at, row)
            np.testing.assert_allclose(row, [cost_of(whole, y, c) for c in some])
            assert [cost_of(among, at, other) for other in range(len(some))] == pytest.approx(row)


@pytest.mark.parametrize("largest_loss", [True, False])
def test_a_shard_offers_every_class_that_is_positive_at_the_optimum_over_all(largest_loss):
    rng, needed, offered = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        k, C, K = int(rng.integers(2, 30)), float(rng.choice([0.1, 1.0, 5.0])), float(rng.choice([0.5, 2.0]))
        f, row = rng.normal(size=k) * 2.0, rng.exponential(size=k) * (rng.random(k) < 0.9)
        b, new = (1.0 + f) / K, np.zeros(k)
        slack_step.solve(b, row, k, C, 0.0, largest_loss, new)
        mine = np.flatnonzero(rng.random(k) < 0.5)
        if not len(mine):
            continue
        n, found = len(mine), np.zeros(len(mine), np.int32)
        work, old, weights = np.empty(n), np.zeros(n), np.empty(n)
        fixed = 0.0, C, K, 0.0, 0
        scores = f[mine]
        m, _, _ = slack_step.candidates(row[mine], scores, *fixed, n, n, largest_loss, found, work, old, weights)
        m = slack_step.exceeding(row[mine], scores, *fixed, m, n, largest_loss, found, work, weights)
        assert len(set(found[:m].tolist())) == m
        assert set(np.flatnonzero(new[mine] > 1e-9).tolist()) <= set(found[:m].tolist())
        needed, offered = needed + int((new[mine] > 1e-9).sum()), offered + m
    assert needed > 500
    assert offered < 6 * needed
