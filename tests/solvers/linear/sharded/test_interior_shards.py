"""The interior point method in shards: the iterates of one worker, whatever the number of shards."""

import numpy as np
import pytest
import training
from gangs import in_shards, run_shards
from problems import small
from training import fitted

from solvers.sharding.reshard import gather_columns, split
from solvers.sharding.shardable import shardable

MACHINES = ("lee_lin_wahba", "absolute_sum", "reinforced", "maximum_margin_regression")


def machine(name, **params):
    return training.machine(name, **({"C": 10.0, "tol": 1e-6, "dtype": "float64", "bias": 1.0} | params))


@pytest.mark.each_method
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", MACHINES)
def test_shards_take_the_iterations_of_one_worker_and_make_its_model(name, size):
    problem, solver = small(60, 8, 7), machine(name)
    alone, model = fitted(solver, problem)

    def work(exchange):
        steps = list(shardable(solver).sharded(problem, exchange))
        return steps[-1], shardable(solver).part(problem, steps[-1].state)

    found = run_shards(size, work)
    assert {(step.epoch, step.converged) for step, _ in found} == {(alone.epoch, True)}
    assert len({(step.primal, step.dual, step.violation) for step, _ in found}) == 1
    assert found[0][0].primal == pytest.approx(alone.primal, rel=1e-9)
    files = {key: array for rank, (_, part) in enumerate(found) for key, array in part.files(rank).items()}
    reports = [part.report() for _, part in found]
    whole = shardable(solver).assembled(problem, shardable(solver).partition(problem, size), files, reports)
    np.testing.assert_allclose(whole.scores(problem.X), model.scores(problem.X), atol=1e-8)
    assert whole.report["nonzero_duals"] == pytest.approx(model.report["nonzero_duals"], abs=0.02)


def test_a_shard_goes_on_from_a_state_and_from_that_of_other_shards():
    problem, solver = small(60, 8, 7), machine("lee_lin_wahba")
    whole = in_shards(solver, problem, 2)
    half = [steps[4][1] for steps in whole]
    again = in_shards(solver, problem, 2, states=half)
    for first, second in zip(whole, again, strict=True):
        assert first[-1][0].primal == second[-1][0].primal
        assert all(np.array_equal(first[-1][1][name], second[-1][1][name]) for name in first[-1][1])
    alone, common = zip(*(split(state, shardable(solver).columns) for state in half), strict=True)
    owner = shardable(solver).partition(problem, 3)
    states = [
        {**common[0], **gather_columns(alone, np.flatnonzero(owner == rank).astype(np.int32))} for rank in range(3)
    ]
    resumed = in_shards(solver, problem, 3, states=states)
    assert resumed[0][-1][0].primal == pytest.approx(whole[0][-1][0].primal, rel=1e-9)
    assert resumed[0][-1][0].epoch == whole[0][-1][0].epoch
