"""Training in shards by the exchange of sums of dual variables: exact block steps of batches.

All shards walk the same random batches. For each, a shard scores its classes; then all find the roots of the block
steps of the whole batch, a Newton step a round: all that an example's variables have in common is their signed sum
(:mod:`solvers.linear.steps.absolute_parts`). The steps are taken all at once, and of them the best part is kept;
whether that is all of them shows with the next batch.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from solvers.core.base import State
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem
from solvers.linear.sharded.task import Plan, blank_statistics
from solvers.linear.sharded.training import WHOLE, ShardTraining, next_batch
from solvers.linear.steps import absolute, absolute_parts
from solvers.linear.steps.absolute import Margins
from solvers.linear.steps.absolute_parts import Batch
from solvers.linear.visits import Task
from solvers.numerics import scaling_search
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.rows import square_norm, weights
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Arrays, Exchange, gather, reduce

LEAST_BATCH, FIRST_BATCH, LARGEST_BATCH = 4, 64, 256
MOST_ROUNDS, EXACT = 60, 1e-7
# the pieces of a phase do not depend on the number of threads, as sums of floats depend on them
COLUMNS, PARTS = 512, 16


class SumToZeroTraining(ShardTraining):
    """One shard of a machine with absolute margins that sums the losses of an example.

    The weights of all classes add up to zero, and the dual variables are not sparse: each shard holds those of its own
    classes, with their weights. A subclass says what the shards exchange to take steps; ``margins`` are not shared.
    """

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


class _Pending(NamedTuple):
    """Steps of a batch that are in the weights while it is not known yet whether all of them may stay.

    ``report`` is what the other shards have to know of them: linear term, squared lengths and inner products of the
    steps, and which examples have moved.
    """

    batch: Batch
    totals: Floats
    report: Arrays


_NOTHING: Arrays = [np.zeros(3), np.zeros(0, np.uint8)]


class SumTraining(SumToZeroTraining):
    """One shard of a training by the exchange of sums of dual variables."""

    def __init__(
        self, problem: Problem, plan: Plan, margins: Margins, exchange: Exchange, thread_pool: ThreadPool
    ) -> None:
        super().__init__(problem, plan, margins, exchange, thread_pool)
        self.batch = float(plan.batch or FIRST_BATCH)
        self.largest = most = max(LARGEST_BATCH, int(self.batch))
        self.b, self.visits = np.empty((most, len(self.shard.own))), blank_statistics(most)
        self.buffers = [self._buffers(most) for _ in range(2)]

    def restore(self, state: State) -> None:
        super().restore(state)
        self.totals[:], self.batch = state["totals"], float(state["batch"][0])

    def state(self) -> dict[str, Array]:
        return super().state() | {"totals": self.totals, "batch": np.array([self.batch])}

    def _begin_epoch(self) -> None:
        self._shuffle()

    def _advance(self) -> bool:
        self._walk(self._next_slice())
        self._report()
        return self.progress.position < len(self.order)

    def _buffers(self, most: int) -> Batch:
        """For so many examples; all have the same b, which nothing needs once the steps are found."""
        shape, dtype, nobody = (most, len(self.shard.own)), self.plan.dtype, np.zeros(0, np.int32)
        return Batch(nobody, weights(*shape, dtype), self.b, np.empty(shape, dtype), np.empty(shape, dtype))

    def _walk(self, order: Ints32) -> None:
        """Steps on the examples of order, which are distinct, in batches; nothing is under way at the end."""
        at, pending = 0, None
        while at < len(order):
            examples = order[at : at + int(self.batch)]
            batch = self.buffers[0]._replace(examples=examples)
            self._prepare(examples, batch.f)
            T, every = self.totals[examples], np.arange(len(examples))
            parts = gather(
                self.exchange, [*(_NOTHING if pending is None else pending.report), *self._at(examples, T, every)]
            )
            if pending is not None and self._resolve(pending, parts):
                self._prepare(examples, batch.f)
                parts = gather(self.exchange, [*_NOTHING, *self._at(examples, T, every)])
            self._note(self.visits[: len(examples)])
            T, totals = self._roots(examples, T, [part[2:] for part in parts])
            pending = self._move(batch, T, totals)
            self.buffers.reverse()
            at += len(examples)
        if pending is not None:
            self._resolve(pending, gather(self.exchange, pending.report))

    def _prepare(self, examples: Ints32, f: Array) -> None:
        visits = self.visits.view(np.float64).reshape(-1, 3)
        changing = (self.shard.W, self.alpha, self.totals, examples, f, self.b, visits)
        work = partial(absolute_parts.prepare, self.task, self.margins, *changing)
        self.thread_pool.run(partial(work, *stops) for stops in pieces(len(examples), PARTS))

    def _at(self, examples: Ints32, T: Floats, which: Ints) -> Arrays:
        """The shard's share of the sums at T, of some examples of the batch, and how many variables are free."""
        sums, free = np.empty(len(which)), np.empty(len(which), np.int32)
        fixed = (self.task.y, self.task.bounds, self.k, self.margins)
        work = partial(absolute_parts.evaluate, *fixed, examples, self.b, T, which, sums, free)
        self.thread_pool.run(partial(work, *stops) for stops in pieces(len(which), PARTS))
        return [sums, free]

    def _roots(self, examples: Ints32, T: Floats, parts: list[Arrays]) -> tuple[Floats, Floats]:
        """Where the signed sum of each example's variables is T: Newton inside a bracket, an iteration a round.

        Returns the last T that was looked at, and the sums there.
        """
        _, _, own_share, other_share, _ = self.margins
        bounds = self.examples.bounds[examples]
        # a little wider than the sums can be: a root at their end, all variables at their bounds, is a common one
        low, high = -(1.0 + EXACT) * other_share * bounds * (self.k - 1), (1.0 + EXACT) * own_share * bounds
        T, totals = T.copy(), np.empty(len(T))
        which = np.arange(len(T))
        for _ in range(MOST_ROUNDS):
            sums, free = (np.sum([part[t] for part in parts], axis=0) for t in range(2))
            at, totals[which] = T[which], sums
            F = sums - at
            low[which] = np.where(F > 0.0, at, low[which])
            high[which] = np.where(F < 0.0, at, high[which])
            a, b = low[which], high[which]
            following = at + F / np.maximum(1.0 - free / self.k, 1e-12)
            following = np.where((a < following) & (following < b), following, 0.5 * (a + b))
            scale = np.maximum(np.maximum(np.abs(a), np.abs(b)), bounds[which])
            on = (np.abs(F) > EXACT * scale) & (following != at) & (b - a > 4e-16 * scale)
            which = which[on]
            if len(which) == 0:
                break
            T[which] = following[on]
            parts = gather(self.exchange, self._at(examples, T, which))
        return T, totals

    def _move(self, batch: Batch, T: Floats, totals: Floats) -> _Pending:
        """Find the steps of the shard's weights and make them."""
        examples, n = batch.examples, len(batch.examples)
        changed, figures = np.zeros(n, np.uint8), np.zeros((n, 2))
        mean = (totals - self.totals[examples]) / self.k
        work = partial(absolute_parts.find, self.task, self.margins, batch, self.alpha, T, mean, changed, figures)
        self.thread_pool.run(partial(work, *stops) for stops in pieces(n, PARTS))
        cross = np.zeros((len(self.columns), 1))
        args = (self.task.rows, examples, batch.f, batch.steps, self.shard.W)
        self.thread_pool.run(
            partial(absolute_parts.apply, *args, *self.columns[p], cross[p]) for p in range(len(self.columns))
        )
        report = [np.array([*figures.sum(axis=0), cross.sum()]), changed]
        return _Pending(batch, totals, report)

    def _resolve(self, pending: _Pending, parts: list[Arrays]) -> bool:
        """Decide how much of the steps to take; whether some had to be taken off the weights again."""
        linear, square, cross = np.sum([part[0] for part in parts], axis=0)
        best = best_multiple(linear, square + 2.0 * cross, 1.0)
        part = 1.0 if best >= WHOLE else max(best, 0.0)
        examples = pending.batch.examples
        if part < 1.0:
            args = (self.task.rows, examples, pending.batch.steps, self.shard.W, 1.0 - part)
            self.thread_pool.run(partial(absolute_parts.undo_part, *args, *stops) for stops in self.columns)
        absolute_parts.accept(examples, pending.batch.new, part, self.alpha)
        self.totals[examples] += part * (pending.totals - self.totals[examples])
        moved = np.any([part[1] for part in parts], axis=0)
        self.unchanged[examples] = np.where(moved, 0, np.minimum(self.unchanged[examples], 254) + 1)
        self.batch = next_batch(self.batch, best, LEAST_BATCH, self.largest)
        return part < 1.0
