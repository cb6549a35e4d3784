"""The programs of a continuous code with a constraint in place of the penalty: a bounded norm, or no loss at all.

    norm:  minimise  sum_i w_i max_{r != y_i} max(0, 1 + h_i' (M_r - M_{y_i}))   subject to  |M| <= A
    hard:  minimise  |M|   subject to  h_i' (M_{y_i} - M_r) >= 1 for all i and r

Crammer and Singer 2002, section 5: the program with "hard" constraints below equation 15, and equation 13. Both are
found by the penalised program, ``minimise p(M) + C L(M)`` with p the norm (half its square for l2) and L the losses, at
some C. Its lower bound D at any C bounds both: ``L >= (D - p(A)) / C`` where the norm is at most A, and ``p >= D``
where there is no loss. Upper bounds are those of codes that are scaled, or mixed of two, until they are feasible.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from solvers.core.base import State, Step, relative_gap
from solvers.core.problem import ProblemError
from solvers.numerics.array_types import Floats
from solvers.output_codes.design.task import Design, Task, part_of

GROWTH, LARGEST_C, SMALLEST_C = 4.0, 1e12, 1e-12
# of the accuracy asked for, what the penalised programs are solved to at first, and how near the Cs come before more is
FIRST_SHARE, TIGHTER, CLOSE, SMALLEST_TOL = 0.1, 0.1, 1.0 + 1e-4, 1e-11
NO_LOSS = 1e-12


class ConstrainedDesign(Design):
    """A design by penalised ones at growing C, or by bisection over C.

    Parameters
    ----------
    task : Task
        Its C is the first one.
    norm : {"l1", "l2", "linf"}
    penalised : callable
        Makes the penalised design: called with C and a tolerance.
    radius : float, optional
        A; None for the program without losses.
    tol : float
        Relative gap asked for.
    most_trials : int
        Penalised programs solved at most.
    """

    def __init__(
        self,
        task: Task,
        norm: str,
        penalised: Callable[[float, float], Design],
        radius: float | None,
        tol: float,
        most_trials: int,
    ) -> None:
        self._task = task
        self._norm = norm
        self._penalised = penalised
        self._radius = radius
        self._tol = tol
        self._most_trials = most_trials

    def steps(self, state: State | None) -> Iterator[Step]:
        at = _Search.begin(self._task, self._tol) if state is None else _Search.from_state(state)
        inner = {} if state is None else part_of(state, "trial_")
        while at.trials < self._most_trials:
            design, epoch = self._penalised(at.C, at.tol), 0
            for step in design.steps(inner or None):
                epoch, inner = step.epoch, dict(step.state)
                if not np.isnan(step.dual):
                    self._bound(at, step.dual)
                if step.converged:
                    break
                held = {**at.state(), **{f"trial_{name}": array for name, array in inner.items()}}
                yield Step(at.epochs + step.epoch, np.nan, np.nan, step.violation, False, held)
            M = np.asarray(design.code(inner))
            if self._radius is None and self._norm == "l2" and step.dual > 0.0:
                at.dual = max(at.dual, bound_of_multiples(M, step.dual))
            self._take_over(at, M)
            at.epochs, inner = at.epochs + epoch, {}
            at.dual = min(at.dual, at.primal)
            converged, measures = self._is_over(at), {"trial_C": at.C}
            if not converged:
                self._next(at)
            # without a feasible code there is no objective yet
            primal = at.primal if np.isfinite(at.primal) else np.nan
            yield Step(at.epochs, primal, at.dual, np.nan, converged, at.state(), measures)
            if converged:
                return

    def _penalty(self, size: float) -> float:
        return 0.5 * size * size if self._norm == "l2" else size

    def _size(self, M: Floats) -> float:
        if self._norm == "l2":
            return float(np.linalg.norm(M))
        return float(np.abs(M).sum() if self._norm == "l1" else np.abs(M).max())

    def _leads(self, M: Floats) -> Floats:
        F = np.asarray(self._task.H @ M.T)
        rows = np.arange(len(F))
        own = F[rows, self._task.y].copy()
        F[rows, self._task.y] = -np.inf
        return np.asarray(own - F.max(axis=1))

    def _losses(self, M: Floats) -> float:
        return float(self._task.weights @ np.maximum(1.0 - self._leads(M), 0.0))

    def _bound(self, at: "_Search", dual: float) -> None:
        """The lower bound that a dual value of the penalised program gives."""
        bound = dual if self._radius is None else max(0.0, (dual - self._penalty(self._radius)) / at.C)
        at.dual = max(at.dual, bound)

    def _take_over(self, at: "_Search", M: Floats) -> None:
        """Keep the best feasible code that a penalised program's code gives, and the bracket of C."""
        at.trials += 1
        size = self._size(M)
        if self._radius is None:
            least = float(self._leads(M).min())
            if least > 0:
                self._offer(at, M / least, self._penalty(size / least))
            return
        if size <= self._radius:
            at.low, at.M_low = at.C, M
        else:
            at.high, at.M_high = at.C, M
        scaled = M * min(1.0, self._radius / size) if size > 0 else M
        self._offer(at, scaled, self._losses(scaled))
        if at.low > 0 and at.high < np.inf:
            ends = self._size(at.M_low), self._size(at.M_high)
            share = (self._radius - ends[0]) / (ends[1] - ends[0])
            mixed = (1.0 - share) * at.M_low + share * at.M_high
            mixed *= min(1.0, self._radius / max(self._size(mixed), 1e-300))
            self._offer(at, mixed, self._losses(mixed))

    @staticmethod
    def _offer(at: "_Search", M: Floats, value: float) -> None:
        if value < at.primal:
            at.M, at.primal = M, value

    def _is_over(self, at: "_Search") -> bool:
        if self._radius is not None and at.primal <= NO_LOSS * float(self._task.weights.sum()):
            at.primal = at.dual = max(at.primal, 0.0)
            return True
        return bool(np.isfinite(at.primal)) and relative_gap(at.primal, at.dual) <= self._tol

    def _next(self, at: "_Search") -> None:
        """The next C; where the bracket is closed, a tighter tolerance."""
        if self._radius is None or at.high == np.inf:
            at.C *= GROWTH
            # at the optimum without losses the dual variables have the sum |M|, or |M|^2 for l2; C bounds each of them
            needed = at.dual * (2.0 if self._norm == "l2" else 1.0)
            if at.C > LARGEST_C or (self._radius is None and needed > LARGEST_C * float(self._task.weights.sum())):
                raise ProblemError("no code separates the examples, which program hard needs; use program penalty")
        elif at.low == 0.0 and at.C > SMALLEST_C:
            at.C /= GROWTH
        else:
            at.C = float(np.sqrt(max(at.low, SMALLEST_C) * at.high))
        if at.high / max(at.low, SMALLEST_C) < CLOSE or at.trials % 10 == 0:
            at.tol = max(TIGHTER * at.tol, SMALLEST_TOL)


