"""A continuous code designed for given binary machines, or for the features themselves.

    minimise  |M| + C sum_i max_{r != y_i} max(0, 1 - h(x_i)' (M_{y_i} - M_r))

over the code M, one row a class, where h(x) holds the margins of the machines of a fixed code's columns; |M| is the l1
or l_infinity norm of all entries, or half the squared l2 norm, with any kernel in place of the inner product. Crammer
and Singer 2002, equations 15, 16 and 29 with C = 1/beta. With the features in place of margins and the l2 norm this is
their multi-class machine.

The linear programs are solved over growing sets of constraints (:mod:`solvers.output_codes.code_programs`), the
quadratic one by block ascent. Column by column (their section 5.2, end), each column is the best one beside those
before it. The paper leaves open how to interleave the design with the learning of the machines: with more than one
round the machines are trained again, column t on the signs of M's column t with its sizes as weights, and the code is
designed anew; the objective is told after each round, and the best round is kept. Nothing says that it falls.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Handles, State, Step
from solvers.core.machine import Machine
from solvers.core.methods import all_methods
from solvers.core.model import LinearModel, Model
from solvers.core.problem import Problem
from solvers.metrics import bounds
from solvers.output_codes.code_design import (
    ColumnByColumn,
    Design,
    Linear,
    Quadratic,
    QuadraticColumn,
    Task,
    guess_by,
    part_of,
)
from solvers.output_codes.code_model import CodeModel, coded
from solvers.output_codes.code_programs import Floats, Program
from solvers.output_codes.coded import Coded, CodedParams
from solvers.output_codes.codes import Code
from solvers.output_codes.column_models import Bank

ACCURACY, MOST_ROUNDS = 1e-3, 1000
GUESS_TOL, GUESS_EPOCHS = 0.03, 50
CHUNK_BYTES = 64 << 20
# entries of a designed column so much smaller than its largest take no side when its machine is trained again
NO_SIDE = 1e-6


class ContinuousCodeParams(CodedParams):
    """Parameters of :class:`ContinuousCode`."""

    inherited: ClassVar[tuple[str, ...]] = ("tol", "max_epochs", "bias", "memory_mb")

    C: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Weight of the losses against the norm of the code; that of the machines is in base_params.",
    )
    norm: Literal["l1", "l2", "linf"] = Field(
        default="l2", description="Of the code: l1 leaves many entries at zero, linf makes many of one size."
    )
    inputs: Literal["columns", "features"] = Field(
        default="columns",
        description="What the code is designed for: machines of a fixed code's columns, or the features themselves.",
    )
    outputs: Literal["margins", "signs"] = Field(
        default="margins", description="What of the machines' answers counts: their margins, or -1 and +1 alone."
    )
    incremental: bool = Field(
        default=False, description="Design the columns one after the other, each with those before it kept."
    )
    rounds: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Times that the machines are trained and the code is designed; the best round is kept.",
    )
    kernel: Literal["linear", "poly", "rbf"] = Field(
        default="linear", description="In place of the inner product of answers and code, with the norm l2."
    )
    degree: int = Field(default=3, ge=1, le=100, description="Degree of the polynomial kernel.")
    gamma: Literal["scale"] | Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default="scale", description="Of poly and rbf; scale takes 1 / (n_columns * variance of the answers)."
    )
    coef0: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Constant of the polynomial kernel.")

    @field_validator("outputs", "rounds")
    @classmethod
    def _are_of_columns(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("inputs") == "features" and value not in ("margins", 1):
            raise ValueError("features are not trained again, and their signs are not taken: that is for columns")
        return value

    @field_validator("kernel")
    @classmethod
    def _goes_with_the_rest(cls, kernel: str, info: ValidationInfo) -> str:
        given = info.data
        if kernel != "linear" and (given.get("norm") != "l2" or given.get("incremental") or given.get("rounds") != 1):
            raise ValueError("a kernel other than linear goes with the norm l2, the whole code at once, and one round")
        return kernel


class ContinuousCode(Coded[ContinuousCodeParams]):
    """Code design by linear or quadratic programming."""

    name = "continuous_code"
    title = "Continuous output code"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True)
    Params = ContinuousCodeParams

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        run = _Run.begin(self._first_signs(problem)) if state is None else _Run.resume(problem.n_features, state)
        rounds = self.params.rounds
        while run.round < rounds:
            if run.now.bank is None and self.params.inputs == "columns":
                columns = self.machines_of(problem, run.signs, run.confidence)
                for step in columns.steps(run.columns):
                    run.columns = step.state
                    yield run.step(step, {"round": run.round + 1.0}, measured=False)
                assert run.columns is not None
                run.now.bank, run.columns = columns.bank(run.columns), None
            design = self._design(self._task(problem, run.now.bank))
            for step in design.steps(run.now.design):
                run.now.note(step)
                if rounds == 1 or not step.converged:
                    yield run.step(step, {"round": run.round + 1.0}, measured=True, converged=step.converged)
            if rounds == 1:
                return
            assert run.now.design is not None
            M = np.asarray(design.code(run.now.design))
            run.close(*_sides(problem, M, run.signs, run.confidence))
            yield run.closing_step(done=run.round == rounds)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        if self.params.inputs == "features":
            return self._machine().bytes_needed(n_samples, n_features, n_classes)
        n_columns = self.count_columns(n_classes)
        design = 8 * n_samples * n_columns + self._machine().bytes_needed(n_samples, n_columns, n_classes)
        return max(self.column_bytes(n_samples, n_features, n_classes), design)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        before, run = _Run.resume(problem.n_features, state), _Run.begin(self._first_signs(problem))
        if self.params.rounds == 1 and before.now.design is not None:
            run.now.bank = before.now.bank
            design = self._design(self._task(problem, before.now.bank))
            run.now.design = design.rescaled(before.now.design, ratio)
        return run.state()

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        kept = _Run.resume(problem.n_features, state).kept
        if kept.design is None:
            return float("nan")
        return self._design(self._task(problem, kept.bank)).nonzero_duals(kept.design)

    def fitted(self, problem: Problem, state: State) -> Model:
        run = _Run.resume(problem.n_features, state)
        kept = run.kept
        if kept.design is None:
            # no code has been designed yet: what there is are machines of the columns of the first one
            columns = self.machines_of(problem, run.signs, run.confidence)
            bank = kept.bank or (columns.bank(run.columns) if run.columns else Bank(problem.n_features, 0, ()))
            return coded(problem.classes, bank, run.signs[:, : bank.n_columns], "inner_product")
        task = self._task(problem, kept.bank)
        design = self._design(task)
        code, nonzero = design.code(kept.design), design.nonzero_duals(kept.design)
        model = self._model(problem, kept.bank, run.signs, code)
        told = dict(code.report) if isinstance(code, Model) else _report(task, code)
        told |= {f"objective_round_{r + 1}": float(value) for r, value in enumerate(run.objectives)}
        told |= {"objective": float(kept.values[0])} | ({} if np.isnan(nonzero) else {"nonzero_duals": nonzero})
        model.report = told
        return model

    def _first_signs(self, problem: Problem) -> Code:
        if self.params.inputs == "features":
            return np.zeros((problem.n_classes, 0), np.int8)
        return self.code(problem)

    def _task(self, problem: Problem, bank: Bank | None) -> Task:
        params = self.params
        if bank is not None:
            size = max(1, CHUNK_BYTES // (8 * max(1, bank.n_columns)))
            chunks = range(0, problem.n_samples, size)
            H: Any = np.concatenate([bank.margins(problem.X[begin : begin + size]) for begin in chunks])
            if params.outputs == "signs":
                H = np.sign(H)
        elif params.bias > 0 and params.kernel == "linear":
            constant = np.full((problem.n_samples, 1), params.bias)
            H = sp.csr_matrix(sp.hstack([problem.X, sp.csr_matrix(constant)], format="csr"))
        else:
            H = problem.X
        return Task(H, problem.y, problem.weights, params.C, problem.classes)

    def _design(self, task: Task) -> Design:
        params = self.params
        if params.incremental:
            return ColumnByColumn(task, params.norm, self._column)
        if params.norm == "l2":
            return Quadratic(task, self._machine())
        guess = guess_by(task, lambda C: self._solver("crammer_singer", C=C, tol=GUESS_TOL, max_epochs=GUESS_EPOCHS))
        program = Program(task.H, task.y, task.bounds, len(task.classes), params.norm)
        return Linear(program, params.tol or ACCURACY, params.max_epochs or MOST_ROUNDS, params.memory_mb, guess)

    def _machine(self) -> Machine[Any]:
        """The multi-class machine of the quadratic design."""
        params = self.params
        given = {name: getattr(params, name) for name in ("C", "tol", "max_epochs", "memory_mb")}
        given = {name: value for name, value in given.items() if value is not None}
        if params.kernel == "linear":
            return self._solver("crammer_singer", **given)
        given |= {name: getattr(params, name) for name in ("kernel", "degree", "gamma", "coef0")}
        # a task of features has no constant one where a kernel takes its square
        return self._solver("spoc", bias=params.bias if params.inputs == "features" else 0.0, **given)

    def _column(self, program: Program) -> Design:
        params = self.params
        tol, most = params.tol or ACCURACY, params.max_epochs or MOST_ROUNDS
        if params.norm == "l2":
            return QuadraticColumn(program, tol, most, self.seed)
        return Linear(program, tol, most, params.memory_mb)

    def _solver(self, name: str, **given: Any) -> Machine[Any]:
        method = all_methods()[name]
        solver = method(method.Params.model_validate(given), seed=self.seed, threads=self.threads)
        assert isinstance(solver, Machine)
        return solver

    def _model(self, problem: Problem, bank: Bank | None, signs: Code, code: Floats | Model) -> Model:
        how = "votes" if self.params.outputs == "signs" else "inner_product"
        if bank is None:
            return code if isinstance(code, Model) else self._linear(problem, code)
        if isinstance(code, Model):
            return CodeModel(problem.classes, bank, signs, how, head=code)
        return coded(problem.classes, bank, code, how)

    def _linear(self, problem: Problem, M: Floats) -> LinearModel:
        """The model of a code for the features themselves; its last column is the constant feature's."""
        bias, intercept = self.params.bias, None
        if bias > 0:
            M, intercept = M[:, :-1], bias * M[:, -1]
        used = np.unique(problem.X.indices).astype(np.int64)
        W = np.ascontiguousarray(M[:, used].T)
        return LinearModel(problem.classes, problem.n_features, used, W, intercept)


