"""Training in shards by the exchange of scores: passes over all examples in batches, and inner passes between them.

Every shard holds all examples, the weights of its own classes, and the dual variables of all, which are sparse. All
walk the same random batches. For each, a shard scores its own classes and publishes the scores of those that hold a
dual variable and of those that may come to hold one; then every shard takes the same exact steps, all at once
(:mod:`solvers.linear.sharded.batches.walk`). Between these passes over all examples come visits of those that gain
most, looking at the classes they hold alone: all shards visit together what lies across them, and then each what
concerns it alone (:mod:`solvers.linear.sharded.inner_pass`).
"""

import numpy as np

from solvers.core.base import State
from solvers.core.problem import Problem
from solvers.labels.costs import total_cost
from solvers.linear.driver.ascent import FIRST_CANDIDATES, LIVE_SHARE, WORTH, most_inner_passes
from solvers.linear.sharded import inner_pass
from solvers.linear.sharded.batches.walk import BatchWalk, largest_batch
from solvers.linear.sharded.task import Phase, Plan, Schedule
from solvers.linear.sharded.training import RelativeTraining
from solvers.numerics.array_types import Array, Floats
from solvers.numerics.rows import ALIGNMENT
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange, gather

# of a mean gain, what an example must have gained for a visit that all shards wait for; a shard's own take less
CROSSING_SHARE = 1.0
# of the gap that a pass lets expect at W, what the first certificate, of the best multiple, is taken at
FIRST_SHARE = 1 / 3


class ScoreTraining(RelativeTraining):
    """One shard of a training by the exchange of scores."""

    takes_lists = True

    def __init__(self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool) -> None:
        n = problem.n_samples
        super().__init__(problem, plan, exchange, thread_pool, 8 * n + largest_batch(plan) * (plan.width + 1))
        shared = (self.examples, self.weights, self.duals, self.unchanged, self.statistics)
        self.batches = BatchWalk(plan, *shared, self.answers, exchange, thread_pool)
        # among the shard's classes
        self.costs = None if plan.costs is None else plan.costs.among(self.shard.own)
        self.batches.schedule.certified_share = FIRST_SHARE
        owned = self.shard.local[problem.y] >= 0
        self.mine = np.flatnonzero(owned & (self.examples.rows.squares > 0)).astype(np.int32)
        self.expected = np.inf

    def restore(self, state: State) -> None:
        super().restore(state)
        self.batches.schedule = Schedule.from_array(state["schedule"])
        self.batches.seen[:], self.batches.gains[:] = state["seen"], state["gains"]

    def state(self) -> dict[str, Array]:
        batches = self.batches
        return super().state() | {"seen": batches.seen, "gains": batches.gains} | {"schedule": batches.schedule.array()}

    def _begin_epoch(self) -> None:
        self._shuffle()
        self.batches.schedule.gain = 0.0

    def _advance(self) -> bool:
        progress = self.progress
        if progress.phase == Phase.PASS:
            # all classes are alike to an example at first, and few candidates as good as many
            width = min(FIRST_CANDIDATES, self.plan.width) if progress.epoch == 1 else self.plan.width
            self.batches.walk(self._next_slice(), width, full=True)
            if progress.position < len(self.order):
                return True
            progress.phase = Phase.INNER_PASSES
        if not self._worth_an_inner_pass():
            return False
        self._inner_pass()
        return True

    def _promising(self) -> bool:
        schedule = self.batches.schedule
        self.expected = schedule.expect(self._estimated_gap())
        return schedule.certified_share * self.expected <= self.plan.tol

    def _estimated_gap(self) -> float:
        """The relative gap that the pass has measured at its visits; every shard estimates the same, without a word.

        Of weights made from dual variables alpha, ``|W|^2 = sum alpha - sum alpha g``, each alpha of the first sum
        times its margin, and the last sum is the losses less the gap.
        """
        gap, loss, _ = self.statistics[0].tolist()
        if gap <= 0.0:
            return 0.0
        costs, linear = self.plan.costs, self.duals.total()
        if costs is not None and not costs.slack:
            linear = float(total_cost(costs, self.examples.y, self.duals.pool))
        return float(min(1.0, 2.0 * gap / (linear + gap + loss)))

    def _certify(self) -> tuple[float, float, Floats]:
        found = self._measure()
        self.batches.seen[:] = found.f_y
        return found.primal, found.dual, self.examples.bounds * found.violation

    def _after_certificate(self, gap: float) -> None:
        # halfway, on the scale of logarithms: a certificate too many costs less than an epoch too many
        schedule, expected = self.batches.schedule, self.expected
        share = float(np.sqrt(schedule.certified_share * gap / expected)) if expected > 0 else 1.0
        schedule.certified_share = min(1.0, share)

    def _worth_an_inner_pass(self) -> bool:
        """Whether what was gained by the last pass, for its cost, promises that another one is worth its time."""
        schedule, done = self.batches.schedule, self.progress.inner_passes
        if not self.plan.inner_passes or done >= most_inner_passes(self.progress.epoch):
            return False
        if done > 0:
            return schedule.gain > WORTH * schedule.gain_per_cost * schedule.cost
        lines = -(-len(self.examples.owner) // (self.exchange.size * ALIGNMENT // self.plan.dtype.itemsize))
        schedule.gain_per_cost = schedule.gain / max(1.0, float((1.0 + lines) * self.lengths[self.order].sum()))
        schedule.mean_gain = schedule.gain / max(1, len(self.order))
        return True

    def _inner_pass(self) -> None:
        """Visit what still gains, across shards and then in each."""
        batches, schedule, (rows, y, bounds, owner) = self.batches, self.batches.schedule, self.examples
        draw = [self.plan.seed, self.progress.epoch, self.progress.inner_passes]
        threshold, schedule.gain = LIVE_SHARE * schedule.mean_gain, 0.0
        costs = 1.5 * self.lengths * self.duals.pool.length
        least = CROSSING_SHARE * schedule.mean_gain
        crossing = inner_pass.crossing(self.duals.pool, y, owner, batches.gains, least)
        crossing = np.random.default_rng(draw).permutation(crossing)
        batches.walk(crossing, self.plan.width, full=False)
        order = inner_pass.worthwhile(self.duals.pool, self.shard, batches.gains, threshold, self.mine)
        order = np.random.default_rng([*draw, self.exchange.rank]).permutation(order)
        fixed = (self.plan.largest_loss, rows, y, bounds, self.weights, self.plan.costs, self.costs)
        changed, gain = inner_pass.visit(*fixed, self.duals.pool, order, batches.gains)
        measured = np.array([gain, float(costs[order].sum()), len(order)])
        parts = gather(self.exchange, [*changed, measured])
        self.duals.pool = inner_pass.enter(self.duals.pool, batches.gains, [part[:-1] for part in parts])
        gained, spent, visits = np.array([part[-1] for part in parts]).T
        schedule.cost = float(spent.max()) + float(costs[crossing].sum())
        schedule.gain += float(gained.sum())
        schedule.mean_gain = schedule.gain / max(1.0, float(visits.sum()) + len(crossing))
        self.progress.inner_passes += 1
