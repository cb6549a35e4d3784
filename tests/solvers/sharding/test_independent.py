"""Independent classes: the optimum of one machine alone, states that can be resharded, clean ends."""

import numpy as np
import pytest
import training
from gangs import in_shards, run_shards
from problems import small

from solvers.core.base import Step
from solvers.sharding.partition import partition_classes, together
from solvers.sharding.reshard import gather_columns, split
from solvers.sharding.shardable import shardable


def machine(**params):
    return training.machine("one_vs_rest", **({"tol": 1e-4, "dtype": "float64"} | params))


def assembled(solver, problem, shards):
    W = np.zeros((problem.n_features, problem.n_classes))
    for steps in shards:
        part = shardable(solver).part(problem, steps[-1][1])
        W[np.ix_(part.features, part.own)] = part.W
    return W


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_shards_reach_the_optimum_of_the_machine_alone(loss, size):
    problem, solver = small(n=60, d=9, k=5), machine(loss=loss)
    *_, alone = solver.steps(problem)
    shards = in_shards(solver, problem, size)
    assert len({len(steps) for steps in shards}) == 1
    for steps in shards:
        step = steps[-1][0]
        assert step.converged
        assert step.dual <= alone.primal * (1 + 1e-12)
        assert alone.dual <= step.primal * (1 + 1e-12)
        assert step.gap <= 1e-4
        assert repr((step.primal, step.dual)) == repr((shards[0][-1][0].primal, shards[0][-1][0].dual))
    expected = solver.model(problem, alone.state).W
    np.testing.assert_allclose(assembled(solver, problem, shards), expected, atol=0.03 * np.abs(expected).max())


def test_a_training_goes_on_in_another_number_of_shards():
    problem, solver = small(n=60, d=9, k=5), machine()
    begun = in_shards(solver, problem, 2, stop=3)
    ended = in_shards(solver, problem, 3, cut_anew(solver, problem, begun))
    assert ended[0][0][0].epoch == begun[0][-1][0].epoch + 1
    assert ended[0][-1][0].converged
    assert ended[0][-1][0].primal == pytest.approx(in_shards(solver, problem, 1)[0][-1][0].primal, rel=2e-4)


def cut_anew(solver, problem, begun):
    """States of three shards from those of two."""
    parts = [split(steps[-1][1], shardable(solver).columns) for steps in begun]
    owner = partition_classes(problem.y, 5, 3)
    return [
        {**parts[0][1], **gather_columns([alone for alone, _ in parts], np.flatnonzero(owner == rank).astype(np.int32))}
        for rank in range(3)
    ]


def test_biases_are_multiplied_out_in_shards_and_go_on_in_another_number_of_them():
    problem, solver, bias = small(n=60, d=9, k=5), machine(bias=4.0), 4.0
    assert solver.task(solver.prepared(problem)).held is not None
    begun = in_shards(solver, problem, 2, stop=3)
    for shards in (in_shards(solver, problem, 2), in_shards(solver, problem, 3, cut_anew(solver, problem, begun))):
        W = np.zeros((10, 5))
        for steps in shards:
            part = shardable(solver).part(problem, steps[-1][1])
            W[np.ix_(part.features, part.own)] = part.W
        signs = 2.0 * (problem.y[:, None] == np.arange(5)) - 1.0
        losses = np.maximum(1.0 - signs * (problem.X @ W[:9] + bias * W[9]), 0.0)
        assert shards[0][-1][0].converged
        assert 0.5 * (W**2).sum() + losses.sum() == pytest.approx(shards[0][-1][0].primal, rel=1e-9)


def test_it_ends_in_all_shards_at_the_limit_of_epochs():
    problem = small(n=60, d=9, k=5)
    for steps in in_shards(machine(tol=1e-12, max_epochs=4), problem, 2):
        assert steps[-1][0].epoch == 4
        assert not steps[-1][0].converged


def test_a_shard_that_has_converged_does_not_keep_one_that_is_at_its_limit():
    def train(primals, converged):
        for epoch, primal in enumerate(primals, 1):
            yield Step(epoch, primal, 1.0, np.nan, converged and epoch == len(primals), {})

    shards = [([3.0, 2.0], True), ([9.0, 8.0, 7.0, 6.0], False)]

    def work(exchange):
        return list(together(train(*shards[exchange.rank]), exchange, lambda step, epoch: step.state))

    for steps in run_shards(2, work, timeout=600.0):
        assert [(step.epoch, step.primal, step.converged) for step in steps] == [
            (1, 12.0, False),
            (2, 10.0, False),
            (3, 9.0, False),
            (4, 8.0, False),
        ]
