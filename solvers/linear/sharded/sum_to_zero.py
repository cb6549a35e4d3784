"""One shard of a machine with absolute margins that sums the losses of an example: a generator of steps.

The weights of all classes add up to zero, and the dual variables are not sparse: each shard holds those of its own
classes, with their weights. All shards walk the same random batches. For each, a shard scores its classes; then all
find the roots of the block steps of the whole batch, a Newton step a round: all that an example's variables have in
common is their signed sum (:mod:`solvers.linear.steps.absolute_parts`). The steps are taken all at once, and of them
the best part is kept; whether that is all of them is told with the next batch.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem
from solvers.linear.ascent import CERTIFY_SHARE, bounded
from solvers.linear.sharded.shard import GROW, GROW_ABOVE, SHRINK, SLICE_PRODUCTS, WHOLE
from solvers.linear.steps import absolute_parts as kernels
from solvers.linear.steps.absolute import Margins
from solvers.numerics import scaling_search
from solvers.numerics.orders import awake
from solvers.numerics.rows import arrange, square_norm, weights
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Arrays, Exchange, gather, reduce
from solvers.sharding.partition import partition_classes

LEAST_BATCH, FIRST_BATCH, LARGEST_BATCH = 4, 64, 256
# the pieces of a phase do not depend on the number of threads, as sums of floats depend on them
COLUMNS, PARTS = 512, 16
MOST_ROUNDS, EXACT = 60, 1e-7
EPOCH, POSITION, CERTIFIED, WALKING = range(4)


class Plan(NamedTuple):
    """How to train.

    Attributes
    ----------
    margins : Margins
        Not shared.
    C, tol : float
    max_epochs : int
    dtype : dtype
        Of weights, scores and dual variables.
    seed : int
    loss_at_zero : float
        The loss of an example without features.
    batch : int
        Examples a batch at first; it grows and shrinks as the steps of its examples agree.
    """

    margins: Margins
    C: float
    tol: float
    max_epochs: int
    dtype: np.dtype[Any]
    seed: int
    loss_at_zero: float
    batch: int = FIRST_BATCH


def train(
    problem: Problem, plan: Plan, exchange: Exchange, threads: int = 1, state: State | None = None
) -> Iterator[Step]:
    """Train this shard's classes; every shard yields the same steps, each with its own columns in the state.

    Parameters
    ----------
    problem : Problem
        The whole problem, the same in every shard.
    plan : Plan
    exchange : Exchange
    threads : int
        Threads of this shard; the result does not depend on it.
    state : mapping, optional
        Of this shard, from an earlier step; with as many shards, the rest of that run is repeated bit by bit.

    Raises
    ------
    ExchangeError
        A peer is lost; the caller resumes all shards from states of one step.
    """
    with ThreadPool(threads) as thread_pool:
        yield from _Training(problem, plan, exchange, thread_pool, state).steps()


class _Moves(NamedTuple):
    """Steps of a batch that are in the weights while it is not known yet whether all of them may stay.

    ``told`` is what the other shards have to know of them: linear term, squared lengths and inner products of the
    steps, and which examples have moved.
    """

    examples: NDArray[np.int32]
    f: NDArray[Any]
    new: NDArray[Any]
    steps: NDArray[Any]
    totals: NDArray[np.float64]
    told: Arrays


_NOTHING: Arrays = [np.zeros(3), np.zeros(0, np.uint8)]


class _Training:
    def __init__(
        self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool, state: State | None
    ) -> None:
        self.plan, self.exchange, self.thread_pool = plan, exchange, thread_pool
        self.rows, _ = arrange(problem.X, plan.dtype)
        n, self.k = problem.n_samples, problem.n_classes
        d = max(int(self.rows.indices.max(initial=0)) + 1, 1)
        owner = partition_classes(problem.y, self.k, exchange.size)
        self.own = np.flatnonzero(owner == exchange.rank).astype(np.int32)
        local = np.full(self.k, -1, np.int32)
        local[self.own] = np.arange(len(self.own), dtype=np.int32)
        self.labels, self.bounds = local[problem.y], plan.C * problem.weights
        self.W = weights(d, len(self.own), plan.dtype)
        self.alpha = np.zeros((n, len(self.own)), plan.dtype)
        self.lengths = np.diff(self.rows.indptr).astype(np.float64)
        self.constant = float(self.bounds[self.rows.squares == 0].sum()) * plan.loss_at_zero
        self.largest = most = max(LARGEST_BATCH, plan.batch)
        self.buffers = [self._buffers(most) for _ in range(2)]
        self.b, self.tallies = np.empty((most, len(self.own))), np.zeros((most, 3))
        self.columns = pieces(len(self.own), -(-len(self.own) // COLUMNS))
        self.totals, self.rest, self.order = np.zeros(n), np.zeros(n, np.uint8), np.empty(0, np.int32)
        self.tally, self.mine, self.clock = np.zeros(3), np.zeros(3), np.zeros(4, np.int64)
        self.pace, self.scale = np.array([float(plan.batch)]), np.ones(1)
        if state is not None:
            self.W[:, : len(self.own)] = state["W"][:, : len(self.own)]
            self.alpha[:] = state["alpha"][:, : len(self.own)]
            for name in ("totals", "rest", "order", "tally", "clock", "pace", "scale"):
                setattr(self, name, np.array(state[name]))

    def steps(self) -> Iterator[Step]:
        """Slices of a pass over all examples and, at the end of an epoch, its bounds."""
        plan, clock, n = self.plan, self.clock, len(self.rest)
        visited = np.flatnonzero(self.rows.squares > 0).astype(np.int32)
        while True:
            if not clock[WALKING]:
                if clock[EPOCH] == plan.max_epochs:
                    return
                clock[[EPOCH, POSITION, WALKING]] = clock[EPOCH] + 1, 0, 1
                epoch = int(clock[EPOCH])
                rng = np.random.default_rng([plan.seed, epoch])
                self.order = rng.permutation(awake(visited, self.rest, epoch))
                self.tally[:] = 0.0
            position = int(clock[POSITION])
            work = np.cumsum(self.lengths[self.order[position:]]) * self.k
            stop = position + min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
            self._walk(self.order[position:stop])
            clock[POSITION] = stop
            square = self._add_up()
            if stop < len(self.order):
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[WALKING] = 0
            promising = self.tally[0] <= plan.tol * (self.tally[1] + 0.5 * square)
            due = CERTIFY_SHARE * clock[EPOCH] >= 1 + clock[CERTIFIED] or clock[EPOCH] == plan.max_epochs
            if not (promising or due):
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[CERTIFIED] += 1
            primal, dual, gaps = self._certify()
            dual = bounded(primal, dual, plan.dtype)
            converged = relative_gap(primal, dual) <= plan.tol
            self.rest[gaps > 0.1 * plan.tol * primal / n] = 0
            yield self._step(primal, dual, converged=converged)
            if converged:
                return

    def _step(self, primal: float, dual: float, *, converged: bool) -> Step:
        arrays = {"W": self.W, "alpha": self.alpha, "own": self.own, "totals": self.totals, "rest": self.rest}
        arrays |= {"order": self.order, "tally": self.tally, "clock": self.clock, "pace": self.pace}
        arrays["scale"] = self.scale
        return Step(int(self.clock[EPOCH]), primal, dual, float(self.tally[2]), converged, arrays)

    def _buffers(self, most: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Scores, new variables and steps of a batch."""
        shape, dtype = (most, len(self.own)), self.plan.dtype
        return weights(*shape, dtype), np.empty(shape, dtype), np.empty(shape, dtype)

    def _walk(self, order: NDArray[np.int32]) -> None:
        """Steps on the examples of order, which are distinct, in batches; nothing is under way at the end."""
        at, pending = 0, None
        while at < len(order):
            examples = order[at : at + int(self.pace[0])]
            f, new, steps = self.buffers[0]
            self._prepare(examples, f)
            T, every = self.totals[examples], np.arange(len(examples))
            parts = gather(
                self.exchange, [*(_NOTHING if pending is None else pending.told), *self._at(examples, T, every)]
            )
            if pending is not None and self._resolve(pending, parts):
                self._prepare(examples, f)
                parts = gather(self.exchange, [*_NOTHING, *self._at(examples, T, every)])
            self.mine[:2] += self.tallies[: len(examples), :2].sum(axis=0)
            self.mine[2] = max(self.mine[2], self.tallies[: len(examples), 2].max())
            T, totals = self._roots(examples, T, [part[2:] for part in parts])
            pending = self._move(examples, T, totals, f, new, steps)
            self.buffers.reverse()
            at += len(examples)
        if pending is not None:
            self._resolve(pending, gather(self.exchange, pending.told))

    def _prepare(self, examples: NDArray[np.int32], f: NDArray[Any]) -> None:
        fixed = (self.rows, self.labels, self.bounds, len(self.own), self.k, self.plan.margins, self.W, self.alpha)
        work = partial(kernels.prepare, *fixed, self.totals, examples, f, self.b, self.tallies)
        self.thread_pool.run(partial(work, *stops) for stops in pieces(len(examples), PARTS))

    def _at(self, examples: NDArray[np.int32], T: NDArray[np.float64], which: NDArray[np.int64]) -> Arrays:
        """The shard's share of the sums at T, of some examples of the batch, and how many variables are free."""
        sums, free = np.empty(len(which)), np.empty(len(which), np.int32)
        fixed = (self.labels, self.bounds, len(self.own), self.k, self.plan.margins, examples, self.b, T, which)
        self.thread_pool.run(
            partial(kernels.evaluate, *fixed, sums, free, *stops) for stops in pieces(len(which), PARTS)
        )
        return [sums, free]

    def _roots(
        self, examples: NDArray[np.int32], T: NDArray[np.float64], parts: list[Arrays]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the signed sum of each example's variables is T: Newton inside a bracket, an iteration a round.

        Returns the last T that was looked at, and the sums there.
        """
        _, _, own_share, other_share, _ = self.plan.margins
        bounds = self.bounds[examples]
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

    def _move(
        self,
        examples: NDArray[np.int32],
        T: NDArray[np.float64],
        totals: NDArray[np.float64],
        f: NDArray[Any],
        new: NDArray[Any],
        steps: NDArray[Any],
    ) -> _Moves:
        """Find the steps of the shard's weights and make them."""
        n = len(examples)
        changed, figures = np.zeros(n, np.uint8), np.zeros((n, 2))
        mean = (totals - self.totals[examples]) / self.k
        fixed = (self.rows, self.labels, self.bounds, len(self.own), self.k, self.plan.margins, self.alpha, examples)
        work = partial(kernels.find, *fixed, f, self.b, T, mean, new, steps, changed, figures)
        self.thread_pool.run(partial(work, *stops) for stops in pieces(n, PARTS))
        cross = np.zeros((len(self.columns), 1))
        args = (self.rows, examples, f, steps, self.W)
        self.thread_pool.run(
            partial(kernels.apply, *args, *self.columns[p], cross[p]) for p in range(len(self.columns))
        )
        told = [np.array([*figures.sum(axis=0), cross.sum()]), changed]
        return _Moves(examples, f, new, steps, totals, told)

    def _resolve(self, moves: _Moves, parts: list[Arrays]) -> bool:
        """Settle how much of the steps to take; whether some had to be taken off the weights again."""
        linear, square, cross = np.sum([part[0] for part in parts], axis=0)
        best = best_multiple(linear, square + 2.0 * cross, 1.0)
        part = 1.0 if best >= WHOLE else max(best, 0.0)
        examples = moves.examples
        if part < 1.0:
            args = (self.rows, examples, moves.steps, self.W, 1.0 - part)
            self.thread_pool.run(partial(kernels.take_back, *args, *stops) for stops in self.columns)
        kernels.settle(examples, moves.new, part, self.alpha)
        self.totals[examples] += part * (moves.totals - self.totals[examples])
        moved = np.any([part[1] for part in parts], axis=0)
        self.rest[examples] = np.where(moved, 0, np.minimum(self.rest[examples], 254) + 1)
        factor = SHRINK if best < WHOLE else GROW if best > GROW_ABOVE else 1.0
        self.pace[0] = np.clip(factor * self.pace[0], LEAST_BATCH, self.largest)
        return part < 1.0

    def _add_up(self) -> float:
        """Add what all shards have tallied since the last time; the squared norm of all their weights."""
        told = [part[0] for part in gather(self.exchange, [np.array([*self.mine, square_norm(self.W, len(self.own))])])]
        self.tally[:2] += np.sum([part[:2] for part in told], axis=0)
        self.tally[2] = max(self.tally[2], *(part[2] for part in told))
        self.mine[:] = 0.0
        return float(sum(part[3] for part in told))

    def _certify(self) -> tuple[float, float, NDArray[np.float64]]:
        """Rebuild the weights and measure: objective at the best multiple of W, dual, and each example's gap."""
        n, width = len(self.rest), len(self.own)
        parts = pieces(n, PARTS)
        sums = np.empty(n)
        self.thread_pool.run(
            partial(kernels.signed_sums, self.labels, width, self.alpha, sums, *stops) for stops in parts
        )
        self.totals[:] = reduce(self.exchange, sums)
        args = (self.rows, self.labels, self.k, self.alpha, self.totals, self.W)
        self.thread_pool.run(partial(kernels.rebuild, *args, *stops) for stops in self.columns)
        rays, found = scaling_search.blank(len(parts)), np.zeros((len(parts), 2))
        gaps = np.zeros(n)
        fixed = (self.rows, self.labels, self.bounds, width, self.plan.margins, self.W, self.alpha, gaps)
        self.thread_pool.run(partial(kernels.certify, *fixed, rays[p], found[p], *parts[p]) for p in range(len(parts)))
        mine = [np.array([*found.sum(axis=0), 0.5 * square_norm(self.W, width)]), gaps, rays.sum(axis=0)]
        told = gather(self.exchange, mine)
        (loss, total, half), gaps, terms = (np.sum([part[t] for part in told], axis=0) for t in range(3))
        value, self.scale[0] = scaling_search.best_point(half, loss, terms)
        return value + self.constant, total - half + self.constant, gaps
