"""Designs of continuous codes for given margins, whole or column by column: what their steps and states have in common.

Crammer and Singer 2002, section 5: the quadratic design is a multi-class machine on the margins, those with the norms
l1 and l_infinity are linear programs.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.base import Solver, State, Step, relative_gap
from solvers.core.machine import Machine
from solvers.core.model import LinearModel, Model
from solvers.core.problem import Problem
from solvers.output_codes import single_column
from solvers.output_codes.code_programs import Floats, Program, Solution

NEGLIGIBLE = 1e-9
SLICE_CELLS = 1 << 26
CERTIFY_EVERY = 4


@dataclass(frozen=True, eq=False)
class Task:
    """What a code is designed for.

    Attributes
    ----------
    H : float64 array or csr_matrix, shape (n_samples, n_columns)
        Margins of the columns' machines, or features.
    y : int32 array, shape (n_samples,)
    weights : float64 array, shape (n_samples,)
        Of the examples.
    C : float
    classes : tuple of str
    """

    H: Any
    y: NDArray[np.int32]
    weights: Floats
    C: float
    classes: tuple[str, ...]

    @property
    def bounds(self) -> Floats:
        """What the loss of each example is multiplied by."""
        return self.C * self.weights

    @property
    def problem(self) -> Problem:
        """The problem that a multi-class machine on the margins solves."""
        return Problem(sp.csr_matrix(self.H), self.y, self.classes, self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the code: (n_classes, n_columns)."""
        return len(self.classes), int(self.H.shape[1])