@dataclass(eq=False)
class _Round:
    """Machines and design of one round, as far as they have come."""

    bank: Bank | None
    design: State | None
    values: Floats
    converged: bool

    @classmethod
    def empty(cls) -> "_Round":
        return cls(None, None, np.array([np.inf, np.nan]), False)

    def note(self, step: Step) -> None:
        """Take over where the design stands."""
        self.design, self.converged = step.state, step.converged
        if not np.isnan(step.primal):
            self.values = np.array([step.primal, step.dual])

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        held: dict[str, NDArray[Any]] = {"values": self.values, "converged": np.array([self.converged])}
        if self.bank is not None:
            held |= {f"machines_{name}": array for name, array in self.bank.arrays().items()}
        if self.design is not None:
            held |= {f"design_{name}": array for name, array in self.design.items()}
        return {f"{prefix}{name}": array for name, array in held.items()}

    @classmethod
    def resume(cls, n_features: int, prefix: str, state: State) -> "_Round":
        machines, design = part_of(state, f"{prefix}machines_"), part_of(state, f"{prefix}design_")
        bank = Bank.from_arrays(n_features, machines) if machines else None
        values, converged = np.array(state[f"{prefix}values"]), bool(state[f"{prefix}converged"][0])
        return cls(bank, design or None, values, converged)


