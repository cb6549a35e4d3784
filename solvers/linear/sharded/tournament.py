"""One shard of a training by the exchange of weights: half-shards travel and play each other, a generator of steps.

A dual variable alpha_ic touches the weights of class y_i and of class c alone, so that matches of disjoint pairs of
half-shards do not disturb each other (Alber et al. 2017, Algorithms 3 to 5; the seating is that of
:mod:`solvers.sharding.schedule`). Here a match visits its examples, those of both sides in one random order, by exact
block steps, and the whole tournament is played on tenths of an epoch. After it all weights are at home, and the shards
tell each other the dual variables, which are sparse and few beside the weights.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.core.problem import Problem
from solvers.linear.ascent import CERTIFY_SHARE, bounded
from solvers.linear.sharded import block_pairs
from solvers.linear.sharded.batch import Shard
from solvers.linear.sharded.block_pairs import Halves
from solvers.linear.sharded.certificate import Data, certify
from solvers.linear.sharded.shard import Plan
from solvers.linear.sharded.subproblem import BOX
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import awake
from solvers.numerics.rows import arrange, square_norm, weights
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange, gather
from solvers.sharding.partition import partition_classes
from solvers.sharding.schedule import PORTIONS, Seats, interleaved, moves, portions, rounds

EPOCH, PORTION, CERTIFIED = range(3)


def train(
    problem: Problem, plan: Plan, exchange: Exchange, threads: int = 1, state: State | None = None
) -> Iterator[Step]:
    """Train this shard's classes; every shard yields the same steps, each with its own weights in the state.

    Parameters
    ----------
    problem : Problem
        The whole problem, the same in every shard.
    plan : Plan
        Of a machine whose dual variables have bounds each of their own: ``kind`` is ``BOX``. Visits of single examples
        need neither ``batch`` nor ``width``, and none is refined.
    exchange : Exchange
    threads : int
        Threads that certificates take; matches are played on one.
    state : mapping, optional
        Of this shard, from an earlier step; with as many shards, the rest of that run is repeated bit by bit.

    Raises
    ------
    ExchangeError
        A peer is lost; the caller resumes all shards from states of one step.
    ValueError
        The variables of one example share a bound: they cannot move in several matches at once.
    """
    if plan.kind != BOX:
        raise ValueError("weights are exchanged only where every dual variable has a bound of its own")
    with ThreadPool(threads) as thread_pool:
        yield from _Training(problem, plan, exchange, thread_pool, state).steps()


def halve(owner: NDArray[np.int32], y: NDArray[np.int32], size: int) -> Halves:
    """Deal every shard's classes to its two halves, the frequent ones by turns, and settle who plays where."""
    of, column = np.empty(len(owner), np.int32), np.empty(len(owner), np.int32)
    host = np.empty((2 * size, 2 * size), np.int32)
    falling = np.argsort(-np.bincount(y, minlength=len(owner)), kind="stable")
    schedule = list(rounds(size))
    for rank, home in enumerate(schedule[0]):
        own = falling[owner[falling] == rank]
        for side, half in enumerate(home):
            classes = np.sort(own[side::2])
            of[classes], column[classes] = half, np.arange(len(classes))
            host[half, half] = rank
    for seats in schedule:
        for rank, (a, b) in enumerate(seats):
            host[a, b] = host[b, a] = rank
    return Halves(of, column, np.bincount(of, minlength=2 * size), host)


