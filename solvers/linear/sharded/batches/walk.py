"""Steps on examples in batches whose scores all shards exchange, and all of which are taken at once.

One message a batch, or two where scoring takes long, so that one travels meanwhile. How much of a batch's steps may
stay (:func:`solvers.linear.sharded.batches.updates.best_part`) shows only in the message after its own.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.labels.costs import Costs
from solvers.linear.sharded.batches import list_batches
from solvers.linear.sharded.batches.batch import (
    Batch,
    empty_batch,
    pack,
    prepare,
    prepare_listed,
    unpack,
    with_examples,
)
from solvers.linear.sharded.batches.updates import (
    BatchUpdates,
    accept,
    apply,
    best_part,
    cross_products,
    empty_updates,
    find,
    undo_part,
    with_capacity,
)
from solvers.linear.sharded.shard_weights import ShardWeights
from solvers.linear.sharded.task import DualLists, Examples, Plan, Schedule, blank_statistics
from solvers.linear.sharded.training import WHOLE, next_batch
from solvers.numerics.array_types import Bytes, Ints32
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Arrays, Exchange, gather

LEAST_BATCH, FIRST_BATCH, LARGEST_BATCH = 8, 256, 1024
# multiply-adds of a shard for a batch, from which on it goes in two messages, one on its way during work on the other
SPLIT_PRODUCTS = 1 << 24


class Part(NamedTuple):
    """A batch, or one of the parts that it is sent in, with room for its updates."""

    batch: Batch
    updates: BatchUpdates


class Pending(NamedTuple):
    """The parts of a batch whose steps are in the weights while it is not known yet whether all of them may stay.

    ``cross`` is the shard's part of the inner products between the steps of different examples.
    """

    parts: list[Part]
    cross: float


class BatchWalk:
    """Walks of one shard over examples, and all that they change beside the dual variables and its weights.

    Attributes
    ----------
    schedule : Schedule
        Of which it adapts the sizes of batches and adds up the gain.
    seen : float64 array, shape (n_samples,)
        Each example's score of its own class, as it was last seen.
    gains : float32 array, shape (n_samples,)
        What each example's last visit has gained.
    unchanged, statistics
        Those of the training: visits with all classes count in them.
    answers : Costs, optional
        Of the shard's answers (:meth:`Costs.of_answers`).
    """

    def __init__(
        self,
        plan: Plan,
        examples: Examples,
        weights: ShardWeights,
        duals: DualLists,
        unchanged: Bytes,
        statistics: NDArray[np.void],
        answers: Costs | None,
        exchange: Exchange,
        thread_pool: ThreadPool,
    ) -> None:
        self.plan, self.examples, self.weights, self.duals = plan, examples, weights, duals
        self.unchanged, self.statistics, self.answers = unchanged, statistics, answers
        self.exchange, self.thread_pool = exchange, thread_pool
        n, first = len(unchanged), plan.batch or FIRST_BATCH
        self.schedule = Schedule(float(first), float(first))
        self.seen, self.gains = np.zeros(n), np.zeros(n, np.float32)
        self.largest = most = largest_batch(plan)
        width = min(plan.width, len(examples.owner))
        # two batches, and the halves of two
        room = (most, -(-most // 2), most, -(-most // 2))
        self.slots = [Part(empty_batch(size, width, plan.dtype), empty_updates(size)) for size in room]
        self.columns = pieces(len(weights.shard.own), thread_pool.size)

    def walk(self, order: Ints32, width: int, *, full: bool) -> None:
        """Steps on the examples of order, which are distinct, in batches; nothing is under way at the end.

        Full ones look at all classes, and at up to ``width`` candidates; others at those that the lists name.
        """
        at, pending = 0, None
        while at < len(order):
            examples = order[at : at + int(self.schedule.full_batch if full else self.schedule.listed_batch)]
            split = [examples] if self._messages(examples, full) == 1 else np.array_split(examples, 2)
            parts = [
                Part(with_examples(slot, self.duals.pool, some), updates)
                for (slot, updates), some in zip(self.slots, split, strict=False)
            ]
            tickets = self._post(parts, 0.0 if pending is None else pending.cross, width, full)
            reported = self.exchange.collect(tickets[0])
            if pending is not None and self._resolve(pending, sum(float(part[0][0]) for part in reported), full):
                for ticket in tickets[1:]:
                    self.exchange.collect(ticket)
                tickets = self._post(parts, 0.0, width, full)
                reported = self.exchange.collect(tickets[0])
            cross = 0.0
            for p, ticket in enumerate(tickets):
                parts[p] = self._find(parts[p], reported if p == 0 else self.exchange.collect(ticket), width, full)
                cross += self._apply(parts[p])
            pending = Pending(parts, cross)
            self.slots = [*self.slots[2:], *parts, *self.slots[len(parts) : 2]]
            at += len(examples)
        if pending is not None:
            reported = gather(self.exchange, [np.array([pending.cross])])
            self._resolve(pending, sum(float(part[0]) for (part,) in reported), full)

    def _messages(self, examples: Ints32, full: bool) -> int:
        """How many messages a batch of these examples goes in."""
        indptr = self.examples.rows.indptr
        products = (
            float((indptr[examples + 1] - indptr[examples]).sum()) * len(self.examples.owner) / self.exchange.size
        )
        return 2 if full and self.exchange.size > 1 and len(examples) > 1 and products >= SPLIT_PRODUCTS else 1

    def _post(self, parts: list[Part], cross: float, width: int, full: bool) -> list[int]:
        """Score a batch and send what is found, part by part; the tickets. The first message has cross, too."""
        rows, y, bounds, _ = self.examples
        shard, lists, pool = self.weights.shard, self.weights.lists, self.duals.pool
        tickets = []
        for batch, _ in parts:
            work: Callable[[int, int], None] = partial(prepare_listed, rows, shard, pool, batch)
            if full:
                fixed = (self.plan.largest_loss, rows, y, bounds, shard, lists, pool, self.seen, self.answers)
                work = partial(prepare, *fixed, batch, width)
            elif lists is not None:
                work = partial(list_batches.prepare_listed, rows, shard, lists, pool, batch)
            some = pieces(len(batch.examples), 1 if self.thread_pool.size == 1 else 4 * self.thread_pool.size)
            self.thread_pool.run(partial(work, begin, end) for begin, end in some)
            tickets.append(self.exchange.post(pack(batch, y, shard, pool, cross)))
            cross = 0.0
        return tickets

    def _find(self, part: Part, reported: list[Arrays], width: int, full: bool) -> Part:
        """The part with its updates, found from what all shards have reported of it."""
        (batch, updates), pool = part, self.duals.pool
        rows, y, bounds, owner = self.examples
        costs = self.plan.costs
        unpack(reported, batch, y, owner, pool, width, costs)
        n = len(batch.examples)
        updates = with_capacity(updates, int(batch.first[n] + batch.counts[:n].sum()) + n)
        statistics = self.statistics if full else blank_statistics()
        fixed = (self.plan.largest_loss, rows.squares, y, bounds, costs)
        find(*fixed, batch, pool, updates, self.seen, self.gains, statistics)
        if full:
            examples, moved = batch.examples, np.diff(updates.first[: n + 1]) > 0
            self.unchanged[examples] = np.where(moved, 0, np.minimum(self.unchanged[examples], 254) + 1)
        else:
            self.unchanged[batch.examples[np.diff(updates.first[: n + 1]) > 0]] = 0
        return Part(batch, updates)

    def _apply(self, part: Part) -> float:
        """Add the updates to the shard's weights; its part of the inner products that :func:`best_part` asks for."""
        (batch, updates), rows, shard, lists = part, self.examples.rows, self.weights.shard, self.weights.lists
        if lists is None:
            args = (rows, shard, batch, updates)
            self.thread_pool.run(partial(apply, *args, *columns) for columns in self.columns)
        else:
            at = 0
            while (at := list_batches.apply(rows, shard, lists, batch, updates, at)) < len(batch.examples):
                lists = self.weights.with_capacity()
        return float(cross_products(shard, updates, len(batch.examples)))

    def _take_back(self, part: Part, share: float) -> None:
        """Take a share of the updates off the shard's weights again."""
        (batch, updates), rows, shard, lists = part, self.examples.rows, self.weights.shard, self.weights.lists
        if lists is None:
            args = (rows, shard, batch, updates, share)
            self.thread_pool.run(partial(undo_part, *args, *columns) for columns in self.columns)
        else:
            list_batches.undo_part(rows, shard, lists, batch, updates, share)

    def _resolve(self, pending: Pending, cross: float, full: bool) -> bool:
        """Decide how much of a batch's updates to take; whether some had to be taken off the weights again."""
        linear, square = np.sum([updates.sums for _, updates in pending.parts], axis=0).tolist()
        square += 2.0 * cross
        best = best_part(linear, square)
        part = 1.0 if best >= WHOLE else best
        for batch, updates in pending.parts:
            if part < 1.0:
                self._take_back(Part(batch, updates), 1.0 - part)
            n = len(batch.examples)
            accept(batch, updates, self.examples.y, self.duals.reserve(int(updates.start[n]) + n), part)
        self.schedule.gain += part * linear - 0.5 * part**2 * square
        if full:
            self.schedule.full_batch = next_batch(self.schedule.full_batch, best, LEAST_BATCH, self.largest)
        else:
            self.schedule.listed_batch = next_batch(self.schedule.listed_batch, best, LEAST_BATCH, self.largest)
        return part < 1.0


def largest_batch(plan: Plan) -> int:
    """Examples a batch, at most."""
    return max(LARGEST_BATCH, plan.batch or FIRST_BATCH)
