"""Dual block ascent over single examples: the driver that the flat linear machines share.

It minimises ``P(W) = 1/2 |W|^2 + sum_i C_i loss(W' x_i, y_i)`` by exact ascent on the dual variables of one example
at a time (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block), in a fresh random order every
epoch. Examples that needed no change three times in a row rest for two epochs, then four, then eight. A certificate,
ventured where the gap is expected to be small enough, rebuilds W from the dual variables and measures P and D over all
examples; training ends on nothing less.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple, filled, share
from solvers.core.machine import Machine, SingleLabelParams
from solvers.core.memory import refuse
from solvers.core.model import LinearModel
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear.layouts.layouts import Layout, SparseLayout
from solvers.numerics import coefficients
from solvers.numerics.orders import awake, live, shuffled
from solvers.numerics.rows import ALIGNMENT

FIRST_CANDIDATES = 16
FIRST_REFINEMENTS, MOST_REFINEMENTS = 4, 40
LIVE_SHARE = 0.05
WORTH = 0.3
CERTIFY_SHARE = 0.1
# of the gap that the passes let expect at W, what the first certificate, of the best multiple, is ventured at
FIRST_SHARE = 0.5
# places in the pace of a run, behind the gains of the passes before by their cost and when the next climb is due: the
# gap that the last pass told, and the share of what it let expect that the last certificate has found
ESTIMATE, SHARE = 4, 5
SLICE_OPERATIONS = 1 << 27
ROOM = 1 << 16
ENTRY_BYTES = 12


class AscentParams(SingleLabelParams):
    """What the flat linear machines have in common."""

    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Stop after so many passes, converged or not.")
    dtype: Literal["auto", "float32", "float64"] = Field(
        default="auto", description="Precision of the weights; auto takes float32 for tol of 1e-4 and more."
    )


class Task(NamedTuple):
    """All that stays fixed while a method trains; a tuple, so that kernels take it as one argument."""

    rows: Any
    y: NDArray[np.int32]
    bounds: NDArray[np.float64]
    n_classes: int


A = TypeVar("A", bound=AscentParams)


class DualAscent(Machine[A]):
    """A flat machine by dual block ascent; a method adds its kernels.

    An epoch is one visit of every awake example with all classes, then, while they pay, more with the classes alone
    that its dual variables name: these cost a few gathers where the first costs a scan of W.

    The coefficients v of a machine are its dual variables, signed so that ``w_c = sum_i v_ic x_i``.
    """

    refines: ClassVar[bool] = True

    def layout(self, problem: Problem) -> Layout:
        """Rows and weights as the method's kernels take them."""
        return SparseLayout.of(problem.X, problem.n_classes, precision(self.params))

    @abstractmethod
    def visit(
        self,
        task: Task,
        order: NDArray[np.int32],
        begin: int,
        end: int,
        full: bool,
        most: int,
        W: Any,
        duals: Any,
        rest: NDArray[np.uint8],
        gains: NDArray[np.float32],
        tally: NDArray[np.float64],
    ) -> int:
        """Ascend on the examples ``order[begin:end]``; returns where it stopped, before ``end`` when out of room.

        A ``full`` visit looks at all classes, and stops looking once it has found ``most`` candidates; any other looks
        at those that the example's dual variables name. ``gains[i]`` is what the example's last visit has gained,
        ``rest[i]`` counts the full visits in a row that changed nothing; ``tally`` gathers their gap and loss, the
        worst violation, and what the dual has gained.
        """

    @abstractmethod
    def measure(self, task: Task, run: "Run", gaps: NDArray[np.float64]) -> tuple[float, float, float]:
        """Objective and dual value without the empty examples, and the multiple of W that the objective is of.

        That is the best of many multiples, as the length of W settles late: see :mod:`solvers.numerics.scaling_search`.
        Each example's part of the gap at W itself goes to ``gaps``.
        """

    def duals(self, task: Task) -> Any:
        """Dual variables that all vanish: a named tuple of arrays, here the coefficients in a pool of sparse lists."""
        return coefficients.empty(len(task.y), max(ROOM, 4 * task.n_classes))

    def with_room(self, task: Task, duals: Any) -> Any:
        """The same dual variables, with room for at least one more visit."""
        room = max(ROOM, 2 * task.n_classes)
        if duals.used[0] + room > len(duals.classes):
            copies = (len(duals.classes) + coefficients.size_of_copy(duals, room)) * ENTRY_BYTES
            live, all_of_them = int(duals.length.sum()), f"{len(task.y):,} x {task.n_classes:,}"
            what = f"{self.name} has {live:,} dual variables of {all_of_them} so far, and"
            refuse(what, copies, self.params.memory_mb)
        return coefficients.with_room(duals, room)

    def rebuild(self, task: Task, duals: Any, W: Any) -> None:
        """Make W afresh from the dual variables."""
        coefficients.rebuild(task.rows, duals, W)

    @abstractmethod
    def loss_at_zero(self, n_classes: int) -> float:
        """The loss of an example whose scores all vanish, as those of an empty row always do."""

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        params, dtype, n = self.params, precision(self.params), problem.n_samples
        layout = self.layout(problem)
        task = self._task(problem, layout)
        filled = task.rows.squares > 0
        examples = np.flatnonzero(filled).astype(np.int32)
        constant = float(task.bounds[~filled].sum()) * self.loss_at_zero(problem.n_classes)
        run = self._begin(task, layout) if state is None else self._resume(task, layout, state)
        gaps, spent = np.zeros(n), 0.0
        again = run.position == len(run.order) and self._shall_refine(run)

        while True:
            if run.position == len(run.order):
                if again:
                    spent += self.refine(task, run, SLICE_OPERATIONS - spent)
                elif run.epoch == params.max_epochs:
                    return
                else:
                    run.epoch, run.refined, run.tally[:] = run.epoch + 1, 0, 0.0
                    order = shuffled(awake(examples, run.rest, run.epoch), self.seed, run.epoch)
                    run.start(order, float(layout.full[order].sum()))
            spent += self._advance(task, run, SLICE_OPERATIONS - spent)
            again = run.position == len(run.order) and self._shall_refine(run)
            if again or run.position < len(run.order):
                if spent >= SLICE_OPERATIONS:
                    spent = 0.0
                    yield run.step(np.nan, np.nan, converged=False)
                continue
            spent = 0.0
            expected = run.expected_gap()
            promising = run.pace[SHARE] * expected <= params.tol
            if not (promising or run.epoch == params.max_epochs or CERTIFY_SHARE * run.epoch >= 1 + run.certified):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            run.certified += 1
            self.rebuild(task, run.duals, run.W)
            primal, dual, run.scale = self.measure(task, run, gaps)
            primal, dual = primal + constant, dual + constant
            dual = bounded(primal, dual, dtype)
            gap = relative_gap(primal, dual)
            converged = gap <= params.tol
            run.pace[SHARE] = min(1.0, gap / expected) if expected > 0.0 else 1.0
            run.rest[gaps > 0.1 * params.tol * primal / n] = 0
            yield run.step(primal, dual, converged=converged)
            if converged:
                return

    def refine(self, task: Task, run: "Run", budget: float) -> float:
        """Begin another pass, of the examples whose last visit gained much, with the classes that they list.

        Returns what passes that it has also ended have cost: a kernel that can, goes on while they pay.
        """
        run.refined += 1
        draw = (LIVE_SHARE * run.mean_gain, self.seed, run.epoch, run.refined)
        run.start(*live(run.gains, run.duals.length, run.layout.listed, *draw))
        return 0.0

    def _advance(self, task: Task, run: "Run", budget: float) -> float:
        """Visit on to the end of the pass, or until it has cost the budget; returns what it has cost."""
        stop, spent = len(run.order), run.cost
        if run.position == stop:
            return 0.0
        if run.position > 0 or spent > budget:
            rest = run.order[run.position :]
            work = np.cumsum(
                run.layout.full[rest] if run.refined == 0 else run.layout.listed[rest] * run.duals.length[rest]
            )
            n = min(len(work), 1 + int(np.searchsorted(work, budget)))
            stop, spent = run.position + n, float(work[n - 1])
        most = FIRST_CANDIDATES if run.epoch == 1 else task.n_classes
        while run.position < stop:
            run.duals, run.W = self.with_room(task, run.duals), run.layout.with_room(run.W)
            run.position = self.visit(
                task, run.order, run.position, stop, run.refined == 0, most, run.W, run.duals, run.rest, run.gains,
                run.tally,
            )  # fmt: skip
        return spent

    def most_refinements(self, epoch: int) -> int:
        """How many passes of an epoch may refine."""
        return min(FIRST_REFINEMENTS + epoch, MOST_REFINEMENTS)

    def _shall_refine(self, run: "Run") -> bool:
        """Whether, at the end of a pass, visits of listed classes alone gain enough for their cost.

        Cost is counted in vector operations, not in time, so that every run decides alike.
        """
        if not self.refines or run.epoch == 0 or run.refined >= self.most_refinements(run.epoch):
            return False
        if run.refined == 0:
            run.pace[0] = run.gain_per_cost()
            return True
        return len(run.order) > 0 and run.gain_per_cost() > WORTH * run.pace[0]

    def total(self, task: Task, duals: Any) -> float:
        """The part of the dual value that is linear in the dual variables: here their sum, each own coefficient."""
        return float(duals.values[duals.start[duals.length > 0]].sum())

    def multiply(self, task: Task, duals: Any, factor: float) -> None:
        """Multiply the dual variables; where that brings one to its bound, it is there exactly."""
        np.multiply(duals.values, factor, out=duals.values)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        layout = self.layout(problem)
        task = self._task(problem, layout)
        run = self._begin(task, layout)
        run.W = layout.restored(state)
        run.duals = type(run.duals)(*(np.array(state[f"dual_{name}"]) for name in run.duals._fields))
        self.rebuild(task, run.duals, run.W)
        square = layout.square_norm(run.W)
        factor = best_multiple(self.total(task, run.duals), square, ratio)
        self.multiply(task, run.duals, factor)
        layout.multiply(run.W, factor)
        return run.step(np.nan, np.nan, converged=False).state

    def _task(self, problem: Problem, layout: Layout) -> Task:
        return Task(layout.rows, _rank(problem)[problem.y], self.params.C * problem.weights, problem.n_classes)

    def _begin(self, task: Task, layout: Layout) -> "Run":
        n, nobody = len(task.y), np.empty(0, np.int32)
        # what the first pass tells says much of the gap behind it, but little where no visit has to be refined
        estimate, part = (1.0, FIRST_SHARE) if self.refines else (np.inf, 1.0)
        pace = np.array([0.0, 0.0, 0.0, 0.0, estimate, part])
        changing = (np.zeros(n, np.uint8), np.zeros(n, np.float32), nobody, np.zeros(4), pace)
        return Run(layout, layout.weights(), self.duals(task), *changing, 0, 0, 0, 0)

    def _resume(self, task: Task, layout: Layout, state: State) -> "Run":
        W = layout.restored(state)
        kind = type(self.duals(task))
        duals = kind(*(np.array(state[f"dual_{name}"]) for name in kind._fields))
        rest, gains, order, tally, pace = (
            np.array(state[name]) for name in ("rest", "gains", "order", "tally", "pace")
        )
        epoch, position, certified, refined = (int(value) for value in state["clock"])
        scale = float(state["scale"][0])
        return Run(layout, W, duals, rest, gains, order, tally, pace, epoch, position, certified, refined, scale)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        # each list begins with the own class, whose coefficient is no dual variable
        named = np.maximum(state["dual_length"].astype(np.int64) - 1, 0).sum()
        return share(named, int(filled(problem).sum()) * (problem.n_classes - 1))

    @property
    def weight_bytes(self) -> int:
        return precision(self.params).itemsize

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        lanes = ALIGNMENT // precision(self.params).itemsize
        return n_features * -(-n_classes // lanes) * ALIGNMENT + 16 * n_samples

    def fitted(self, problem: Problem, state: State) -> LinearModel | SparseLinearModel:
        layout = self.layout(problem)
        ascending = np.argsort(layout.features)
        W = np.ascontiguousarray(layout.by_feature(state["W"])[np.ix_(ascending, _rank(problem))])
        W *= W.dtype.type(state["scale"][0])
        return LinearModel(problem.classes, problem.n_features, layout.features[ascending], W)


@dataclass
class Run:
    """What changes while a method trains: the state of a step, beside the layout.

    ``scale`` is what the model's weights are of W: the multiple that the last certificate was of.
    """

    layout: Layout
    W: Any
    duals: Any
    rest: NDArray[np.uint8]
    gains: NDArray[np.float32]
    order: NDArray[np.int32]
    tally: NDArray[np.float64]
    pace: NDArray[np.float64]
    epoch: int
    position: int
    certified: int
    refined: int
    scale: float = 1.0
    blank: Any = None

    def start(self, order: NDArray[np.int32], cost: float) -> None:
        """Begin a pass over these examples, at this cost."""
        self.order, self.position, self.tally[3], self.pace[1] = order, 0, 0.0, cost

    @property
    def cost(self) -> float:
        """What the pass costs, in vector operations."""
        return float(self.pace[1])

    @property
    def mean_gain(self) -> float:
        """What a visit of the pass that has just ended gained."""
        return float(self.tally[3]) / max(1, len(self.order))

    def expected_gap(self) -> float:
        """The relative gap to be expected after the epoch that has ended.

        The visits have told gaps and losses, each before its step. By how much one more epoch lowers the gap is taken
        from the two last.
        """
        gap, loss = float(self.tally[0]), float(self.tally[1])
        estimate = gap / (loss + 0.5 * self.layout.square_norm(self.W)) if gap > 0.0 else 0.0
        return foretold(estimate, self.pace, ESTIMATE)

    def gain_per_cost(self) -> float:
        """What the pass that has just ended gained, by vector operation."""
        return float(self.tally[3]) / max(self.cost, 1.0)

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        clock = np.array([self.epoch, self.position, self.certified, self.refined])
        arrays = self.layout.state(self.W) | {"rest": self.rest, "gains": self.gains, "order": self.order}
        arrays |= {"tally": self.tally, "pace": self.pace, "clock": clock, "scale": np.array([self.scale])} | {
            f"dual_{name}": array for name, array in self.duals._asdict().items()
        }
        return Step(self.epoch, primal, dual, float(self.tally[2]), converged, arrays)


def foretold(estimate: float, pace: NDArray[np.float64], at: int) -> float:
    """What a gap will be if it falls as much again as since the last estimate; this one is kept in ``pace[at]``."""
    expected = estimate * min(1.0, estimate / float(pace[at]))
    pace[at] = max(estimate, float(np.finfo(np.float64).tiny))
    return expected


def _rank(problem: Problem) -> NDArray[np.int32]:
    """The column of W that belongs to each class: the frequent ones first, so that they share cache lines."""
    rank = np.empty(problem.n_classes, np.int32)
    rank[order_of_classes(problem)] = np.arange(problem.n_classes, dtype=np.int32)
    return rank


def order_of_classes(problem: Problem) -> NDArray[np.int32]:
    """The class that each column of W belongs to."""
    return np.argsort(-np.bincount(problem.y, minlength=problem.n_classes), kind="stable").astype(np.int32)


def precision(params: AscentParams) -> np.dtype[Any]:
    """The floats that ``params`` ask for."""
    if params.dtype == "auto":
        return np.dtype(np.float32 if params.tol >= 1e-4 else np.float64)
    return np.dtype(params.dtype)


def bounded(primal: float, dual: float, dtype: np.dtype[Any]) -> float:
    """The dual value; where it meets the primal, rounding alone may lift it above, and is taken off."""
    if dual - primal > 1e3 * float(np.finfo(dtype).eps) * abs(primal):
        raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
    return min(dual, primal)
