"""Binary machines of a code's columns, trained one by one, each of its own examples alone.

In shards each has the columns that were dealt to it; its state marks the others as trained elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.kernel_svm.kernel_function import scale_of
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.output_codes import codes
from solvers.output_codes.codes import Code
from solvers.output_codes.column_models import SIDES, Bank, Shelf
from solvers.sharding.exchange import Exchange
from solvers.sharding.independent import together
from solvers.sharding.partition import balanced
from solvers.sharding.reshard import OWN
from solvers.sharding.shardable import Arrays, ModelPart

SLICE_CELLS = 1 << 27
CELL_COST = 16
# where a column stands; one that is trained elsewhere is another shard's
UNTOUCHED, BEGUN, ENDED, ELSEWHERE = range(4)

Build = Callable[[int], Solver[Any]]


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
        tally = _Tally.of_state(state)
        running = [self._column(t, _held(state, t)) for t in np.flatnonzero(tally.status == BEGUN).tolist()]
        with ThreadPoolExecutor(self._threads) as thread_pool:
            while running or (tally.status == UNTOUCHED).any():
                waiting = np.flatnonzero(tally.status == UNTOUCHED)[: max(0, self._threads - len(running))]
                running += [self._column(t, None) for t in waiting.tolist()]
                list(thread_pool.map(_Column.advance, running))
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
        return float(np.average(state["tally_nonzero"], weights=codes.participants(self._code, self._problem.y)))

    def bank(self, state: State) -> Bank:
        return self._shelf(state).bank()

    def partition(self, size: int) -> NDArray[np.int32]:
        return balanced(codes.participants(self._code, self._problem.y), size, "columns")

    def sharded(self, exchange: Exchange, state: State | None) -> Iterator[Step]:
        own = np.flatnonzero(self.partition(exchange.size) == exchange.rank).astype(np.int32)
        state = self._untouched(own) if state is None else state
        tally = _Tally.of_state(state)
        # a shard that has nothing left to do tells the others so
        steps = self.steps(state) if (tally.status < ENDED).any() else iter([tally.step(state)])
        return together(steps, exchange, lambda step, _: {**step.state, OWN: own})

    def part(self, state: State) -> ModelPart:
        shelf, nonzero = self._shelf(state).state(), np.asarray(state["tally_nonzero"])
        return ShelfPart(np.asarray(state[OWN]), shelf, nonzero)

    def joined(
        self, owner: NDArray[np.int32], arrays: Arrays, reports: Sequence[Mapping[str, Any]]
    ) -> tuple[Bank, float]:
        parts = [ShelfPart.read(rank, arrays) for rank in range(len(reports))]
        n_columns = len(owner)
        shelf = Shelf.of_state(
            self._problem.n_features, n_columns, Shelf.joined([part[0] for part in parts], np.arange(n_columns))
        )
        nonzero = np.stack([part[1] for part in parts])[owner, np.arange(n_columns)]
        return shelf.bank(), self.nonzero_duals({"tally_nonzero": nonzero})

    def _shelf(self, state: State) -> Shelf:
        """The machines of trained columns, and those that there are of columns in work."""
        shelf = Shelf.of_state(self._problem.n_features, self._code.shape[1], state)
        for t in np.flatnonzero(state["tally_status"] == BEGUN).tolist():
            shelf.put(t, self._column(t, _held(state, t)).trained(), self._lead)
        return shelf

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

    def _untouched(self, own: NDArray[np.int32] | None = None) -> State:
        n_columns = self._code.shape[1]
        tally = _Tally.begin(n_columns)
        if own is not None:
            tally.status[:] = ELSEWHERE
            tally.status[own] = UNTOUCHED
        return self._state(Shelf(self._problem.n_features, n_columns), tally, [])

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
    """Where every column stands, its last values, and the share of its dual variables that are not zero."""

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
    def of_state(cls, state: State) -> "_Tally":
        return cls(**{name: np.array(state[f"tally_{name}"]) for name in cls.names()})

    @classmethod
    def names(cls) -> list[str]:
        """The names of the arrays."""
        return [field.name for field in fields(cls)]

    def note(self, column: _Column) -> None:
        """Write down where a column stands now."""
        t, last = column.number, column.last
        self.status[t] = ENDED if column.ended else BEGUN
        if last is not None:
            self.epoch[t], self.converged[t] = last.epoch, last.converged
            self.violation[t] = last.violation
        if not np.isnan(column.primal):
            self.primal[t], self.dual[t] = column.primal, column.dual

    def step(self, state: State) -> Step:
        """The sums over all columns that are trained here: nan until every one has been measured."""
        here = self.status != ELSEWHERE
        return Step(
            int(self.epoch.max()),
            float(self.primal[here].sum()),
            float(self.dual[here].sum()),
            float(np.fmax.reduce(self.violation)),
            bool(self.converged[here].all()),
            state,
        )


@dataclass(frozen=True, eq=False)
class ShelfPart:
    """What a shard has of machines that were trained one by one.

    Attributes
    ----------
    own : int32 array, shape (n_own,)
        Its columns.
    shelf : mapping
        State of their shelf.
    nonzero : float64 array, shape (n_columns,)
        The share of each column's dual variables that are not zero; nan where it is not known.
    """

    own: NDArray[np.int32]
    shelf: Arrays
    nonzero: NDArray[np.float64]

    def files(self, rank: int) -> Arrays:
        """The machines as they lie on the shelf."""
        return {f"{name}-{rank}": array for name, array in {**self.shelf, "nonzero": self.nonzero}.items()}

    def report(self) -> dict[str, Any]:
        """Nothing more."""
        return {}

    @staticmethod
    def read(rank: int, arrays: Arrays) -> tuple[Arrays, NDArray[np.float64]]:
        """Shelf and shares of a shard from the files of all."""
        suffix = f"-{rank}"
        held = {name.removesuffix(suffix): array for name, array in arrays.items() if name.endswith(suffix)}
        return held, np.asarray(held["nonzero"])


def is_one_by_one(state: State) -> bool:
    """Whether a state is of columns that are trained one by one."""
    return "tally_status" in state


def gathered(parts: Sequence[Arrays], own: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """The state of a shard with the columns ``own``, one by one, from those of shards that together have them.

    Raises
    ------
    ValueError
        A column is in no part.
    """
    found = {name: np.array(parts[0][f"tally_{name}"]) for name in _Tally.names()}
    found["status"][:] = ELSEWHERE
    running: dict[str, NDArray[Any]] = {}
    for part in parts:
        mine = np.intersect1d(own, part[OWN])
        for name, array in found.items():
            array[mine] = part[f"tally_{name}"][mine]
        for t in mine[found["status"][mine] == BEGUN].tolist():
            running |= {name: np.array(array) for name, array in part.items() if name.startswith(f"column{t}_")}
    lost = own[found["status"][own] == ELSEWHERE]
    if len(lost):
        raise ValueError(f"column {lost[0]} is in no part")
    tally = {f"tally_{name}": array for name, array in found.items()}
    return {OWN: own} | tally | running | Shelf.joined(parts, own)


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
