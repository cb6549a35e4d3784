"""Training of the binary machines of a code's columns: all at once where the base method can, else one by one.

The columns do not depend on each other, so their primal and dual values add up: the sum of the dual values is a lower
bound on the sum of the objectives.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from solvers import codes
from solvers.base import Solver, State, Step
from solvers.code_bank import SIDES, Bank, Part, Shelf
from solvers.code_families import Family, make, most_columns
from solvers.codes import Code
from solvers.composite import Composite, CompositeParams
from solvers.flat import FlatMachine
from solvers.kernel_model import KernelModel
from solvers.kernels.kernel_function import scale_of
from solvers.memory import limit_bytes
from solvers.model import Model
from solvers.problem import Problem

# an example that takes part in fewer columns than this share is better trained for each column alone
DENSE = 1 / 16
FIXED = ("one_vs_rest", "all_pairs", "exhaustive")
AT_ONCE_BYTES = 1 << 32
SLICE_CELLS = 1 << 27
CELL_COST = 16

Build = Callable[[int], Solver[Any]]


class CodedParams(CompositeParams):
    """Which code the columns are of, beside the base method that trains them."""

    code: Family = Field(
        default="one_vs_rest",
        description="Family of the code matrix; the exhaustive one takes up to 11 classes.",
    )
    matrix: list[list[int]] | None = Field(
        default=None,
        description="A code of one's own in place of a family: a row of -1, 0 and +1 for each class, in the order of "
        "the labels; 0 leaves the class's examples out of the column.",
    )
    n_columns: Annotated[int, Field(ge=1, le=4095)] | None = Field(
        default=None,
        description="Columns of a random or bch code; left out, 10 (sparse_random: 15) times the binary logarithm of "
        "the number of classes. A bch code has a power of two less one, or fewer where columns would repeat.",
    )

    @field_validator("matrix")
    @classmethod
    def _is_code(cls, matrix: list[list[int]] | None) -> list[list[int]] | None:
        return matrix if matrix is None else codes.check(matrix).tolist()

    @field_validator("n_columns")
    @classmethod
    def _are_open(cls, n_columns: int | None, info: ValidationInfo) -> int | None:
        matrix, family = info.data.get("matrix"), info.data.get("code")
        if n_columns is not None and (matrix is not None or family in FIXED):
            what = f"the code {family}" if matrix is None else "a given matrix"
            raise ValueError(f"this is for random and bch codes; {what} has its own number of columns")
        return n_columns


C = TypeVar("C", bound=CodedParams)


class Coded(Composite[C]):
    """A method over the columns of a code."""

    def code(self, problem: Problem) -> Code:
        """The code of the problem's classes; raises :class:`solvers.codes.CodeError`."""
        if self.params.matrix is not None:
            return codes.check(self.params.matrix, problem.classes)
        return make(self.params.code, problem.n_classes, self.params.n_columns, self.seed)

    def column_bytes(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """What the code takes, and the columns that are in work at a time with the weights of those that are done."""
        base, n_columns = self.base(), self.count_columns(n_classes)
        pairs = self.params.matrix is None and self.params.code == "all_pairs"
        code, served = n_classes * n_columns, 4 * n_features * min(n_classes, n_columns)
        fits = _bytes_at_once(n_samples, n_features, n_columns) <= self._at_once_bytes()
        if (
            isinstance(base, OfCode)
            and isinstance(base, FlatMachine)
            and fits
            and not (pairs and 2 / n_classes < DENSE)
        ):
            return code + max(served, base.bytes_needed(n_samples, n_features, n_columns))
        taking_part = 2 * n_samples // n_classes if pairs else n_samples
        each = base.bytes_needed(taking_part, n_features, 2) if isinstance(base, FlatMachine) else 0
        return code + served + min(self.threads, n_columns) * each

    def count_columns(self, n_classes: int) -> int:
        """How many columns the code of so many classes has at most."""
        if self.params.matrix is not None:
            return len(self.params.matrix[0])
        return most_columns(self.params.code, n_classes, self.params.n_columns)

    def _at_once_bytes(self) -> int:
        """Columns that take more than this are not trained all at once."""
        return min(AT_ONCE_BYTES, limit_bytes(self.params.memory_mb))

    def columns(self, problem: Problem, code: Code, confidence: NDArray[np.float64] | None = None) -> "Columns":
        """The machines of the columns of ``code``, to be trained."""
        build = lambda threads: self.base(threads=threads)  # noqa: E731
        return columns_of(problem, code, build, self.threads, confidence, self._at_once_bytes())


@runtime_checkable
class OfCode(Protocol):
    """A solver that trains all columns of a code as one problem."""

    def of_code(self, code: Code) -> Solver[Any]:
        """The solver whose steps are those of all columns, and whose linear models score columns."""


class Columns(Protocol):
    """The machines of all columns while they are trained."""

    def steps(self, state: State | None) -> Iterator[Step]:
        """Steps whose values are the sums over all columns."""

    def rescaled(self, state: State, ratio: float) -> State:
        """A state to train from at another C, ``ratio`` times the one that ``state`` ended at."""

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero; nan where the base method does not tell."""

    def bank(self, state: State) -> Bank:
        """The machines that a state stands for."""


def columns_of(
    problem: Problem,
    code: Code,
    build: Build,
    threads: int,
    confidence: NDArray[np.float64] | None = None,
    most_bytes: int = AT_ONCE_BYTES,
) -> Columns:
    """The way to train a code's columns.

    Parameters
    ----------
    problem : Problem
    code : int8 array of -1, 0 and +1, shape (n_classes, n_columns)
    build : callable
        Makes a solver of the base method, given its number of threads.
    threads : int
    confidence : float64 array, shape (n_classes, n_columns), optional
        What the weights of a class's examples are multiplied by in a column; positive where the code is not 0.
    most_bytes : int
        Columns that would take more all at once are trained one by one.
    """
    solver = build(threads)
    if isinstance(solver, OfCode) and confidence is None and not getattr(solver.params, "class_weight", None):
        share = float(_sizes(problem, code).sum()) / (problem.n_samples * code.shape[1])
        n_used = int(np.count_nonzero(np.bincount(problem.X.indices)))
        if share >= DENSE and _bytes_at_once(problem.n_samples, n_used, code.shape[1]) <= most_bytes:
            return AtOnce(problem, solver.of_code(code), code.shape[1])
    return OneByOne(problem, code, build, threads, confidence)


def _bytes_at_once(n_samples: int, n_features: int, n_columns: int) -> int:
    return 8 * n_columns * (n_samples + n_features)


def _sizes(problem: Problem, code: Code) -> NDArray[np.float64]:
    """How many examples take part in each column, shape (n_columns,)."""
    counts, sizes = np.bincount(problem.y, minlength=problem.n_classes), np.zeros(code.shape[1])
    chunk = max(1, codes.CHUNK_BYTES // (8 * code.shape[1]))
    for begin in range(0, len(code), chunk):
        sizes += counts[begin : begin + chunk].astype(np.float64) @ (code[begin : begin + chunk] != 0)
    return sizes


class AtOnce:
    """All columns as one problem of the base method."""

    def __init__(self, problem: Problem, solver: Solver[Any], n_columns: int) -> None:
        self._problem = problem
        self._solver = solver
        self._n_columns = n_columns

    def steps(self, state: State | None) -> Iterator[Step]:
        return self._solver.steps(self._problem, state)

    def rescaled(self, state: State, ratio: float) -> State:
        assert isinstance(self._solver, FlatMachine)
        return self._solver.rescale(self._solver.prepared(self._problem), state, ratio)

    def nonzero_duals(self, state: State) -> float:
        assert isinstance(self._solver, FlatMachine)
        return self._solver.nonzero_duals(self._solver.prepared(self._problem), state)

    def bank(self, state: State) -> Bank:
        model = self._solver.model(self._problem, state)
        part = Part(model, np.arange(self._n_columns), 0.0)
        return Bank(model.n_features, self._n_columns, (part,))


class OneByOne:
    """Each column a problem of its own, as many at a time as there are threads.

    Of a trained column only its model is kept. Every column has the same seed, so that a column's machine depends on
    nothing but its own examples.
    """

    def __init__(
        self,
        problem: Problem,
        code: Code,
        build: Build,
        threads: int,
        confidence: NDArray[np.float64] | None = None,
    ) -> None:
        self._problem = problem
        self._code = code
        self._confidence = confidence
        self._threads = threads
        self._build = _with_one_scale(problem, build)
        self._lead = build(1).lead

    def steps(self, state: State | None) -> Iterator[Step]:
        n_columns = self._code.shape[1]
        state = self._untouched() if state is None else state
        shelf = Shelf.of_state(self._problem.n_features, n_columns, state)
        tally = _Tally(**{name: np.array(state[f"tally_{name}"]) for name in _Tally.names()})
        running = [self._column(t, _held(state, t)) for t in np.flatnonzero(tally.status == 1).tolist()]
        with ThreadPoolExecutor(self._threads) as crew:
            while running or (tally.status == 0).any():
                waiting = np.flatnonzero(tally.status == 0)[: max(0, self._threads - len(running))]
                running += [self._column(t, None) for t in waiting.tolist()]
                list(crew.map(_Column.advance, running))
                for column in running:
                    tally.note(column)
                    if column.ended:
                        model = column.trained()
                        shelf.put(column.number, model, self._lead)
                        tally.nonzero[column.number] = model.report.get("nonzero_duals", np.nan)
                running = [column for column in running if not column.ended]
                yield tally.step(self._state(shelf, tally, running))

    def rescaled(self, state: State, ratio: float) -> State:
        # nothing is known of the dual variables of a trained column
        return self._untouched()

    def nonzero_duals(self, state: State) -> float:
        # a column has as many dual variables as examples, or as many times more as any other
        return float(np.average(state["tally_nonzero"], weights=_sizes(self._problem, self._code)))

    def bank(self, state: State) -> Bank:
        n_columns = self._code.shape[1]
        shelf = Shelf.of_state(self._problem.n_features, n_columns, state)
        for t in np.flatnonzero(state["tally_status"] == 1).tolist():
            shelf.put(t, self._column(t, _held(state, t)).trained(), self._lead)
        return shelf.bank()

    def _column(self, t: int, state: State | None) -> "_Column":
        signs = self._code[:, t][self._problem.y]
        rows = np.flatnonzero(signs)
        problem, solver = self._problem, self._build(1)
        X, weights = problem.X, problem.weights
        if self._confidence is not None:
            weights = weights * self._confidence[problem.y, t]
        if len(rows) < problem.n_samples:
            X, weights = X[rows], weights[rows]
            if _precomputed(solver):
                X = X[:, rows]
        y = (signs[rows] > 0).astype(np.int32)
        return _Column(t, Problem(X, y, SIDES, weights), solver, state, rows, problem.n_features)

    def _untouched(self) -> State:
        n_columns = self._code.shape[1]
        return self._state(Shelf(self._problem.n_features, n_columns), _Tally.begin(n_columns), [])

    @staticmethod
    def _state(shelf: Shelf, tally: "_Tally", running: list["_Column"]) -> dict[str, NDArray[Any]]:
        held = shelf.state() | {f"tally_{name}": getattr(tally, name) for name in _Tally.names()}
        for column in running:
            held |= {f"column{column.number}_{name}": array for name, array in column.state.items()}
        return held


class _Column:
    """One column while it is trained."""

    def __init__(
        self,
        number: int,
        problem: Problem,
        solver: Solver[Any],
        state: State | None,
        rows: NDArray[np.int64],
        n_features: int,
    ) -> None:
        self.number = number
        self.state: State = {} if state is None else state
        self.last: Step | None = None
        self.primal, self.dual = np.nan, np.nan
        self.ended = False
        self._problem = problem
        self._solver = solver
        self._rows = rows
        self._n_features = n_features
        self._steps: Iterator[Step] | None = None

    def advance(self) -> None:
        """Go on for one slice: so many steps of the solver as it should take within about a second."""
        if self._steps is None:
            self._steps = self._solver.steps(self._problem, self.state or None)
        n, nnz = self._problem.n_samples, self._problem.X.nnz
        cost = n * n if self._solver.handles.kernels else CELL_COST * nnz
        for _ in range(max(1, SLICE_CELLS // max(cost, 1))):
            step = next(self._steps, None)
            if step is not None:
                self.last, self.state = step, step.state
                if not np.isnan(step.primal):
                    self.primal, self.dual = step.primal, step.dual
            if step is None or step.converged:
                self.ended = True
                return

    def trained(self) -> Model:
        """The model of the state that was reached; kernel values count all examples, not those of the column."""
        model = self._solver.model(self._problem, self.state)
        if isinstance(model, KernelModel) and model.function.name == "precomputed":
            model.n_features, model.features = self._n_features, self._rows[model.features]
        return model


@dataclass
class _Tally:
    """Where every column stands: 0 untouched, 1 begun, 2 ended; its last values; the share of its duals not zero."""

    status: NDArray[np.int8]
    epoch: NDArray[np.int64]
    primal: NDArray[np.float64]
    dual: NDArray[np.float64]
    violation: NDArray[np.float64]
    converged: NDArray[np.bool_]
    nonzero: NDArray[np.float64]

    @classmethod
    def begin(cls, n: int) -> "_Tally":
        primal, dual, violation, nonzero = np.full((4, n), np.nan)
        return cls(np.zeros(n, np.int8), np.zeros(n, np.int64), primal, dual, violation, np.zeros(n, np.bool_), nonzero)

    @classmethod
    def names(cls) -> list[str]:
        """The names of the arrays."""
        return [field.name for field in fields(cls)]

    def note(self, column: _Column) -> None:
        """Write down where a column stands now."""
        t, last = column.number, column.last
        self.status[t] = 2 if column.ended else 1
        if last is not None:
            self.epoch[t], self.converged[t] = last.epoch, last.converged
            self.violation[t] = last.violation
        if not np.isnan(column.primal):
            self.primal[t], self.dual[t] = column.primal, column.dual

    def step(self, state: State) -> Step:
        """The sums over all columns: nan until every column has been measured."""
        seen = self.violation[~np.isnan(self.violation)]
        return Step(
            int(self.epoch.max()),
            float(self.primal.sum()),
            float(self.dual.sum()),
            float(seen.max()) if len(seen) else float("nan"),
            bool(self.converged.all()),
            state,
        )


def _held(state: Mapping[str, NDArray[Any]], t: int) -> State:
    prefix = f"column{t}_"
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _precomputed(solver: Solver[Any]) -> bool:
    return getattr(solver.params, "kernel", None) == "precomputed"


def _with_one_scale(problem: Problem, build: Build) -> Build:
    """Let ``gamma="scale"`` mean the scale of all examples, so that all columns share one kernel function."""
    params = build(1).params
    if getattr(params, "gamma", None) != "scale" or getattr(params, "kernel", None) not in ("poly", "rbf"):
        return build
    given = params.model_copy(update={"gamma": scale_of(problem.X)})

    def scaled(threads: int) -> Solver[Any]:
        solver = build(threads)
        solver.params = given
        return solver

    return scaled