@dataclass(eq=False)
class _Run:
    """What changes while training: the state of a step."""

    round: int
    epoch: int
    signs: Code
    confidence: Floats | None
    objectives: Floats
    columns: State | None
    now: _Round
    best: _Round

    @classmethod
    def begin(cls, signs: Code) -> "_Run":
        return cls(0, 0, signs, None, np.empty(0), None, _Round.empty(), _Round.empty())

    @classmethod
    def resume(cls, n_features: int, state: State) -> "_Run":
        number, epoch = (int(value) for value in state["clock"])
        now, best = (_Round.resume(n_features, prefix, state) for prefix in ("now_", "best_"))
        confidence = np.array(state["confidence"]) if "confidence" in state else None
        columns = part_of(state, "columns_") or None
        return cls(
            number, epoch, np.array(state["signs"]), confidence, np.array(state["objectives"]), columns, now, best
        )

    def state(self) -> dict[str, NDArray[Any]]:
        held = {"clock": np.array([self.round, self.epoch]), "signs": self.signs, "objectives": self.objectives}
        if self.confidence is not None:
            held["confidence"] = self.confidence
        if self.columns is not None:
            held |= {f"columns_{name}": array for name, array in self.columns.items()}
        return held | self.now.state("now_") | self.best.state("best_")

    @property
    def kept(self) -> _Round:
        """The round whose model is handed out."""
        return self.now if self.best.design is None else self.best

    def step(self, inner: Step, measures: Mapping[str, float], *, measured: bool, converged: bool = False) -> Step:
        """A step of the machines or of the design as one of the whole; only the design's values are the whole's."""
        self.epoch = max(self.epoch, inner.epoch)
        primal, dual = (inner.primal, inner.dual) if measured else (np.nan, np.nan)
        told = dict(measures) | dict(inner.measures)
        return Step(self.epoch, primal, dual, inner.violation, converged, self.state(), told)

    def close(self, signs: Code, confidence: Floats) -> None:
        """End a round: keep it if it is the best, and set out for the next with new sides of the columns."""
        self.objectives = np.append(self.objectives, self.now.values[0])
        if self.now.values[0] < self.best.values[0]:
            self.best = self.now
        self.now, self.signs, self.confidence = _Round.empty(), signs, confidence
        self.round += 1

    def closing_step(self, *, done: bool) -> Step:
        """The step between two rounds, with the values of the best so far; converged once all rounds are over."""
        told = {"round": float(self.round), "objective": float(self.objectives[-1])}
        primal, dual = (float(value) for value in self.best.values)
        return Step(self.epoch, primal, dual, np.nan, done and self.best.converged, self.state(), told)


