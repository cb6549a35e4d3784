"""Training in shards by the exchange of weights: half-shards travel and meet each other in a tournament.

A dual variable alpha_ic touches the weights of class y_i and of class c alone, so that visits of disjoint pairs of
half-shards do not disturb each other (Alber et al. 2017, Algorithms 3 to 5; the rounds are those of
:mod:`benchmarks.papers.exchanges.schedule`). Here a pair visits its examples, those of both sides in one random order,
by exact block steps, and the whole tournament is held on tenths of an epoch. After it all weights are at home, and
the shards report to each other the dual variables, which are sparse and few beside the weights.
"""

import numpy as np

from benchmarks.papers.exchanges import block_pairs
from benchmarks.papers.exchanges.block_pairs import Halves, Pair
from benchmarks.papers.exchanges.schedule import PORTIONS, Hosts, interleaved, portions, rounds, transfers
from solvers.core.problem import Problem
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.training import RelativeTraining
from solvers.numerics import coefficients
from solvers.numerics.array_types import Array, Bytes, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import weights
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange, gather

# copies of a shard's weights at a time: at home, the halves that it hosts, and those that arrive
WEIGHTS_HELD = 3


def halve(owner: Ints32, y: Ints32, size: int) -> Halves:
    """Split every shard's classes into halves, the frequent ones by turns, and say which shard visits which pair."""
    of, column = np.empty(len(owner), np.int32), np.empty(len(owner), np.int32)
    host = np.empty((2 * size, 2 * size), np.int32)
    falling = np.argsort(-np.bincount(y, minlength=len(owner)), kind="stable")
    hosts_of = list(rounds(size))
    for rank, home in enumerate(hosts_of[0]):
        own = falling[owner[falling] == rank]
        for side, half in enumerate(home):
            classes = np.sort(own[side::2])
            of[classes], column[classes] = half, np.arange(len(classes))
            host[half, half] = rank
    for hosts in hosts_of:
        for rank, (a, b) in enumerate(hosts):
            host[a, b] = host[b, a] = rank
    return Halves(of, column, np.bincount(of, minlength=2 * size), host)


class TournamentTraining(RelativeTraining):
    """One shard of a training by the exchange of weights.

    Visits of single examples need neither ``batch`` nor ``width``, there are no inner passes, and pairs of half-shards
    are visited on one thread.

    Raises
    ------
    ValueError
        The variables of one example share a bound: they cannot move in several pairs of class blocks at once.
    """

    def __init__(self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool) -> None:
        if plan.largest_loss:
            raise ValueError("weights are exchanged only where every dual variable has a bound of its own")
        super().__init__(problem, plan, exchange, thread_pool, 8 * problem.n_samples)
        self.halves = halve(self.examples.owner, problem.y, exchange.size)
        self.rounds = list(rounds(exchange.size))

    def _begin_epoch(self) -> None:
        pass

    def _advance(self) -> bool:
        rng = np.random.default_rng([self.plan.seed, self.progress.epoch])
        self._hold(portions(self.order, rng)[self.progress.position])
        self.progress.position += 1
        self._report()
        return self.progress.position < PORTIONS

    def _hold(self, examples: Ints32) -> None:
        """The whole tournament on these examples; then all shards have their lists."""
        y, rank, pool = self.examples.y, self.exchange.rank, self.duals.pool
        room = 2 * int(pool.length[examples].sum()) + 4 * len(examples) + len(self.halves.of)
        own, changed = coefficients.empty(len(y), room), np.zeros(len(y), np.uint8)
        block_pairs.take(pool, y, self.halves, rank, examples, own)
        here = {half: self._weights_of(half) for half in self.rounds[0][rank]}
        for number, hosts in enumerate(self.rounds):
            pairs = [hosts[rank]] if number else [*((half, half) for half in hosts[rank]), hosts[rank]]
            for a, b in pairs:
                # a half without classes leaves the other without a partner
                if self.halves.sizes[a] and self.halves.sizes[b]:
                    own = self._visit(Pair(a, b, here[a], here[b]), own, examples, changed)
            here = self._transfer(here, hosts, self.rounds[(number + 1) % len(self.rounds)])
        for half, W in here.items():
            self.shard.W[:, self.shard.local[self._classes(half)]] = W[:, : self.halves.sizes[half]]
        parts = gather(self.exchange, block_pairs.report(own, examples, changed))
        self.duals.pool = block_pairs.enter(pool, y, examples, parts)
        moved = np.any([part[3] for part in parts], axis=0)
        self.unchanged[examples] = np.where(moved, 0, np.minimum(self.unchanged[examples], 254) + 1)

    def _visit(self, pair: Pair, own: Coefficients, examples: Ints32, changed: Bytes) -> Coefficients:
        """Visit the examples of a pair; the dual variables, with more room if there was too little."""
        order = interleaved(self.halves.of, self.examples.y, examples, (pair.first, pair.second))
        at, room = 0, int(self.halves.sizes.max()) + len(self.halves.of) + 2
        while at < len(order):
            own = coefficients.with_capacity(own, room)
            at = block_pairs.visit(self.examples, self.halves, pair, own, order, at, changed, self.unreported)
        return own

    def _transfer(self, here: dict[int, Array], before: Hosts, after: Hosts) -> dict[int, Array]:
        """Send away the halves that another shard hosts next, and take in those that this one does."""
        rank = self.exchange.rank
        travelling = [transfer for transfer in transfers(before, after) if self.halves.sizes[transfer[0]]]
        if not travelling:
            return here
        sent = {to: [here[half] for half, source, goal in travelling if (source, goal) == (rank, to)]
                for _, source, to in travelling if source == rank}  # fmt: skip
        received = self.exchange.swap(sent)
        here = {half: W for half, W in here.items() if half in after[rank]}
        for source, arrays in received.items():
            arriving = [half for half, from_, to in travelling if (from_, to) == (source, rank)]
            for half, array in zip(arriving, arrays, strict=True):
                here[half] = self._room(half)
                here[half][:] = array
        return {half: here[half] if half in here else self._room(half) for half in after[rank]}

    def _weights_of(self, half: int) -> Array:
        W = self._room(half)
        W[:, : self.halves.sizes[half]] = self.shard.W[:, self.shard.local[self._classes(half)]]
        return W

    def _room(self, half: int) -> Array:
        return weights(len(self.shard.W), int(self.halves.sizes[half]), self.plan.dtype)

    def _classes(self, half: int) -> Ints:
        return np.flatnonzero(self.halves.of == half)