def bound_of_multiples(M: Floats, dual: float) -> float:
    """The bound on |M|^2 / 2 of codes without losses by the best multiple of a penalised program's dual variables.

    Their value is ``dual = s - |M|^2 / 2`` with s linear in them and M made of them, so that multiples reach
    ``s^2 / 2 |M|^2``: infinity shows that no code separates.
    """
    square = float(np.sum(M * M))
    return (dual + 0.5 * square) ** 2 / (2.0 * square) if square > 0.0 else np.inf


@dataclass(eq=False)
class _Search:
    """State of the search after a step.

    Attributes
    ----------
    M, M_low, M_high : float64 arrays, shape (n_classes, n_columns)
        The best feasible code; those of the largest C within the radius and of the smallest beyond it.
    C, low, high, tol : float
        Of the trial that comes, the bracket, and the tolerance of its program.
    primal, dual : float
        Of the constrained program.
    """

    M: Floats
    M_low: Floats
    M_high: Floats
    C: float
    tol: float
    low: float = 0.0
    high: float = np.inf
    primal: float = np.inf
    dual: float = 0.0
    trials: int = 0
    epochs: int = 0

    @classmethod
    def begin(cls, task: Task, tol: float) -> "_Search":
        none = np.zeros(task.shape)
        return cls(none, none, none, task.C, FIRST_SHARE * tol)

    @classmethod
    def from_state(cls, state: State) -> "_Search":
        held: dict[str, Any] = {
            field.name: np.array(state[field.name]) if field.name.startswith("M") else state[field.name].item()
            for field in fields(cls)
        }
        return cls(**held)

    def state(self) -> State:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
