"""Binary machines of a code's columns, trained one by one, each of its own examples alone.

In shards each has the columns that were dealt to it; its state marks the others as trained elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solvers.core.base import Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.kernel_svm.kernel_function import scale_of
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.output_codes import codes
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.builder import ColumnModelBuilder
from solvers.output_codes.columns.models import SIDES, ColumnModels
from solvers.output_codes.columns.progress import BEGUN, ELSEWHERE, ENDED, PREFIX, UNTOUCHED, Progress
from solvers.sharding.exchange import Exchange
from solvers.sharding.partition import balanced, together
from solvers.sharding.reshard import OWN
from solvers.sharding.shardable import Arrays, ModelPart

SLICE_CELLS = 1 << 27
CELL_COST = 16
NONZERO = f"{PREFIX}nonzero"


class Build(Protocol):
    """Makes a solver of the base method."""

    def __call__(self, *, threads: int) -> Solver[Any]: ...


class OneByOne:
    """Each column a problem of its own, as many at a time as there are threads.

    Of a trained column only its model is kept. Every column has the same seed, so that a column's machine depends on
    nothing but its own examples.
    """

    def __init__(
        self, problem: Problem, code: Code, build: Build, threads: int, confidence: Floats | None = None
    ) -> None:
        self._problem = problem
        self._code = code
        self._confidence = confidence
        self._threads = threads
        self._build = _with_one_scale(problem, build)
        self._lead = build(threads=1).lead

    def steps(self, state: State | None) -> Iterator[Step]:
        n_columns = self._code.shape[1]
        state = self._untouched() if state is None else state
        builder = ColumnModelBuilder.from_state(self._problem.n_features, n_columns, state)
        progress = Progress.from_state(state)
        running = [self._column(t, _held(state, t)) for t in np.flatnonzero(progress.status == BEGUN).tolist()]
        with ThreadPoolExecutor(self._threads) as thread_pool:
            while running or (progress.status == UNTOUCHED).any():
                waiting = np.flatnonzero(progress.status == UNTOUCHED)[: max(0, self._threads - len(running))]
                running += [self._column(t, None) for t in waiting.tolist()]
                list(thread_pool.map(_Column.advance, running))
                for column in running:
                    progress.update(column.number, column.last, (column.primal, column.dual), ended=column.ended)
                    if column.ended:
                        model = column.trained()
                        builder.add(column.number, model, self._lead)
                        progress.nonzero[column.number] = model.report.get("nonzero_duals", np.nan)
                running = [column for column in running if not column.ended]
                yield progress.step(self._state(builder, progress, running))

    def rescaled(self, state: State, ratio: float) -> State:
        # nothing is known of the dual variables of a trained column
        return self._untouched()

    def nonzero_duals(self, state: State) -> float:
        # a column has as many dual variables as examples, or as many times more as any other
        return float(np.average(state[NONZERO], weights=codes.participants(self._code, self._problem.y)))

    def models(self, state: State) -> ColumnModels:
        return self._built(state).models()

    def partition(self, size: int) -> Ints32:
        return balanced(codes.participants(self._code, self._problem.y), size, "columns")

    def sharded(self, exchange: Exchange, state: State | None) -> Iterator[Step]:
        own = np.flatnonzero(self.partition(exchange.size) == exchange.rank).astype(np.int32)
        state = self._untouched(own) if state is None else state
        progress = Progress.from_state(state)
        # a shard without work left reports that to the others
        steps = self.steps(state) if (progress.status < ENDED).any() else iter([progress.step(state)])
        return together(steps, exchange, lambda step, _: {**step.state, OWN: own})

    def part(self, state: State) -> ModelPart:
        return OneByOnePart(np.asarray(state[OWN]), self._built(state).state(), np.asarray(state[NONZERO]))

    def joined(self, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> tuple[ColumnModels, float]:
        parts = [OneByOnePart.read(rank, arrays) for rank in range(len(reports))]
        n_columns = len(owner)
        state = ColumnModelBuilder.joined([part[0] for part in parts], np.arange(n_columns))
        builder = ColumnModelBuilder.from_state(self._problem.n_features, n_columns, state)
        nonzero = np.stack([part[1] for part in parts])[owner, np.arange(n_columns)]
        return builder.models(), self.nonzero_duals({NONZERO: nonzero})

    def _built(self, state: State) -> ColumnModelBuilder:
        """The machines of trained columns, and those that there are of columns in work."""
        builder = ColumnModelBuilder.from_state(self._problem.n_features, self._code.shape[1], state)
        for t in np.flatnonzero(state[f"{PREFIX}status"] == BEGUN).tolist():
            builder.add(t, self._column(t, _held(state, t)).trained(), self._lead)
        return builder

    def _column(self, t: int, state: State | None) -> "_Column":
        signs = self._code[:, t][self._problem.y]
        rows = np.flatnonzero(signs)
        problem, solver = self._problem, self._build(threads=1)
        X, weights = problem.X, problem.weights
        if self._confidence is not None:
            weights = weights * self._confidence[problem.y, t]
        if len(rows) < problem.n_samples:
            X, weights = X[rows], weights[rows]
            if solver.takes_kernel_values:
                X = X[:, rows]
        y = (signs[rows] > 0).astype(np.int32)
        return _Column(t, Problem(X, y, SIDES, weights), solver, state, rows, problem.n_features)

    def _untouched(self, own: Ints32 | None = None) -> State:
        n_columns = self._code.shape[1]
        progress = Progress.begin(n_columns)
        if own is not None:
            progress.status[:] = ELSEWHERE
            progress.status[own] = UNTOUCHED
        return self._state(ColumnModelBuilder(self._problem.n_features, n_columns), progress, [])

    @staticmethod
    def _state(builder: ColumnModelBuilder, progress: Progress, running: list["_Column"]) -> dict[str, Array]:
        held = builder.state() | progress.arrays()
        for column in running:
            held |= {f"column{column.number}_{name}": array for name, array in column.state.items()}
        return held


class _Column:
    """One column while it is trained."""

    def __init__(
        self, number: int, problem: Problem, solver: Solver[Any], state: State | None, rows: Ints, n_features: int
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
        return self._solver.model(self._problem, self.state).of_rows(self._rows, self._n_features)


@dataclass(frozen=True, eq=False)
class OneByOnePart:
    """What a shard has of machines that were trained one by one.

    Attributes
    ----------
    own : int32 array, shape (n_own,)
        Its columns.
    machines : mapping
        State of the builder that has them.
    nonzero : float64 array, shape (n_columns,)
        The share of each column's dual variables that are not zero; nan where it is not known.
    """

    own: Ints32
    machines: Arrays
    nonzero: Floats

    def files(self, rank: int) -> Arrays:
        """The machines as the builder's state has them."""
        return {f"{name}-{rank}": array for name, array in {**self.machines, "nonzero": self.nonzero}.items()}

    def report(self) -> dict[str, Any]:
        """Nothing more."""
        return {}

    @staticmethod
    def read(rank: int, arrays: Arrays) -> tuple[Arrays, Floats]:
        """State of the builder and shares of a shard from the files of all."""
        suffix = f"-{rank}"
        held = {name.removesuffix(suffix): array for name, array in arrays.items() if name.endswith(suffix)}
        return held, np.asarray(held["nonzero"])


def _held(state: Mapping[str, Array], t: int) -> State:
    prefix = f"column{t}_"
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _with_one_scale(problem: Problem, build: Build) -> Build:
    """Let ``gamma="scale"`` mean the scale of all examples, so that all columns share one kernel function."""
    params = build(threads=1).params
    if getattr(params, "gamma", None) != "scale" or getattr(params, "kernel", None) not in ("poly", "rbf"):
        return build
    given = params.model_copy(update={"gamma": scale_of(problem.X)})

    def scaled(*, threads: int) -> Solver[Any]:
        solver = build(threads=threads)
        solver.params = given
        return solver

    return scaled
