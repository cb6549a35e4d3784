"""Dual block ascent over single examples: the driver that the flat linear machines share.

It minimises ``P(W) = 1/2 |W|^2 + sum_i C_i loss(W' x_i, y_i)`` by exact ascent on the dual variables of one example
at a time (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block), in a fresh random order every
epoch. Examples that needed no change three times in a row rest, but for every fourth epoch. A certificate
rebuilds W from the dual variables and measures P and D over all examples; training ends on nothing less.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from solvers.base import Params, Solver, State, Step, relative_gap
from solvers.kernels import coefficients
from solvers.kernels.rows import ALIGNMENT, Rows, arrange, square_norm, weights
from solvers.model import LinearModel
from solvers.problem import Problem

REST_AFTER = 3
REVISIT = 4
MOST_REFINEMENTS = 20
CERTIFY_SHARE = 0.1
SLICE_PRODUCTS = 1 << 31
ROOM = 1 << 16


class AscentParams(Params):
    """What the flat linear machines have in common."""

    C: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="Weight of the losses against the norm of W.")
    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Stop after so many passes, converged or not.")
    dtype: Literal["auto", "float32", "float64"] = Field(
        default="auto", description="Precision of the weights; auto takes float32 for tol of 1e-4 and more."
    )


class Task(NamedTuple):
    """All that stays fixed while a method trains; a tuple, so that kernels take it as one argument."""

    rows: Rows
    y: NDArray[np.int32]
    bounds: NDArray[np.float64]
    n_classes: int


A = TypeVar("A", bound=AscentParams)


class DualAscent(Solver[A]):
    """A flat machine by dual block ascent; a method adds its kernels.

    An epoch is one visit of every awake example with all classes, then, while they pay, more with the classes alone
    that its dual variables name: these cost a few gathers where the first costs a scan of W.

    The coefficients v of a machine are its dual variables, signed so that ``w_c = sum_i v_ic x_i``.
    """

    refines: ClassVar[bool] = True

    @abstractmethod
    def visit(
        self,
        task: Task,
        order: NDArray[np.int32],
        begin: int,
        end: int,
        full: bool,
        W: NDArray[Any],
        duals: Any,
        rest: NDArray[np.uint8],
        tally: NDArray[np.float64],
    ) -> int:
        """Ascend on the examples ``order[begin:end]``; returns where it stopped, before ``end`` when out of room.

        A ``full`` visit looks at all classes, any other at those that the example's dual variables name. ``rest[i]``
        counts the full visits in a row that changed nothing; ``tally`` gathers their gap and loss, the largest
        violation, and what the dual has gained.
        """

    @abstractmethod
    def certify(self, task: Task, W: NDArray[Any], duals: Any, gaps: NDArray[np.float64]) -> tuple[float, float]:
        """The sum of the weighted losses at W, the sum of the dual variables, and each example's part of the gap."""

    def duals(self, task: Task) -> Any:
        """Dual variables that all vanish: a named tuple of arrays, here the coefficients in a pool of sparse lists."""
        return coefficients.empty(len(task.y), max(ROOM, 4 * task.n_classes))

    def with_room(self, task: Task, duals: Any) -> Any:
        """The same dual variables, with room for at least one more visit."""
        return coefficients.with_room(duals, max(ROOM, 2 * task.n_classes))

    def rebuild(self, task: Task, duals: Any, W: NDArray[Any]) -> None:
        """Make W afresh from the dual variables."""
        coefficients.rebuild(task.rows, duals, W)

    @abstractmethod
    def loss_at_zero(self, n_classes: int) -> float:
        """The loss of an example whose scores all vanish, as those of an empty row always do."""

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        params, dtype, n = self.params, self._dtype(), problem.n_samples
        rows, _ = arrange(problem.X, dtype)
        task = Task(rows, problem.y, params.C * problem.weights, problem.n_classes)
        filled = rows.squares > 0
        constant = float(task.bounds[~filled].sum()) * self.loss_at_zero(problem.n_classes)
        run = self._begin(task, dtype) if state is None else self._resume(task, state, dtype)
        gaps = np.zeros(n)

        while True:
            if run.position == len(run.order):
                if self._shall_refine(task, run):
                    run.refined += 1
                    listed = np.flatnonzero(run.duals.length > 0).astype(np.int32)
                    run.start(np.random.default_rng([self.seed, run.epoch, run.refined]).permutation(listed))
                elif run.epoch == params.max_epochs:
                    return
                else:
                    run.epoch, run.refined, run.tally[:] = run.epoch + 1, 0, 0.0
                    awake = (run.rest < REST_AFTER) | ((np.arange(n) + run.epoch) % REVISIT == 0)
                    awake = np.flatnonzero(filled & awake).astype(np.int32)
                    run.start(np.random.default_rng([self.seed, run.epoch]).permutation(awake))
            self._advance(task, run)
            if run.position < len(run.order) or self._shall_refine(task, run):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            promising = run.tally[0] <= params.tol * (run.tally[1] + 0.5 * square_norm(run.W, problem.n_classes))
            if not (promising or run.epoch == params.max_epochs or CERTIFY_SHARE * run.epoch >= 1 + run.certified):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            run.certified += 1
            self.rebuild(task, run.duals, run.W)
            loss, total = self.certify(task, run.W, run.duals, gaps)
            half = 0.5 * square_norm(run.W, problem.n_classes)
            primal, dual = half + loss + constant, total - half + constant
            dual = _bounded(primal, dual, dtype)
            converged = relative_gap(primal, dual) <= params.tol
            run.rest[gaps > 0.1 * params.tol * primal / n] = 0
            yield run.step(primal, dual, converged=converged)
            if converged:
                return

    def _advance(self, task: Task, run: "_Run") -> None:
        """Visit on, for a bounded number of products of X and W."""
        work = np.cumsum(np.diff(task.rows.indptr)[run.order[run.position :]]) * run.W.shape[1]
        stop = run.position + min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
        while run.position < stop:
            run.duals = self.with_room(task, run.duals)
            run.position = self.visit(
                task, run.order, run.position, stop, run.refined == 0, run.W, run.duals, run.rest, run.tally
            )

    def _shall_refine(self, task: Task, run: "_Run") -> bool:
        """Whether, at the end of a pass, visits of listed classes alone would gain more for their cost than full ones.

        Cost is counted in vector operations, not in time, so that every run decides alike.
        """
        if not self.refines or run.epoch == 0:
            return False
        if run.refined > 0:
            return run.refined < MOST_REFINEMENTS and run.gain_per_cost(task) > run.pace[0]
        run.pace[0] = run.gain_per_cost(task)
        return run.pace[1] > run.pace[0] or run.epoch % REVISIT == 1

    def _begin(self, task: Task, dtype: np.dtype[Any]) -> "_Run":
        n_rows = int(task.rows.indices.max(initial=0)) + 1
        W = weights(n_rows, task.n_classes, dtype)
        rest = np.zeros(len(task.y), np.uint8)
        return _Run(W, self.duals(task), rest, np.empty(0, np.int32), np.zeros(4), np.zeros(2), 0, 0, 0, 0)

    def _resume(self, task: Task, state: State, dtype: np.dtype[Any]) -> "_Run":
        W = weights(state["W"].shape[0], state["W"].shape[1], dtype)
        W[:] = state["W"]
        kind = type(self.duals(task))
        duals = kind(*(np.array(state[f"dual_{name}"]) for name in kind._fields))
        rest, order, tally, pace = (np.array(state[name]) for name in ("rest", "order", "tally", "pace"))
        return _Run(W, duals, rest, order, tally, pace, *(int(value) for value in state["clock"]))

    def model(self, problem: Problem, state: State) -> LinearModel:
        _, features = arrange(problem.X, self._dtype())
        ascending = np.argsort(features)
        W = np.ascontiguousarray(state["W"][ascending, : problem.n_classes])
        return LinearModel(problem.classes, problem.n_features, features[ascending], W)

    def _dtype(self) -> np.dtype[Any]:
        if self.params.dtype == "auto":
            return np.dtype(np.float32 if self.params.tol >= 1e-4 else np.float64)
        return np.dtype(self.params.dtype)


