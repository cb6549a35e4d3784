"""Machines with absolute margins in shards: one optimum for any number of them, one result for any of threads."""

from dataclasses import replace

import numpy as np
import pytest
import training
from gangs import in_shards
from problems import optimum, small

import solvers.linear.sharded.sum_exchange
import solvers.linear.sharded.training
from solvers.core.problem import Problem
from solvers.linear.sharded.sum_exchange import SumTraining
from solvers.linear.sharded.task import Plan
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Hub
from solvers.sharding.reshard import gather_columns, split
from solvers.sharding.shardable import shardable

MACHINES = ("lee_lin_wahba", "absolute_sum", "reinforced", "maximum_margin_regression")


def machine(name, threads=1, **params):
    given = {"tol": 1e-3, "algorithm": "ascent", "dtype": "float32", "max_epochs": 1000} | params
    return training.machine(name, threads=threads, **given)


def with_empty_and_weighted_rows(n=60, d=30, k=7):
    problem = small(n, d, k, density=0.3)
    X = problem.X.tolil()
    X[3] = 0
    return replace(Problem.check(X.tocsr(), problem.y), weights=np.where(np.arange(n) % 3 == 0, 2.0, 0.5))


@pytest.mark.parametrize("name", MACHINES)
def test_any_number_of_shards_reaches_the_objective_of_none(name):
    problem = with_empty_and_weighted_rows()
    solver = machine(name, C=0.3)
    *_, alone = solver.steps(problem)
    for size in (1, 2, 3, 7):
        shards = in_shards(solver, problem, size)
        step = shards[0][-1][0]
        assert step.converged
        assert step.primal == pytest.approx(alone.primal, rel=1e-3)
        W = np.zeros((problem.n_features, problem.n_classes))
        for steps in shards:
            assert repr((steps[-1][0].primal, steps[-1][0].dual)) == repr((step.primal, step.dual))
            part = shardable(solver).part(problem, steps[-1][1])
            W[np.ix_(part.features, part.own)] = part.W
        np.testing.assert_allclose(W.sum(axis=1), 0.0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", MACHINES)
def test_the_bounds_enclose_the_optimum_and_meet_there(name, size):
    problem = small()
    value, _ = optimum(name, problem, 0.5)
    solver = machine(name, C=0.5, tol=1e-5, dtype="float64", max_epochs=100_000)
    for steps in in_shards(solver, problem, size):
        step = steps[-1][0]
        assert step.converged
        assert step.dual <= value * (1 + 1e-8)
        assert step.primal == pytest.approx(value, rel=2e-5)


def test_the_bits_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.sum_exchange, "COLUMNS", 2)
    problem = with_empty_and_weighted_rows()
    expected, found = (in_shards(machine("lee_lin_wahba", threads, max_epochs=3), problem, 2) for threads in (1, 3))
    for steps, references in zip(found, expected, strict=True):
        assert len(steps) == len(references)
        for (_, state), (_, reference) in zip(steps, references, strict=True):
            for name, array in reference.items():
                np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_a_resumed_run_repeats_the_uninterrupted_one_and_goes_on_in_other_numbers_of_shards(monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.training, "SLICE_PRODUCTS", 2_000)
    problem, solver = with_empty_and_weighted_rows(), machine("lee_lin_wahba")
    whole = in_shards(solver, problem, 2)
    last = whole[0][-1][0]
    assert len(whole[0]) > 6
    for stop in (0, len(whole[0]) // 2, len(whole[0]) - 2):
        resumed = in_shards(solver, problem, 2, [steps[stop][1] for steps in whole])
        for steps, reference in zip(resumed, whole, strict=True):
            assert len(steps) == len(reference) - stop - 1
            for name, array in reference[-1][1].items():
                np.testing.assert_array_equal(steps[-1][1][name], array, err_msg=name)
    cut = [split(steps[len(whole[0]) // 2][1], shardable(solver).columns) for steps in whole]
    owners = [steps[0][1]["own"] for steps in in_shards(machine("lee_lin_wahba", max_epochs=1), problem, 3)]
    states = [{**cut[0][1], **gather_columns([alone for alone, _ in cut], own)} for own in owners]
    resumed = in_shards(solver, problem, 3, states)[0]
    assert resumed[-1][0].converged
    assert resumed[-1][0].primal == pytest.approx(last.primal, rel=1e-3)
    assert resumed[0][0].epoch >= whole[0][len(whole[0]) // 2][0].epoch


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 7, 60])
def test_the_dual_rises_at_every_batch_however_large(batch):
    problem, solver = with_empty_and_weighted_rows(), machine("lee_lin_wahba", C=3.0, dtype="float64", max_epochs=3)
    margins = solver.margins(problem.n_classes)
    plan = Plan(3.0, 1e-6, 3, np.dtype(np.float64), 0, 6.0, batch=batch)
    with ThreadPool(1) as thread_pool:
        training = SumTraining(problem, plan, margins, Hub(1).exchange(0), thread_pool)
        duals = [0.0]
        for _ in range(4):
            order = np.flatnonzero(training.examples.rows.squares > 0).astype(np.int32)
            for begin in range(0, len(order), batch):
                training.batch = batch
                training._walk(order[begin : begin + batch])
                duals.append(training.alpha.sum() - 0.5 * (training.shard.W**2).sum())
    assert (np.diff(duals) >= -1e-12 * np.abs(duals[1:])).all()
    assert duals[-1] > 1.02 * duals[1]


def test_the_roots_take_a_few_rounds_a_batch(monkeypatch):
    problem, solver, batches = small(n=400, d=40, k=9), machine("lee_lin_wahba", max_epochs=2), []
    move = SumTraining._move

    def counted(training, batch, *rest):
        batches.append(len(batch.examples))
        return move(training, batch, *rest)

    monkeypatch.setattr(SumTraining, "_move", counted)
    hub = Hub(1)
    for _ in shardable(solver).sharded(problem, hub.exchange(0)):
        pass
    assert sum(batches) == 2 * 400
    assert len(batches) < hub.rounds < 8 * len(batches)
