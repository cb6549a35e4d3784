"""Dual block ascent over single examples: the driver that the flat linear machines share.

It minimises ``P(W) = 1/2 |W|^2 + sum_i C_i loss(W' x_i, y_i)`` by exact ascent on the dual variables of one example
at a time (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block), in a fresh random order every
epoch. Examples that needed no change three times in a row rest until a certificate calls them back. A certificate
rebuilds W from the dual variables and measures P and D over all examples; training ends on nothing less.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from solvers.base import Params, Solver, State, Step, relative_gap
from solvers.kernels import coefficients
from solvers.kernels.rows import Rows, arrange, square_norm, weights
from solvers.model import LinearModel
from solvers.problem import Problem

REST_AFTER = 3
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

    An epoch is one visit of every awake example with all classes, then ``refinements`` more with the classes alone
    that its dual variables name: these cost a few gathers where the first costs a scan of W.

    The coefficients v of a machine are its dual variables, signed so that ``w_c = sum_i v_ic x_i``.
    """

    refinements: ClassVar[int] = 4

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
        counts the full visits in a row that changed nothing; ``tally`` gathers their gap, loss and violation.
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
        params, dtype = self.params, self._dtype()
        rows, _ = arrange(problem.X, dtype)
        bounds = params.C * problem.weights
        task = Task(rows, problem.y, bounds, problem.n_classes)
        n = problem.n_samples
        visited = np.flatnonzero(rows.squares > 0).astype(np.int32)
        constant = float(bounds[rows.squares == 0].sum()) * self.loss_at_zero(problem.n_classes)
        cuts = np.diff(rows.indptr)

        if state is None:
            W = weights(max(int(rows.indices.max(initial=0)) + 1, 1), problem.n_classes, dtype)
            duals = self.duals(task)
            rest, order = np.zeros(n, np.uint8), np.empty(0, np.int32)
            tally, clock = np.zeros(3), np.zeros(3, np.int64)
        else:
            W = weights(state["W"].shape[0], state["W"].shape[1], dtype)
            W[:] = state["W"]
            kind = type(self.duals(task))
            duals = kind(*(np.array(state[f"dual_{name}"]) for name in kind._fields))
            rest, order, tally, clock = (np.array(state[name]) for name in ("rest", "order", "tally", "clock"))
        gaps = np.zeros(n)

        def step(primal: float, dual: float, *, converged: bool) -> Step:
            arrays = {"W": W, "rest": rest, "order": order, "tally": tally, "clock": clock}
            arrays |= {f"dual_{name}": array for name, array in duals._asdict().items()}
            return Step(int(clock[0]), primal, dual, float(tally[2]), converged, arrays)

        while True:
            epoch, position, certified = (int(value) for value in clock)
            if position == len(order):
                if epoch == params.max_epochs:
                    return
                clock[0] = epoch = epoch + 1
                awake = visited[rest[visited] < REST_AFTER]
                rng = np.random.default_rng([self.seed, epoch])
                order = np.concatenate([rng.permutation(awake) for _ in range(1 + self.refinements)])
                position, tally[:] = 0, 0.0
            whole = len(order) // (1 + self.refinements)
            full = position < whole
            work = np.cumsum(cuts[order[position : whole if full else len(order)]]) * W.shape[1]
            stop = position + min(len(work), max(1, int(np.searchsorted(work, SLICE_PRODUCTS))))
            while position < stop:
                duals = self.with_room(task, duals)
                position = self.visit(task, order, position, stop, full, W, duals, rest, tally)
            clock[1] = position
            if position < len(order):
                yield step(np.nan, np.nan, converged=False)
                continue

            promising = tally[0] <= params.tol * (tally[1] + 0.5 * square_norm(W, problem.n_classes))
            if not (promising or epoch == params.max_epochs or 10 * certified < epoch):
                yield step(np.nan, np.nan, converged=False)
                continue
            clock[2] += 1
            self.rebuild(task, duals, W)
            loss, total = self.certify(task, W, duals, gaps)
            half = 0.5 * square_norm(W, problem.n_classes)
            primal, dual = half + loss + constant, total - half + constant
            dual = _bounded(primal, dual, dtype)
            converged = relative_gap(primal, dual) <= params.tol
            rest[gaps > 0.1 * params.tol * primal / n] = 0
            if len(order) < len(visited) and promising:
                rest[:] = 0
            yield step(primal, dual, converged=converged)
            if converged:
                return

    def model(self, problem: Problem, state: State) -> LinearModel:
        _, features = arrange(problem.X, self._dtype())
        ascending = np.argsort(features)
        W = np.ascontiguousarray(state["W"][ascending, : problem.n_classes])
        return LinearModel(problem.classes, problem.n_features, features[ascending], W)

    def _dtype(self) -> np.dtype[Any]:
        if self.params.dtype == "auto":
            return np.dtype(np.float32 if self.params.tol >= 1e-4 else np.float64)
        return np.dtype(self.params.dtype)


def _bounded(primal: float, dual: float, dtype: np.dtype[Any]) -> float:
    """The dual value; where it meets the primal, rounding alone may lift it above, and is taken off."""
    if dual - primal > 1e3 * float(np.finfo(dtype).eps) * abs(primal):
        raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
    return min(dual, primal)
