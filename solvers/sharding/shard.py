"""One shard of a training by the exchange of scores: a generator of steps over the classes that it owns.

Every shard holds all examples, the weights of its own classes, and the dual variables of all, which are sparse. All
walk the same random batches. For each, a shard scores its own classes and publishes the scores of those that hold a
dual variable and of those that violate their margin; then every shard takes the same exact steps, one example after
the other (:mod:`solvers.sharding.ordered`), and adds to its weights what concerns its own classes. One message a
batch; it travels while the next batch is being scored. No number depends on how many shards or threads there are.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.base import State, Step, relative_gap
from solvers.kernels import coefficients
from solvers.kernels.coefficients import Coefficients
from solvers.kernels.rows import arrange, weights
from solvers.problem import Problem
from solvers.sharding.batch import Batch, Shard, empty_batch, forget, index, prepare, with_examples
from solvers.sharding.certificate import Data, certify
from solvers.sharding.crew import Crew
from solvers.sharding.exchange import Exchange
from solvers.sharding.message import pack, unpack
from solvers.sharding.ordered import apply, ascend, empty_moves, with_entries

REST_AFTER = 3
SLICE_PRODUCTS = 1 << 31
MAX_FREQUENT = 1024


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
    refinements : int
        Passes over the held classes alone that follow each pass over all.
    batch : int
        Examples a batch; 0 chooses by :func:`batch_size`.
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
    refinements: int = 0
    batch: int = 0
    width: int = 16


def deal(y: NDArray[np.int32], n_classes: int, size: int) -> NDArray[np.int32]:
    """The rank that owns each class: classes by falling number of examples go to the shard with the fewest classes,
    of equal ones to that with the fewest examples, so that both are balanced.

    Raises
    ------
    ValueError
        More shards than classes.
    """
    if size > n_classes:
        raise ValueError(f"{size} shards for {n_classes} classes; each needs at least one")
    counts = np.bincount(y, minlength=n_classes)
    owner = np.empty(n_classes, np.int32)
    load = [[0, 0] for _ in range(size)]
    for c in np.argsort(-counts, kind="stable"):
        rank = min(range(size), key=lambda r: (*load[r], r))
        owner[c] = rank
        load[rank][0] += 1
        load[rank][1] += int(counts[c])
    return owner


def batch_size(indices: NDArray[np.int32], n_samples: int) -> int:
    """Examples a batch: the fixed cost of one against inner products that grow with its size and the rows' overlap."""
    share = np.bincount(indices) / n_samples
    overlap = max(float((share**2).sum()), 1e-3)
    return int(2 ** round(np.clip(0.5 * np.log2(2e5 / overlap), 6, 10)))


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
    with Crew(threads) as crew:
        yield from _Training(problem, plan, exchange, crew, state).steps()