def _sides(problem: Problem, M: Floats, signs: Code, confidence: Floats | None) -> tuple[Code, Floats]:
    """The binary problems that a code stands for: on which side each class is, and with what weight.

    A constant added to a column changes no difference of scores, so that sides are those of the centred column. Of a
    column without two sides the former ones stay. Weights have the mean 1 over the examples that take part.
    """
    centred = M - M.mean(axis=0)
    sizes = np.abs(centred)
    fresh = np.where(sizes > NO_SIDE * sizes.max(axis=0), np.sign(centred), 0).astype(np.int8)
    dead = ~((fresh > 0).any(axis=0) & (fresh < 0).any(axis=0))
    fresh[:, dead] = signs[:, dead]
    sizes[:, dead] = 1.0 if confidence is None else confidence[:, dead]
    counts = np.bincount(problem.y, problem.weights, problem.n_classes)[:, None] * (fresh != 0)
    return fresh, np.where(fresh != 0, sizes * counts.sum(axis=0) / (counts * sizes).sum(axis=0), 1.0)


def _report(task: Task, M: Floats) -> dict[str, float]:
    """Margins and bounds of a code on the training examples, and how many of its columns it uses."""
    centred = M - M.mean(axis=0)
    margins, radius = np.full(len(M), np.inf), 0.0
    size = max(1, CHUNK_BYTES // (8 * max(M.shape)))
    for begin in range(0, len(task.y), size):
        h, y = task.H[begin : begin + size], task.y[begin : begin + size]
        margins = np.minimum(margins, bounds.class_margins(np.asarray(h @ centred.T), y))
        squares = h.multiply(h).sum(axis=1) if isinstance(h, sp.csr_matrix) else (h**2).sum(axis=1)
        radius = max(radius, float(squares.max()))
    told = {"n_columns": float(M.shape[1]), "columns_used": float(np.count_nonzero(np.ptp(M, axis=0) > 0))}
    of_rows = (centred**2).sum(axis=1)
    return told | bounds.report_of_margins(margins, len(task.y), of_rows, float(np.sqrt(radius)))
