"""One shard of a training by the exchange of scores: a generator of steps over the classes that it owns.

Every shard holds all examples, the weights of its own classes, and the dual variables of all, which are sparse. All
walk the same random batches. For each, a shard scores its own classes and publishes the scores of those that hold a
dual variable and of those that may come to hold one; then every shard takes the same exact steps, all at once
(:mod:`solvers.linear.sharded.batch_updates`), and adds to its weights what concerns its own classes: one message a
batch, or two where scoring takes long, so that one travels meanwhile. Between these passes over all examples come
visits of those that gain most, looking at the classes they hold alone: all shards visit together what lies across them,
and then each what concerns it alone (:mod:`solvers.linear.sharded.refining`).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.core.problem import Problem
from solvers.linear.ascent import (
    CERTIFY_SHARE,
    FIRST_CANDIDATES,
    FIRST_REFINEMENTS,
    LIVE_SHARE,
    MOST_REFINEMENTS,
    WORTH,
    bounded,
    foretold,
)
from solvers.linear.sharded import refining
from solvers.linear.sharded.batch import Batch, Shard, empty_batch, prepare, prepare_listed, with_examples
from solvers.linear.sharded.batch_updates import (
    Moves,
    apply,
    best_part,
    cross_products,
    empty_moves,
    find,
    settle,
    take_back,
    with_room,
)
from solvers.linear.sharded.certificate import Data, certify
from solvers.linear.sharded.message import pack, unpack
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import awake
from solvers.numerics.rows import ALIGNMENT, arrange, weights
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Arrays, Exchange, gather
from solvers.sharding.partition import partition_classes

SLICE_PRODUCTS = 1 << 31
# of a shard for a batch, from which on the batch goes in two messages, one of them on its way during work on the other
SPLIT_PRODUCTS = 1 << 24
LEAST_BATCH, FIRST_BATCH, LARGEST_BATCH = 8, 256, 1024
WHOLE, GROW_ABOVE = 0.6, 0.9
SHRINK, GROW = 0.7, 1.25
# where the clock and the pace of a state keep what; batch sizes are two, of visits with listed and with all classes
EPOCH, POSITION, CERTIFIED, REFINED, PHASE = range(5)
WALKING, REFINING, ENDED = range(3)
PASS_GAIN, RATE, COST, MEAN, ESTIMATE, SHARE, SIZE = range(7)
# of a mean gain, what an example must have gained for a visit that all shards wait for; a shard's own take less
CROSSING_SHARE = 1.0
# of the gap that a pass lets expect at W, what the first certificate, of the best multiple, is ventured at
FIRST_SHARE = 1 / 3


class Plan(NamedTuple):
    """How to train.

    Attributes
    ----------
    kind : int
        Of the subproblem: ``BOX`` or ``SIMPLEX``.
    C, tol : float
    max_epochs : int
    dtype : dtype
        Of the weights and the scores.
    seed : int
    loss_at_zero : float
        The loss of an example without features.
    refine : bool
        Visit, between the passes over all examples, what concerns each shard alone.
    batch : int
        Examples a batch at first; it grows and shrinks as the steps of its examples agree.
    width : int
        Candidates of an example beside the held classes, at most.
    """

    kind: int
    C: float
    tol: float
    max_epochs: int
    dtype: np.dtype[Any]
    seed: int
    loss_at_zero: float
    refine: bool = True
    batch: int = FIRST_BATCH
    width: int = 128


def train(
    problem: Problem, plan: Plan, exchange: Exchange, threads: int = 1, state: State | None = None
) -> Iterator[Step]:
    """Train this shard's classes; every shard yields the same steps, each with its own weights in the state.

    Parameters
    ----------
    problem : Problem
        The whole problem, the same in every shard.
    plan : Plan
    exchange : Exchange
    threads : int
        Threads of this shard; the result does not depend on it.
    state : mapping, optional
        Of this shard, from an earlier step of a run with as many shards; the rest of that run is repeated bit by bit.

    Raises
    ------
    ExchangeError
        A peer is lost; the caller resumes all shards from states of one step.
    """
    with ThreadPool(threads) as thread_pool:
        yield from _Training(problem, plan, exchange, thread_pool, state).steps()


class _Part(NamedTuple):
    """A batch, or one of the parts that it is sent in, with room for its moves."""

    batch: Batch
    moves: Moves


class _Pending(NamedTuple):
    """The parts of a batch whose moves are in the weights while it is not known yet whether all of them may stay."""

    parts: list[_Part]
    cross: float


class _Training:
    def __init__(
        self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool, state: State | None
    ) -> None:
        self.plan, self.exchange, self.thread_pool = plan, exchange, thread_pool
        rows, _ = arrange(problem.X, plan.dtype)
        n, k = problem.n_samples, problem.n_classes
        d = max(int(rows.indices.max(initial=0)) + 1, 1)
        self.data = Data(rows, problem.y, plan.C * problem.weights, partition_classes(problem.y, k, exchange.size))
        own = np.flatnonzero(self.data.owner == exchange.rank).astype(np.int32)
        local = np.full(k, -1, np.int32)
        local[own] = np.arange(len(own), dtype=np.int32)
        self.shard = Shard(own, local, weights(d, len(own), plan.dtype))
        self.mine = np.flatnonzero((local[problem.y] >= 0) & (rows.squares > 0)).astype(np.int32)
        self.lengths = np.diff(rows.indptr).astype(np.float64)
        self.largest = most = max(LARGEST_BATCH, plan.batch)
        room = (most, -(-most // 2), most, -(-most // 2))
        self.slots = [_Part(empty_batch(n, min(plan.width, k), plan.dtype), empty_moves(n)) for n in room]
        self.columns = pieces(len(own), thread_pool.size)
        self.constant = float(self.data.bounds[rows.squares == 0].sum()) * plan.loss_at_zero
        if state is None:
            self.pool = coefficients.empty(n, 8 * n + most * (plan.width + 1))
            self.seen, self.rest, self.gains = np.zeros(n), np.zeros(n, np.uint8), np.zeros(n, np.float32)
            self.order, self.tally = np.empty(0, np.int32), np.zeros(3)
            self.clock, self.pace = np.array([0, 0, 0, 0, ENDED]), np.zeros(SIZE + 2)
            self.pace[ESTIMATE], self.pace[SHARE], self.pace[SIZE:] = 1.0, FIRST_SHARE, plan.batch
            self.scale = np.ones(1)
        else:
            self.shard.W[:, : len(own)] = state["W"][:, : len(own)]
            self.pool = Coefficients(*(np.array(state[f"pool_{name}"]) for name in Coefficients._fields))
            self.seen, self.rest, self.gains, self.order, self.tally, self.clock, self.pace, self.scale = (
                np.array(state[name]) for name in ("seen", "rest", "gains", "order", "tally", "clock", "pace", "scale")
            )

    def steps(self) -> Iterator[Step]:
        """Slices of a pass over all examples, then refining passes, then, at the end of an epoch, its bounds."""
        plan, rest, tally, clock = self.plan, self.rest, self.tally, self.clock
        visited = np.flatnonzero(self.data.rows.squares > 0).astype(np.int32)
        n = len(rest)
        while True:
            if clock[PHASE] == ENDED:
                if clock[EPOCH] == plan.max_epochs:
                    return
                clock[[EPOCH, POSITION, REFINED, PHASE]] = clock[EPOCH] + 1, 0, 0, WALKING
                epoch = int(clock[EPOCH])
                self.order = np.random.default_rng([plan.seed, epoch]).permutation(awake(visited, rest, epoch))
                tally[:], self.pace[PASS_GAIN] = 0.0, 0.0
            if clock[PHASE] == WALKING:
                position = int(clock[POSITION])
                work = np.cumsum(self.lengths[self.order[position:]]) * len(self.data.owner)
                stop = position + min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
                self._walk(self.order[position:stop], full=True)
                clock[POSITION] = stop
                if stop < len(self.order):
                    yield self._step(np.nan, np.nan, converged=False)
                    continue
                clock[PHASE] = REFINING
            if self._refine():
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[PHASE] = ENDED
            expected = self._expected_gap()
            promising = self.pace[SHARE] * expected <= plan.tol
            due = CERTIFY_SHARE * clock[EPOCH] >= 1 + clock[CERTIFIED] or clock[EPOCH] == plan.max_epochs
            if not (promising or due):
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[CERTIFIED] += 1
            found = certify(plan.kind, self.data, self.shard, self.pool, self.thread_pool, self.exchange)
            primal, self.scale[0] = found.primal + self.constant, found.scale
            dual = bounded(primal, found.dual + self.constant, plan.dtype)
            self.seen[:] = found.f_y
            gap = relative_gap(primal, dual)
            converged = gap <= plan.tol
            # halfway, on the scale of logarithms: a certificate too many costs less than an epoch too many
            self.pace[SHARE] = min(1.0, np.sqrt(self.pace[SHARE] * gap / expected)) if expected > 0.0 else 1.0
            rest[self.data.bounds * found.violation > 0.1 * plan.tol * primal / n] = 0
            yield self._step(primal, dual, converged=converged)
            if converged:
                return

    def _step(self, primal: float, dual: float, *, converged: bool) -> Step:
        arrays = {"W": self.shard.W, "own": self.shard.own, "seen": self.seen, "rest": self.rest, "order": self.order}
        arrays |= {
            "gains": self.gains,
            "tally": self.tally,
            "clock": self.clock,
            "pace": self.pace,
            "scale": self.scale,
        }
        arrays |= {f"pool_{name}": array for name, array in self.pool._asdict().items()}
        return Step(int(self.clock[0]), primal, dual, float(self.tally[2]), converged, arrays)

    def _expected_gap(self) -> float:
        """The relative gap to be expected after the pass that has ended; every shard expects the same, without a word.

        The pass has told the gap and the losses at its visits. Of weights made from dual variables alpha,
        ``|W|^2 = sum alpha - sum alpha g``, and the last sum is the losses less the gap. By how much one more pass
        lowers the gap is taken from the two last.
        """
        gap, loss, _ = self.tally.tolist()
        total = float(self.pool.values[self.pool.start[self.pool.length > 0]].sum())
        estimate = min(1.0, 2.0 * gap / (total + gap + loss)) if gap > 0.0 else 0.0
        return foretold(estimate, self.pace, ESTIMATE)

    def _walk(self, order: NDArray[np.int32], *, full: bool) -> None:
        """Steps on the examples of order, which are distinct, in batches; nothing is under way at the end.

        Full ones look at all classes, others at those that the examples' lists name.
        """
        at, pending = 0, None
        while at < len(order):
            examples = order[at : at + int(self.pace[SIZE + full])]
            split = [examples] if self._messages(examples, full) == 1 else np.array_split(examples, 2)
            parts = [
                _Part(with_examples(slot, self.pool, some), moves)
                for (slot, moves), some in zip(self.slots, split, strict=False)
            ]
            tickets = self._post(parts, 0.0 if pending is None else pending.cross, full)
            told = self.exchange.collect(tickets[0])
            if pending is not None and self._resolve(pending, sum(float(part[0][0]) for part in told), full):
                for ticket in tickets[1:]:
                    self.exchange.collect(ticket)
                tickets = self._post(parts, 0.0, full)
                told = self.exchange.collect(tickets[0])
            cross = 0.0
            for p, ticket in enumerate(tickets):
                parts[p] = self._moved(parts[p], told if p == 0 else self.exchange.collect(ticket), full)
                cross += self._apply(parts[p])
            pending = _Pending(parts, cross)
            self.slots = [*self.slots[2:], *parts, *self.slots[len(parts) : 2]]
            at += len(examples)
        if pending is not None:
            told = gather(self.exchange, [np.array([pending.cross])])
            self._resolve(pending, sum(float(part[0]) for (part,) in told), full)

    def _messages(self, examples: NDArray[np.int32], full: bool) -> int:
        """How many messages a batch of these examples goes in."""
        products = self.lengths[examples].sum() * len(self.data.owner) / self.exchange.size
        return 2 if full and self.exchange.size > 1 and len(examples) > 1 and products >= SPLIT_PRODUCTS else 1

    @property
    def width(self) -> int:
        """Candidates of an example, at most; few as long as all classes are alike to it."""
        return min(FIRST_CANDIDATES, self.plan.width) if self.clock[EPOCH] == 1 else self.plan.width

    def _post(self, parts: list[_Part], cross: float, full: bool) -> list[int]:
        """Score a batch and send what is found, part by part; the tickets. The first message has cross, too."""
        data, pool = self.data, self.pool
        tickets = []
        for batch, _ in parts:
            if full:
                args = (data.rows, data.y, data.bounds, self.shard, pool, self.seen, batch, self.width)
                work: Callable[[int, int], None] = partial(prepare, self.plan.kind, *args)
            else:
                work = partial(prepare_listed, data.rows, data.y, self.shard, pool, batch)
            some = pieces(len(batch.examples), 1 if self.thread_pool.size == 1 else 4 * self.thread_pool.size)
            self.thread_pool.run(partial(work, begin, end) for begin, end in some)
            tickets.append(self.exchange.post(pack(batch, data.y, self.shard, pool, cross)))
            cross = 0.0
        return tickets

    def _moved(self, part: _Part, told: list[Arrays], full: bool) -> _Part:
        """The part with its moves, found from what all shards have told of it."""
        (batch, moves), data = part, self.data
        unpack(told, batch, data.y, data.owner, self.pool, self.width)
        n = len(batch.examples)
        moves = with_room(moves, int(batch.first[n] + batch.counts[:n].sum()) + n)
        find(
            self.plan.kind, data.rows.squares, data.y, data.bounds, batch, self.pool, moves, self.seen, self.rest,
            self.gains, self.tally, full,
        )  # fmt: skip
        return _Part(batch, moves)

    def _apply(self, part: _Part) -> float:
        """Add the moves to the shard's weights; its part of the inner products that :func:`best_part` asks for."""
        batch, moves = part
        self.thread_pool.run(
            partial(apply, self.data.rows, self.shard, batch, moves, *columns) for columns in self.columns
        )
        return float(cross_products(self.shard, moves, len(batch.examples)))

    def _resolve(self, pending: _Pending, cross: float, full: bool) -> bool:
        """Settle how much of a batch's moves to take; whether some had to be taken off the weights again."""
        linear, square = np.sum([moves.sums for _, moves in pending.parts], axis=0).tolist()
        square += 2.0 * cross
        best = best_part(linear, square)
        part = 1.0 if best >= WHOLE else best
        for batch, moves in pending.parts:
            if part < 1.0:
                args = (self.data.rows, self.shard, batch, moves, 1.0 - part)
                self.thread_pool.run(partial(take_back, *args, begin, end) for begin, end in self.columns)
            n = len(batch.examples)
            self.pool = coefficients.with_room(self.pool, int(moves.start[n]) + n)
            settle(batch, moves, self.data.y, self.pool, part)
        self.pace[PASS_GAIN] += part * linear - 0.5 * part**2 * square
        factor = SHRINK if best < WHOLE else GROW if best > GROW_ABOVE else 1.0
        self.pace[SIZE + full] = np.clip(factor * self.pace[SIZE + full], LEAST_BATCH, self.largest)
        return part < 1.0

    def _refine(self) -> bool:
        """A pass over what still gains, if it is worth its time, across shards and in each; whether there was one."""
        epoch, refined = int(self.clock[EPOCH]), int(self.clock[REFINED])
        if not self.plan.refine or refined >= min(FIRST_REFINEMENTS + epoch, MOST_REFINEMENTS):
            return False
        if refined == 0:
            lines = -(-len(self.data.owner) // (self.exchange.size * ALIGNMENT // self.plan.dtype.itemsize))
            self.pace[RATE] = self.pace[PASS_GAIN] / max(1.0, (1.0 + lines) * self.lengths[self.order].sum())
            self.pace[MEAN] = self.pace[PASS_GAIN] / max(1, len(self.order))
        elif self.pace[PASS_GAIN] <= WORTH * self.pace[RATE] * self.pace[COST]:
            return False
        threshold, self.pace[PASS_GAIN] = LIVE_SHARE * self.pace[MEAN], 0.0
        price = 1.5 * self.lengths * self.pool.length
        least = CROSSING_SHARE * self.pace[MEAN]
        crossing = refining.crossing(self.pool, self.data.y, self.data.owner, self.gains, least)
        crossing = np.random.default_rng([self.plan.seed, epoch, refined]).permutation(crossing)
        self._walk(crossing, full=False)
        order = refining.worthwhile(self.pool, self.shard, self.gains, threshold, self.mine)
        order = np.random.default_rng([self.plan.seed, epoch, refined, self.exchange.rank]).permutation(order)
        changed, gain = refining.visit(
            self.plan.kind, self.data.rows, self.data.y, self.data.bounds, self.shard, self.pool, order, self.gains
        )
        parts = gather(self.exchange, [*changed, np.array([gain, float(price[order].sum()), len(order)])])
        self.pool = refining.enter(self.pool, self.gains, [part[:-1] for part in parts])
        gained, costs, visits = np.array([part[-1] for part in parts]).T
        self.pace[COST] = costs.max() + float(price[crossing].sum())
        self.pace[PASS_GAIN] += gained.sum()
        self.pace[MEAN] = self.pace[PASS_GAIN] / max(1.0, visits.sum() + len(crossing))
        self.clock[REFINED] += 1
        return True