class _Training:
    def __init__(self, problem: Problem, plan: Plan, exchange: Exchange, crew: Crew, state: State | None) -> None:
        self.plan, self.exchange, self.crew = plan, exchange, crew
        rows, _ = arrange(problem.X, plan.dtype)
        n, k = problem.n_samples, problem.n_classes
        d = max(int(rows.indices.max(initial=0)) + 1, 1)
        self.data = Data(rows, problem.y, plan.C * problem.weights, deal(problem.y, k, exchange.size))
        own = np.flatnonzero(self.data.owner == exchange.rank).astype(np.int32)
        local = np.full(k, -1, np.int32)
        local[own] = np.arange(len(own), dtype=np.int32)
        self.shard = Shard(own, local, weights(d, len(own), plan.dtype))
        frequent = min(int(np.count_nonzero(np.bincount(rows.indices) > n / 32)), MAX_FREQUENT)
        self.size = plan.batch or batch_size(rows.indices, n)
        self.batches = [empty_batch(self.size, min(plan.width, k), d, frequent, plan.dtype) for _ in range(3)]
        self.moves = [empty_moves(self.size, k) for _ in range(2)]
        self.ranges = _ranges(rows.indices, d, 4 * crew.size if crew.size > 1 else 1)
        self.constant = float(self.data.bounds[rows.squares == 0].sum()) * plan.loss_at_zero
        if state is None:
            self.pool = coefficients.empty(n, 8 * n + self.room)
            self.seen, self.rest, self.order = np.zeros(n), np.zeros(n, np.uint8), np.empty(0, np.int32)
            self.tally, self.clock, self.gained = np.zeros(3), np.zeros(3, np.int64), np.zeros(2)
        else:
            self.shard.W[:, : len(own)] = state["W"][:, : len(own)]
            self.pool = Coefficients(*(np.array(state[f"pool_{name}"]) for name in Coefficients._fields))
            self.seen, self.rest, self.order, self.tally, self.clock, self.gained = (
                np.array(state[name]) for name in ("seen", "rest", "order", "tally", "clock", "gained")
            )

    @property
    def room(self) -> int:
        """Entries that one batch can add to the pool beside what its lists hold."""
        width: int = self.batches[0].classes.shape[1]
        return self.size * (width + 1)

    def steps(self) -> Iterator[Step]:
        plan, rows, rest, tally, clock = self.plan, self.data.rows, self.rest, self.tally, self.clock
        visited = np.flatnonzero(rows.squares > 0).astype(np.int32)
        cuts = np.diff(rows.indptr)
        while True:
            epoch, position, certified = (int(value) for value in clock)
            if position == len(self.order):
                if epoch == plan.max_epochs:
                    return
                clock[0] = epoch = epoch + 1
                awake = visited[rest[visited] < REST_AFTER]
                rng = np.random.default_rng([plan.seed, epoch])
                self.order = np.concatenate([rng.permutation(awake) for _ in range(1 + plan.refinements)])
                position, tally[:] = 0, 0.0
            length = len(self.order) // (1 + plan.refinements)
            turn = position // max(length, 1)
            work = np.cumsum(cuts[self.order[position : (turn + 1) * length]]) * len(self.data.owner)
            stop = position + min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
            self._walk(self.order[position:stop], full=turn == 0)
            clock[1] = stop
            if stop < len(self.order):
                yield self._step(np.nan, np.nan, converged=False)
                continue

            promising = tally[0] <= plan.tol * (tally[1] + max(self.gained[1] - self.gained[0], 0.0))
            if not (promising or epoch == plan.max_epochs or 10 * certified < epoch):
                yield self._step(np.nan, np.nan, converged=False)
                continue
            clock[2] += 1
            found = certify(plan.kind, self.data, self.shard, self.pool, self.crew, self.exchange)
            primal, dual = found.half + found.loss + self.constant, found.total - found.half + self.constant
            if dual - primal > 1e3 * float(np.finfo(plan.dtype).eps) * abs(primal):
                raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
            dual = min(dual, primal)
            self.seen[:] = found.f_y
            self.gained[:] = found.total - found.half, found.total
            converged = relative_gap(primal, dual) <= plan.tol
            rest[self.data.bounds * found.violation > 0.1 * plan.tol * primal / len(rest)] = 0
            if length < len(visited) and promising:
                rest[:] = 0
            yield self._step(primal, dual, converged=converged)
            if converged:
                return

    def _step(self, primal: float, dual: float, *, converged: bool) -> Step:
        arrays = {"W": self.shard.W, "own": self.shard.own, "seen": self.seen, "rest": self.rest, "order": self.order}
        arrays |= {"tally": self.tally, "clock": self.clock, "gained": self.gained}
        arrays |= {f"pool_{name}": array for name, array in self.pool._asdict().items()}
        return Step(int(self.clock[0]), primal, dual, float(self.tally[2]), converged, arrays)

    def _walk(self, order: NDArray[np.int32], *, full: bool) -> None:
        """Steps on the examples of order, which are distinct, in batches; nothing is under way at the end."""
        pieces = [order[a : a + self.size] for a in range(0, len(order), self.size)] + [order[:0]]
        before, batch, after = self.batches
        past, moves = (with_entries(slot, 0) for slot in self.moves)
        batch = self._fill(batch, pieces[0])
        self.crew.run(self._preparing(before, batch, full))
        ticket = self._post(batch)
        for at in range(len(pieces) - 1):
            self.pool = coefficients.with_room(self.pool, int(batch.first[len(batch.examples)]) + self.room)
            after = self._fill(after, pieces[at + 1])
            phase = self.crew.start(self._preparing(batch, after, full))
            if self.crew.size == 1:
                phase.finish()
                later = self._post(after)
            self._collect(ticket, batch)
            n = len(batch.examples)
            moves = with_entries(moves, int(batch.first[n] + batch.counts[:n].sum()) + n)
            tally = self.tally if full else np.zeros(3)
            ascend(
                self.plan.kind, self.data.rows.squares, self.data.y, self.data.bounds, before, past, batch, moves,
                self.pool, self.seen, self.rest, full, tally, self.gained,
            )  # fmt: skip
            if self.crew.size > 1:
                phase.finish()
                later = self._post(after)
            ticket = later
            self.crew.run(
                partial(apply, self.data.rows, self.shard, batch, moves, begin, end) for begin, end in self.ranges
            )
            before, batch, after = batch, after, self._cleared(before)
            past, moves = moves, past
        self.batches, self.moves = [self._cleared(slot) for slot in (before, batch, after)], [past, moves]

    def _fill(self, slot: Batch, examples: NDArray[np.int32]) -> Batch:
        slot = with_examples(slot, self.data.rows, self.pool, examples)
        index(self.data.rows, slot)
        return slot

    def _cleared(self, slot: Batch) -> Batch:
        forget(self.data.rows, slot)
        return slot._replace(examples=slot.examples[:0])

    def _preparing(self, before: Batch, batch: Batch, full: bool) -> list[Callable[[], None]]:
        data, n = self.data, len(batch.examples)
        stops = np.linspace(0, n, 1 + (1 if self.crew.size == 1 else 3 * self.crew.size)).astype(int).tolist()
        args = (data.rows, data.y, self.shard, self.pool, self.seen, before, batch)
        return [partial(prepare, *args, a, b, full) for a, b in itertools.pairwise(stops) if a < b]

    def _post(self, batch: Batch) -> int:
        if self.exchange.size == 1 or len(batch.examples) == 0:
            return -1
        return self.exchange.post(pack(batch, self.data.y, self.shard, self.pool))

    def _collect(self, ticket: int, batch: Batch) -> None:
        """Complete the batch with what the other shards have found."""
        if ticket >= 0:
            unpack(self.exchange.collect(ticket), batch, self.data.y, self.data.owner, self.pool)


def _ranges(indices: NDArray[np.int32], n_features: int, n: int) -> list[tuple[int, int]]:
    """Up to n ranges of features with as many entries each."""
    filled = np.cumsum(np.bincount(indices, minlength=n_features))
    cuts = np.unique(np.searchsorted(filled, np.linspace(0, filled[-1], n + 1)[1:-1]) + 1)
    stops = [0, *(int(cut) for cut in cuts if cut < n_features), n_features]
    return list(itertools.pairwise(stops))