@dataclass
class _Run:
    """What changes while a method trains: all of it is the state of a step."""

    W: NDArray[Any]
    duals: Any
    rest: NDArray[np.uint8]
    order: NDArray[np.int32]
    tally: NDArray[np.float64]
    pace: NDArray[np.float64]
    epoch: int
    position: int
    certified: int
    refined: int

    def start(self, order: NDArray[np.int32]) -> None:
        """Begin a pass over these examples."""
        self.order, self.position, self.tally[3] = order, 0, 0.0

    def gain_per_cost(self, task: Task) -> float:
        """What the pass that has just ended gained, by vector operation."""
        cuts = np.diff(task.rows.indptr)[self.order]
        if self.refined == 0:
            cost = float(cuts.sum()) * (1 + self.W.shape[1] * self.W.itemsize / ALIGNMENT)
        else:
            cost = float((cuts * (1.0 + 1.5 * self.duals.length[self.order])).sum())
        rate: float = float(self.tally[3]) / max(cost, 1.0)
        if self.refined == 1:
            self.pace[1] = rate
        return rate

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        clock = np.array([self.epoch, self.position, self.certified, self.refined])
        arrays = {"W": self.W, "rest": self.rest, "order": self.order, "tally": self.tally, "pace": self.pace}
        arrays |= {"clock": clock} | {f"dual_{name}": array for name, array in self.duals._asdict().items()}
        return Step(self.epoch, primal, dual, float(self.tally[2]), converged, arrays)


def _bounded(primal: float, dual: float, dtype: np.dtype[Any]) -> float:
    """The dual value; where it meets the primal, rounding alone may lift it above, and is taken off."""
    if dual - primal > 1e3 * float(np.finfo(dtype).eps) * abs(primal):
        raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
    return min(dual, primal)
