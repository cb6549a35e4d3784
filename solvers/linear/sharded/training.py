"""One shard of a training, whatever it exchanges: epochs, statistics, certificates, and the state of a step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from solvers.core.base import State, Step
from solvers.core.certified_ascent import Certificate, ascend, bounded, is_due
from solvers.core.problem import Problem
from solvers.linear.sharded.certificate import Bounds, certify
from solvers.linear.sharded.shard_weights import partitioned
from solvers.linear.sharded.task import DualLists, Phase, Plan, Progress, Shard, blank_statistics
from solvers.numerics.array_types import Array, Bools, Floats, Ints32
from solvers.numerics.orders import active
from solvers.numerics.rows import square_norm
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange, gather

# multiply-adds of all shards between two steps of the generator, about
SLICE_PRODUCTS = 1 << 31
# of the best part of a batch's steps: from which on all are taken, and above which batches grow; by these factors
WHOLE, GROW_ABOVE = 0.6, 0.9
SHRINK, GROW = 0.7, 1.25


def train(
    training: Callable[[ThreadPool], "ShardTraining"], threads: int = 1, state: State | None = None
) -> Iterator[Step]:
    """Train one shard's classes; every shard yields the same steps, each with its own weights in the state.

    Parameters
    ----------
    training : callable
        Makes what is trained, of the whole problem, the same in every shard.
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
        shard = training(thread_pool)
        if state is not None:
            shard.restore(state)
        yield from ascend(shard, shard.plan.tol)


class ShardTraining(ABC):
    """The training of one shard; a subclass says what an epoch does and how its bounds are measured.

    Parameters
    ----------
    problem : Problem
        The whole problem, the same in every shard.

    Attributes
    ----------
    takes_lists : bool
        Weights of rare features may be lists of classes.
    """

    takes_lists: ClassVar[bool] = False

    def __init__(self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool) -> None:
        self.plan, self.exchange, self.thread_pool = plan, exchange, thread_pool
        self.examples, self.weights = partitioned(problem, plan, exchange.rank, exchange.size, lists=self.takes_lists)
        rows = self.examples.rows
        self.filled = np.flatnonzero(rows.squares > 0).astype(np.int32)
        self.lengths = np.diff(rows.indptr).astype(np.float64)
        empty = rows.squares == 0
        if plan.costs is None:
            self.constant = float(self.examples.bounds[empty].sum()) * plan.loss_at_zero
        else:
            at_zero = plan.costs.at_zero(problem.y[empty], largest=plan.largest_loss)
            self.constant = float(self.examples.bounds[empty] @ at_zero)
        self.progress, self.scale = Progress(), 1.0
        self.statistics, self.unreported, self.square = blank_statistics(), blank_statistics(), 0.0
        self.unchanged, self.order = np.zeros(problem.n_samples, np.uint8), np.empty(0, np.int32)
        self.gaps = np.zeros(problem.n_samples)

    @property
    def shard(self) -> Shard:
        """What the shard owns."""
        return self.weights.shard

    def restore(self, state: State) -> None:
        """Take up the state of an earlier step."""
        self._restore_weights(state)
        self.progress, self.scale = Progress.from_array(state["progress"]), float(state["scale"][0])
        self.statistics.view(np.float64)[:] = state["statistics"]
        self.unchanged[:], self.order = state["unchanged"], np.array(state["order"])

    def state(self) -> dict[str, Array]:
        """The arrays of a step; those that have a column for each class are views."""
        return {
            **self.weights.state(),
            "own": self.shard.own,
            "unchanged": self.unchanged,
            "order": self.order,
            "progress": self.progress.array(),
            "statistics": self.statistics.view(np.float64).copy(),
            "scale": np.array([self.scale]),
        }

    def _restore_weights(self, state: State) -> None:
        self.weights.restore(state)

    @property
    def epoch(self) -> int:
        return self.progress.epoch

    @property
    def max_epochs(self) -> int:
        return self.plan.max_epochs

    @property
    def epoch_over(self) -> bool:
        return self.progress.phase == Phase.ENDED

    def begin_epoch(self) -> None:
        progress = self.progress
        progress.epoch, progress.position, progress.inner_passes = progress.epoch + 1, 0, 0
        progress.phase = Phase.PASS
        self.order = active(self.filled, self.unchanged, progress.epoch)
        self.statistics[:] = 0
        self._begin_epoch()

    def advance(self) -> None:
        if not self._advance():
            self.progress.phase = Phase.ENDED

    def certifies(self) -> bool:
        return self._promising() or is_due(self.epoch, self.max_epochs, self.progress.certified)

    def certify(self) -> Certificate:
        self.progress.certified += 1
        primal, dual, self.gaps = self._certify()
        primal, dual = primal + self.constant, dual + self.constant
        return Certificate(primal, bounded(primal, dual, self.plan.dtype))

    def learn(self, primal: float, gap: float) -> None:
        self._after_certificate(gap)
        self.unchanged[self.gaps > 0.1 * self.plan.tol * primal / len(self.unchanged)] = 0

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        violation = float(self.statistics[0]["violation"])
        return Step(self.epoch, primal, dual, violation, converged, self.state(), right=right)

    @abstractmethod
    def _begin_epoch(self) -> None:
        """Prepare an epoch over the examples of ``order``, which may be put into another order."""

    @abstractmethod
    def _advance(self) -> bool:
        """Do the next slice of the epoch; whether another one follows."""

    @abstractmethod
    def _certify(self) -> tuple[float, float, Floats]:
        """Objective and dual value without the empty examples, and each example's part of the gap, or a bound of it."""

    def _promising(self) -> bool:
        """Whether the gap that the epoch's visits have measured is small enough for a certificate."""
        found = self.statistics[0]
        return bool(found["gap"] <= self.plan.tol * (found["loss"] + 0.5 * self.square))

    def _after_certificate(self, gap: float) -> None:  # noqa: B027
        """Learn from the gap that a certificate has found."""

    def _shuffle(self) -> None:
        self.order = np.random.default_rng([self.plan.seed, self.progress.epoch]).permutation(self.order)

    def _next_slice(self) -> Ints32:
        """The next examples of the epoch's order, some work for all shards; the position moves behind them."""
        left = self.order[self.progress.position :]
        work = np.cumsum(self.lengths[left]) * len(self.examples.owner)
        n = min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
        self.progress.position += n
        return left[:n]

    def _report(self) -> None:
        """Add up what all shards have measured since the last time, and the squares of all weights."""
        mine = [*self.unreported.view(np.float64), square_norm(self.shard.W, len(self.shard.own))]
        reported = [part[0] for part in gather(self.exchange, [np.array(mine)])]
        found = self.statistics[0]
        gap, loss = np.sum([part[:2] for part in reported], axis=0)
        found["gap"] += gap
        found["loss"] += loss
        found["violation"] = max(found["violation"], *(part[2] for part in reported))
        self.unreported[:] = 0
        self.square = float(sum(part[3] for part in reported))


