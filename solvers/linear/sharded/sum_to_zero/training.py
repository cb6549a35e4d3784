"""One shard of a machine with absolute margins that sums the losses of an example: what its dual variables add up to.

The weights of all classes add up to zero, and the dual variables are not sparse: each shard holds those of its own
classes, with their weights. A subclass says what the shards exchange to take steps.
"""

from functools import partial

import numpy as np

from solvers.core.base import State
from solvers.core.problem import Problem
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.training import ShardTraining
from solvers.linear.steps import absolute
from solvers.linear.steps.absolute import Margins
from solvers.linear.visits import Task
from solvers.numerics import scaling_search
from solvers.numerics.array_types import Array, Floats
from solvers.numerics.rows import square_norm
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Exchange, gather, reduce

# the pieces of a phase do not depend on the number of threads, as sums of floats depend on them
COLUMNS, PARTS = 512, 16


class SumToZeroTraining(ShardTraining):
    """One shard of a training; ``margins`` are not shared."""

    def __init__(
        self, problem: Problem, plan: Plan, margins: Margins, exchange: Exchange, thread_pool: ThreadPool
    ) -> None:
        super().__init__(problem, plan, exchange, thread_pool)
        n, n_own, self.k = problem.n_samples, len(self.shard.own), problem.n_classes
        self.margins = margins
        # labels are columns of the part here
        self.task = Task(self.examples.rows, self.shard.local[problem.y], self.examples.bounds, self.k)
        self.alpha, self.totals = np.zeros((n, n_own), plan.dtype), np.zeros(n)
        self.columns = pieces(n_own, -(-n_own // COLUMNS))

    def restore(self, state: State) -> None:
        super().restore(state)
        self.alpha[:] = state["alpha"][:, : len(self.shard.own)]

    def state(self) -> dict[str, Array]:
        return super().state() | {"alpha": self.alpha}

    def _note(self, visits: Array) -> None:
        """Add what visits have measured to what is to be reported."""
        found = self.unreported[0]
        gap, loss = visits.view(np.float64).reshape(-1, 3)[:, :2].sum(axis=0)
        found["gap"] += gap
        found["loss"] += loss
        found["violation"] = max(found["violation"], visits["violation"].max())

    def _certify(self) -> tuple[float, float, Floats]:
        """Rebuild the weights and measure: objective at the best multiple of W, dual, and each example's gap."""
        n, width, W = len(self.unchanged), len(self.shard.own), self.shard.W
        parts = pieces(n, PARTS)
        sums = np.empty(n)
        work = partial(absolute.signed_sums, self.task.y, self.alpha, sums)
        self.thread_pool.run(partial(work, *stops) for stops in parts)
        self.totals[:] = reduce(self.exchange, sums)
        work = partial(absolute.rebuild, self.task.rows, self.task.y, self.k, self.alpha, self.totals, W)
        self.thread_pool.run(partial(work, *stops) for stops in self.columns)
        terms, found = scaling_search.blank(len(parts)), np.zeros((len(parts), 2))
        gaps = np.zeros(n)
        work = partial(absolute.certify, self.task, self.margins, W, self.alpha, gaps, np.empty_like(gaps))
        self.thread_pool.run(partial(work, terms[p], found[p], *parts[p]) for p in range(len(parts)))
        mine = [np.array([*found.sum(axis=0), 0.5 * square_norm(W, width)]), gaps, terms.sum(axis=0)]
        reported = gather(self.exchange, mine)
        (loss, total, half), gaps, noted = (np.sum([part[t] for part in reported], axis=0) for t in range(3))
        primal, self.scale = scaling_search.best_point(half, loss, noted)
        return primal, total - half, gaps