class Design(Protocol):
    """A way to design a code."""

    def steps(self, state: State | None) -> Iterator[Step]:
        """Design, from the start or from the state of an earlier step."""

    def code(self, state: State) -> Floats | Model:
        """The code of a state; a model of the margins where no matrix holds it."""

    def rescaled(self, state: State, ratio: float) -> State | None:
        """What to begin from at ``ratio`` times the C that ``state`` ended at; None for nothing."""

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero; nan where there are none of the whole design."""


class Quadratic:
    """The squared l2 norm, by a multi-class machine on the margins with any kernel."""

    def __init__(self, task: Task, solver: Machine[Any]) -> None:
        self._problem = task.problem
        self._solver = solver

    def steps(self, state: State | None) -> Iterator[Step]:
        return self._solver.steps(self._problem, state)

    def code(self, state: State) -> Floats | Model:
        model = self._solver.model(self._problem, state)
        return np.asarray(model.coef, np.float64) if isinstance(model, LinearModel) else model

    def rescaled(self, state: State, ratio: float) -> State | None:
        return self._solver.rescale(self._solver.prepared(self._problem), state, ratio)

    def nonzero_duals(self, state: State) -> float:
        return self._solver.nonzero_duals(self._problem, state)


class Linear:
    """The norms l1 and l_infinity, by linear programs over growing sets of constraints.

    Parameters
    ----------
    program : Program
    tol : float
    max_rounds : int
    memory_mb : int, optional
        What the programs may take; None for all that the machine has.
    guess : callable, optional
        Makes a code near which the first constraints are looked for; 0 where left out.
    """

    def __init__(
        self,
        program: Program,
        tol: float,
        max_rounds: int,
        memory_mb: int | None,
        guess: Callable[[], Floats] | None = None,
    ) -> None:
        self._program = program
        self._tol = tol
        self._max_rounds = max_rounds
        self._memory_mb = memory_mb
        self._guess = guess

    def steps(self, state: State | None) -> Iterator[Step]:
        program = self._program
        if state is None:
            program.check_size(len(program.y), self._memory_mb)
            M = np.zeros((program.n_classes, program.H.shape[1])) if self._guess is None else self._guess()
            state = self._around(M)
        M, working, values, clock = (np.array(state[name]) for name in ("M", "working", "values", "clock"))
        # of the values: primal and dual; of the clock: rounds, dual variables above 0 at M, 1 once no way is left
        converged = clock[0] > 0 and relative_gap(*values) <= self._tol
        while clock[0] < self._max_rounds and not clock[2] and not converged:
            program.check_size(len(working), self._memory_mb)
            arrays = {"M": M, "working": working, "values": values, "clock": clock}
            at_work = Step(int(clock[0]) + 1, np.nan, np.nan, np.nan, False, arrays)
            found = yield from _meanwhile(program.solving(working, 1e-2 * self._tol), at_work)
            V = program.violations(found.M)
            primal = program.primal(found.M, V)
            if primal < values[0]:
                M, values[0] = found.M, primal
                clock[1] = np.count_nonzero(found.eta > NEGLIGIBLE * program.bounds[working // program.n_classes])
            rises = found.dual > values[1] + 1e-3 * self._tol * abs(found.dual)
            values[1] = min(max(values[1], found.dual), values[0])
            grown = program.grown(working, V, purge=rises)
            clock[0] += 1
            clock[2] = np.array_equal(grown, working)
            worst = float((V.max(axis=1) - program.slack(working, V)).max())
            working = grown
            converged = relative_gap(*values) <= self._tol
            arrays = {"M": M, "working": working, "values": values, "clock": clock}
            yield Step(int(clock[0]), float(values[0]), float(values[1]), max(worst, 0.0), converged, arrays)

    def code(self, state: State) -> Floats | Model:
        return np.array(state["M"])

    def rescaled(self, state: State, ratio: float) -> State | None:
        return self._around(np.array(state["M"]))

    def nonzero_duals(self, state: State) -> float:
        return float(state["clock"][1]) / (len(self._program.y) * (self._program.n_classes - 1))

    def _around(self, M: Floats) -> State:
        working = self._program.working_set(self._program.violations(M))
        return {
            "M": M,
            "working": working,
            "values": np.array([np.inf, -np.inf]),
            "clock": np.zeros(3, np.int64),
        }


class QuadraticColumn:
    """The squared l2 norm of one column beside others, by block ascent over single examples."""

    def __init__(self, program: Program, tol: float, max_epochs: int, seed: int) -> None:
        assert program.offsets is not None
        self._program = program
        self._fixed = (np.ascontiguousarray(program.H[:, 0]), program.y, program.bounds, program.offsets)
        self._tol = tol
        self._max_epochs = max_epochs
        self._seed = seed

    def steps(self, state: State | None) -> Iterator[Step]:
        n, k = len(self._program.y), self._program.n_classes
        begin: State = {"alpha": np.zeros((n, k)), "m": np.zeros(k), "epoch": np.zeros(1, np.int64)}
        alpha, m, epoch = (np.array((state or begin)[name]) for name in ("alpha", "m", "epoch"))
        slice_epochs = CERTIFY_EVERY * max(1, SLICE_CELLS // (CERTIFY_EVERY * n * k))
        converged = False
        while epoch[0] < self._max_epochs and not converged:
            stop = min(int(epoch[0]) + slice_epochs, self._max_epochs)
            while epoch[0] < stop and not converged:
                epoch += 1
                order = np.random.default_rng([self._seed, int(epoch[0])]).permutation(n)
                single_column.visit(*self._fixed, order, alpha, m)
                if epoch[0] % CERTIFY_EVERY == 0 or epoch[0] == stop:
                    primal, dual = single_column.certify(*self._fixed, alpha, m)
                    dual = min(primal, dual)
                    converged = relative_gap(primal, dual) <= self._tol
            arrays = {"alpha": alpha, "m": m, "epoch": epoch}
            yield Step(int(epoch[0]), primal, dual, float("nan"), converged, arrays)

    def code(self, state: State) -> Floats | Model:
        return np.array(state["m"])[:, None]

    def rescaled(self, state: State, ratio: float) -> State | None:
        return None

    def nonzero_duals(self, state: State) -> float:
        return float(np.count_nonzero(state["alpha"])) / (len(self._program.y) * (self._program.n_classes - 1))


class ColumnByColumn:
    """A code whose columns are designed one after the other, those before kept as they are.

    Each is the best there is beside those before it; all together they are no optimum, so that no step has a dual
    value, and each tells the gap of its own column.

    Parameters
    ----------
    task : Task
    norm : str
    column : callable
        Makes the design of one column: called with its program.
    """

    def __init__(self, task: Task, norm: str, column: Callable[[Program], Design]) -> None:
        self._task = task
        self._norm = norm
        self._column = column

    def steps(self, state: State | None) -> Iterator[Step]:
        n_columns = self._task.shape[1]
        if state is None:
            state = {"M": np.zeros(self._task.shape), "at": np.array([0, 0, 0, 1], np.int64)}
        # of at: the column in work, epochs of those before it, its own epochs, 1 while all have converged
        M, at = np.array(state["M"]), np.array(state["at"])
        inner = part_of(state, "column_")
        while at[0] < n_columns:
            t, converged = int(at[0]), False
            design, beside = self._beside(M, t)
            for step in design.steps(inner or None):
                M[:, t] = np.asarray(design.code(step.state))[:, 0]
                at[2], converged, inner = step.epoch, step.converged, dict(step.state)
                if converged:
                    at[:], inner = (t + 1, at[1] + at[2], 0, at[3]), {}
                arrays = {"M": M, "at": at} | {f"column_{name}": array for name, array in inner.items()}
                told = {"columns": float(at[0]), "column_gap": step.gap}
                ended = at[0] == n_columns and bool(at[3])
                yield Step(int(at[1] + at[2]), step.primal + beside, np.nan, step.violation, ended, arrays, told)
            if not converged:
                # at its limit, or rounding leaves no way on
                at[:], inner = (t + 1, at[1] + at[2], 0, 0), {}

    def code(self, state: State) -> Floats | Model:
        return np.array(state["M"])

    def rescaled(self, state: State, ratio: float) -> State | None:
        return None

    def nonzero_duals(self, state: State) -> float:
        return float("nan")

    def _beside(self, M: Floats, t: int) -> tuple[Design, float]:
        """The design of column t, and what the columns before it add to the objective."""
        task = self._task
        rows, H = np.arange(len(task.y)), task.H
        M = np.where(np.arange(M.shape[1]) < t, M, 0.0)
        F = np.asarray(H @ M.T)
        offsets = 1.0 - F[rows, task.y][:, None] + F
        column = H[:, t].toarray() if isinstance(H, sp.csr_matrix) else np.ascontiguousarray(H[:, t : t + 1])
        norm = "linf" if self._norm == "linf" else "l1"
        floor = float(np.abs(M).max()) if self._norm == "linf" else 0.0
        beside = {"l1": float(np.abs(M).sum()), "l2": 0.5 * float((M**2).sum()), "linf": 0.0}[self._norm]
        program = Program(column, task.y, task.bounds, len(task.classes), norm, offsets, floor)  # type: ignore[arg-type]
        return self._column(program), beside


def _meanwhile(solving: Generator[None, None, Solution], step: Step) -> Generator[Step, None, Solution]:
    """Hand out the same step while a program is at work; the program is given up with the caller."""
    with closing(solving):
        while True:
            try:
                next(solving)
            except StopIteration as ended:
                found: Solution = ended.value
                return found
            yield step


def guess_by(task: Task, make: Callable[[float], Solver[Any]]) -> Callable[[], Floats]:
    """A rough code by the squared norm, on margins scaled to 1; ``make`` is called with its C."""

    def guess() -> Floats:
        scale = float(abs(task.H).max()) or 1.0
        solver = make(task.C * scale)
        problem = replace(task, H=task.H / scale).problem
        *_, last = solver.steps(problem)
        model = solver.model(problem, last.state)
        assert isinstance(model, LinearModel)
        return np.asarray(model.coef, np.float64) / scale

    return guess


def part_of(state: State, prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
