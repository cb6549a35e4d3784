"""Shards of one machine a class, or a column of a code, against the rest: they need nothing of each other."""

from collections.abc import Iterator

import numpy as np

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.problem import Problem
from solvers.linear.binary_blocks import BlockRun, Counters
from solvers.linear.driver.params import precision
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.steps import binary
from solvers.numerics.array_types import Ints32
from solvers.numerics.lazy_arrays import Lazy
from solvers.numerics.rows import features_by_frequency
from solvers.sharding.exchange import Exchange
from solvers.sharding.partition import balanced, together


class OneVsRestShards(LinearShards):
    """Shards of one-vs-rest, always by dual ascent, with one message an epoch.

    A training that is resumed looks at all examples afresh, also at those that rested.
    """

    columns = ("W", "beta")
    exchange_kind = "bounds"

    def partition(self, problem: Problem, size: int) -> Ints32:
        sizes = self.solver.examples_of_columns(problem)
        return super().partition(problem, size) if sizes is None else balanced(sizes, size, "columns")

    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        problem = self.solver.prepared(problem)
        own = np.flatnonzero(self.partition(problem, exchange.size) == exchange.rank).astype(np.int32)
        params = self.solver.params.model_copy(update={"algorithm": "ascent"})
        if self.solver.code is None:
            code = np.where(np.arange(problem.n_classes)[:, None] == own, 1, -1).astype(np.int8)
        else:
            code = np.ascontiguousarray(self.solver.code[:, own])
        machine = type(self.solver)(params, seed=self.solver.seed, threads=self.solver.threads).of_code(code)
        run = None if state is None else BlockRun.of_columns(machine.task(problem), state).state()
        n_blocks = -(-len(own) // binary.block_width(len(own), precision(params)))
        steps = (step for step in machine.train(problem, run) if Counters(*step.state["counters"]).block == n_blocks)

        def arrays(step: Step, epoch: int) -> State:
            found = step.state
            return Lazy(
                {
                    "own": lambda: own,
                    "W": lambda: np.concatenate(list(found["W"]), axis=1)[:, : len(own)],
                    "beta": lambda: np.concatenate(list(found["beta"]), axis=1)[:, : len(own)],
                    "epoch": lambda: np.array([epoch]),
                }
            )

        return together(steps, exchange, arrays)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.solver.prepared(problem), np.asarray(state["own"])
        features = features_by_frequency(prepared.X)
        W = np.ascontiguousarray(state["W"][np.argsort(features), : len(own)])
        W[-1:] *= self.solver.root(prepared)
        each = len(own) if self.solver.code is None else np.count_nonzero(self.solver.code[:, own], axis=1)[prepared.y]
        duals = share(np.count_nonzero(state["beta"][:, : len(own)]), float((filled(prepared) * each).sum()))
        return Part(np.sort(features), own, W, self.solver.params.bias, duals)