class _Training:
    def __init__(
        self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool, state: State | None
    ) -> None:
        self.plan, self.exchange, self.thread_pool = plan, exchange, thread_pool
        rows, _ = arrange(problem.X, plan.dtype)
        n, k, d = problem.n_samples, problem.n_classes, max(int(rows.indices.max(initial=0)) + 1, 1)
        self.data = Data(rows, problem.y, plan.C * problem.weights, partition_classes(problem.y, k, exchange.size))
        self.halves = halve(self.data.owner, problem.y, exchange.size)
        self.schedule = list(rounds(exchange.size))
        own = np.flatnonzero(self.data.owner == exchange.rank).astype(np.int32)
        local = np.full(k, -1, np.int32)
        local[own] = np.arange(len(own), dtype=np.int32)
        self.shard = Shard(own, local, weights(d, len(own), plan.dtype))
        self.constant = float(self.data.bounds[rows.squares == 0].sum()) * plan.loss_at_zero
        self.mine = np.zeros(3)
        self.pool = coefficients.empty(n, 8 * n)
        self.rest, self.moved, self.awake = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.empty(0, np.int32)
        self.tally, self.clock, self.scale = np.zeros(3), np.array([0, PORTIONS, 0]), np.ones(1)
        if state is not None:
            self.shard.W[:, : len(own)] = state["W"][:, : len(own)]
            self.pool = Coefficients(*(np.array(state[f"pool_{name}"]) for name in Coefficients._fields))
            for name in ("rest", "moved", "awake", "tally", "clock", "scale"):
                setattr(self, name, np.array(state[name]))

    def steps(self) -> Iterator[Step]:
        """Tenths of an epoch, with a tournament on each, and at its end its bounds."""
        plan, clock, n = self.plan, self.clock, len(self.rest)
        filled = np.flatnonzero(self.data.rows.squares > 0).astype(np.int32)
        while True:
            if clock[PORTION] == PORTIONS:
                if clock[EPOCH] == plan.max_epochs:
                    return
                clock[[EPOCH, PORTION]] = clock[EPOCH] + 1, 0
                self.awake = awake(filled, self.rest, int(clock[EPOCH]))
                self.tally[:] = 0.0
            parts = portions(self.awake, np.random.default_rng([plan.seed, int(clock[EPOCH])]))
            self._play(parts[clock[PORTION]])
            clock[PORTION] += 1
            square = self._add_up()
            if clock[PORTION] < PORTIONS:
                yield self._step(np.nan, np.nan, converged=False)
                continue
            promising = self.tally[0] <= plan.tol * (self.tally[1] + 0.5 * square)
            due = CERTIFY_SHARE * clock[EPOCH] >= 1 + clock[CERTIFIED] or clock[EPOCH] == plan.max_epochs
            if not (promising or due):
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[CERTIFIED] += 1
            found = certify(BOX, self.data, self.shard, self.pool, self.thread_pool, self.exchange)
            primal, self.scale[0] = found.primal + self.constant, found.scale
            dual = bounded(primal, found.dual + self.constant, plan.dtype)
            converged = relative_gap(primal, dual) <= plan.tol
            self.rest[self.data.bounds * found.violation > 0.1 * plan.tol * primal / n] = 0
            yield self._step(primal, dual, converged=converged)
            if converged:
                return

    def _step(self, primal: float, dual: float, *, converged: bool) -> Step:
        arrays = {"W": self.shard.W, "own": self.shard.own, "rest": self.rest, "moved": self.moved}
        arrays |= {"awake": self.awake, "tally": self.tally, "clock": self.clock, "scale": self.scale}
        arrays |= {f"pool_{name}": array for name, array in self.pool._asdict().items()}
        return Step(int(self.clock[EPOCH]), primal, dual, float(self.tally[2]), converged, arrays)

    def _play(self, examples: NDArray[np.int32]) -> None:
        """The whole tournament on these examples; then all shards have their lists."""
        y, rank = self.data.y, self.exchange.rank
        own = coefficients.empty(
            len(y), 2 * int(self.pool.length[examples].sum()) + 4 * len(examples) + len(self.halves.of)
        )
        block_pairs.take(self.pool, y, self.halves, rank, examples, own)
        self.moved[:] = 0
        at_home = {half: self._half(half) for half in self.schedule[0][rank]}
        here = dict(at_home)
        for number, seats in enumerate(self.schedule):
            pairs = [seats[rank]] if number else [*((half, half) for half in seats[rank]), seats[rank]]
            for pair in pairs:
                own = self._match(pair, here, own, examples)
            here = self._travel(here, seats, self.schedule[(number + 1) % len(self.schedule)])
        for half, W in here.items():
            self.shard.W[:, self.shard.local[self._classes(half)]] = W[:, : self.halves.sizes[half]]
        parts = gather(self.exchange, block_pairs.told(own, examples, self.moved))
        self.pool = block_pairs.enter(self.pool, y, examples, parts)
        moved = np.any([part[3] for part in parts], axis=0)
        self.rest[examples] = np.where(moved, 0, np.minimum(self.rest[examples], 254) + 1)

    def _match(
        self,
        pair: tuple[int, int],
        here: dict[int, NDArray[Any]],
        own: Coefficients,
        examples: NDArray[np.int32],
    ) -> Coefficients:
        """Play one match; a half without classes gives the other a bye."""
        a, b = pair
        if not (self.halves.sizes[a] and self.halves.sizes[b]):
            return own
        order = interleaved(self.halves.of, self.data.y, examples, pair)
        at, room = 0, int(self.halves.sizes.max()) + len(self.halves.of) + 2
        while at < len(order):
            own = coefficients.with_room(own, room)
            at = block_pairs.play(
                self.data.rows, self.data.y, self.data.bounds, self.halves, a, b, here[a], here[b], own, order, at,
                self.moved, self.mine,
            )  # fmt: skip
        return own

    def _travel(self, here: dict[int, NDArray[Any]], before: Seats, after: Seats) -> dict[int, NDArray[Any]]:
        """Send away the halves that play elsewhere next, and take in those that play here."""
        rank = self.exchange.rank
        journeys = [journey for journey in moves(before, after) if self.halves.sizes[journey[0]]]
        if not journeys:
            return here
        sent = {to: [here[half] for half, source, goal in journeys if (source, goal) == (rank, to)]
                for _, source, to in journeys if source == rank}  # fmt: skip
        received = self.exchange.swap(sent)
        here = {half: W for half, W in here.items() if half in after[rank]}
        for source, arrays in received.items():
            arriving = [half for half, from_, to in journeys if (from_, to) == (source, rank)]
            for half, array in zip(arriving, arrays, strict=True):
                here[half] = self._room(half)
                here[half][:] = array
        return {half: here[half] if half in here else self._room(half) for half in after[rank]}

    def _half(self, half: int) -> NDArray[Any]:
        W = self._room(half)
        W[:, : self.halves.sizes[half]] = self.shard.W[:, self.shard.local[self._classes(half)]]
        return W

    def _room(self, half: int) -> NDArray[Any]:
        return weights(len(self.shard.W), int(self.halves.sizes[half]), self.plan.dtype)

    def _classes(self, half: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.halves.of == half)

    def _add_up(self) -> float:
        """Add what all shards have tallied since the last time; the squared norm of all their weights."""
        mine = np.array([*self.mine, square_norm(self.shard.W, len(self.shard.own))])
        told = [part[0] for part in gather(self.exchange, [mine])]
        self.tally[:2] += np.sum([part[:2] for part in told], axis=0)
        self.tally[2] = max(self.tally[2], *(part[2] for part in told))
        self.mine[:] = 0.0
        return float(sum(part[3] for part in told))