class RelativeTraining(ShardTraining):
    """Of a machine with relative margins: every shard holds the dual variables of all classes, in sparse lists."""

    def __init__(
        self, problem: Problem, plan: Plan, exchange: Exchange, thread_pool: ThreadPool, n_entries: int
    ) -> None:
        super().__init__(problem, plan, exchange, thread_pool)
        self.duals = DualLists(problem.n_samples, n_entries)
        # of the shard's answers to all examples
        self.answers = None if plan.costs is None else plan.costs.of_answers(self.shard.own)

    def restore(self, state: State) -> None:
        self.duals.restore(state)
        super().restore(state)

    def _restore_weights(self, state: State) -> None:
        if "W" in state:
            super()._restore_weights(state)
        else:
            # of other shards' lists: the classes have changed hands
            self.weights.rebuild(self.duals.pool, self.thread_pool)

    def state(self) -> dict[str, Array]:
        return super().state() | self.duals.state()

    def _certify(self) -> tuple[float, float, Floats]:
        found = self._measure()
        return found.primal, found.dual, self.examples.bounds * found.violation

    def _measure(self) -> Bounds:
        measured = self.examples, self.weights, self.duals.pool
        costs = self.plan.costs, self.answers
        found = certify(self.plan.largest_loss, *measured, *costs, self.thread_pool, self.exchange)
        self.scale = found.scale
        return found


def next_batch(size: float, best: float, least: int, largest: int) -> float:
    """How many examples the next batch has, by the best part of this one's steps."""
    factor = SHRINK if best < WHOLE else GROW if best > GROW_ABOVE else 1.0
    return float(np.clip(factor * size, least, largest))
