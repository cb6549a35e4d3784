"""Continuous codes designed column by column; Crammer and Singer 2002, end of section 5.2."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.numerics.array_types import Array, Floats
from solvers.output_codes.design.programs import Norm, Program
from solvers.output_codes.design.task import Design, Task, part_of


class ColumnByColumn(Design):
    """A code whose columns are designed one after the other, those before kept as they are.

    Each is the best there is beside those before it; all together they are no optimum, so that no step has a dual
    value, and each reports the gap of its own column.

    Parameters
    ----------
    column : callable
        Makes the design of one column: called with its program.
    alone : bool
        Whether the largest size that counts is that of the new column (equation 32), or of the whole code so far.
    """

    def __init__(self, task: Task, norm: str, column: Callable[[Program], Design], *, alone: bool = False) -> None:
        self._task = task
        self._norm = norm
        self._column = column
        self._alone = alone

    def steps(self, state: State | None) -> Iterator[Step]:
        n_columns = self._task.shape[1]
        at = _Progress(np.zeros(self._task.shape)) if state is None else _Progress.from_state(state)
        inner = {} if state is None else part_of(state, "column_")
        while at.column < n_columns:
            t, converged = at.column, False
            design, beside = self._beside(at.M, t)
            for step in design.steps(inner or None):
                at.M[:, t] = np.asarray(design.code(step.state))[:, 0]
                at.epochs, converged, inner = step.epoch, step.converged, dict(step.state)
                if converged:
                    at.go_on(converged=True)
                    inner = {}
                arrays = at.state() | {f"column_{name}": array for name, array in inner.items()}
                measures = {"columns": float(at.column), "column_gap": step.gap}
                ended, epoch = at.column == n_columns and at.all_converged, at.epochs_before + at.epochs
                if self._alone and self._norm == "linf":
                    beside = float(np.abs(at.M[:, : t + 1]).max() - np.abs(at.M[:, t]).max())
                yield Step(epoch, step.primal + beside, np.nan, step.violation, ended, arrays, measures)
            if not converged:
                # at its limit, or rounding leaves no way on
                at.go_on(converged=False)
                inner = {}

    def _beside(self, M: Floats, t: int) -> tuple[Design, float]:
        """The design of column t, and what the columns before it add to the objective."""
        task = self._task
        rows, H = np.arange(len(task.y)), task.H
        M = np.where(np.arange(M.shape[1]) < t, M, 0.0)
        F = np.asarray(H @ M.T)
        offsets = 1.0 - F[rows, task.y][:, None] + F
        column = H[:, t].toarray() if isinstance(H, sp.csr_matrix) else np.ascontiguousarray(H[:, t : t + 1])
        norm: Norm = "linf" if self._norm == "linf" else "l1"
        floor = float(np.abs(M).max()) if self._norm == "linf" and not self._alone else 0.0
        beside = {"l1": float(np.abs(M).sum()), "l2": 0.5 * float((M**2).sum()), "linf": 0.0}[self._norm]
        program = Program(column, task.y, task.bounds, len(task.classes), norm, offsets, floor)
        return self._column(program), beside


@dataclass(eq=False)
class _Progress:
    """State of the design: the code, the column in work, epochs of those before it, and its own."""

    M: Floats
    column: int = 0
    epochs_before: int = 0
    epochs: int = 0
    all_converged: bool = True

    @classmethod
    def from_state(cls, state: State) -> "_Progress":
        names = ("column", "epochs_before", "epochs", "all_converged")
        return cls(np.array(state["M"]), *(state[name].item() for name in names))

    def state(self) -> dict[str, Array]:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    def go_on(self, *, converged: bool) -> None:
        """Leave the column in work for the next."""
        self.column, self.epochs_before, self.epochs = self.column + 1, self.epochs_before + self.epochs, 0
        self.all_converged = self.all_converged and converged
