"""The parameters of a continuous code's design, and the way to design it that they ask for."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import scipy.sparse as sp
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.methods import all_methods
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.kernel_svm.kernel_function import Degree
from solvers.numerics.array_types import Floats
from solvers.output_codes.code_model import CodeModel, coded
from solvers.output_codes.coded import CodedParams
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModels
from solvers.output_codes.design.constrained import ConstrainedDesign
from solvers.output_codes.design.incremental import ColumnByColumn
from solvers.output_codes.design.linear import LinearDesign
from solvers.output_codes.design.programs import Program, QuadraticDesign, guess_by
from solvers.output_codes.design.single_column import QuadraticColumn
from solvers.output_codes.design.task import Design, Task

ACCURACY, MOST_ROUNDS = 1e-3, 1000
PENALISED_EPOCHS = 100_000
GUESS_TOL, GUESS_EPOCHS = 0.03, 50
CHUNK_BYTES = 64 << 20


class ContinuousCodeParams(CodedParams):
    """Parameters of :class:`solvers.methods.continuous_code.ContinuousCode`."""

    inherited: ClassVar[tuple[str, ...]] = ("tol", "max_epochs", "bias", "memory_mb")

    C: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Weight of the losses relative to the norm of the code; base_params has that of the machines.",
    )
    norm: Literal["l1", "l2", "linf"] = Field(
        default="l2",
        description="Norm of the code: l1 leaves many entries at zero, linf makes many entries equal in size.",
    )
    inputs: Literal["columns", "features"] = Field(
        default="columns",
        description="Input of the design: the machines of a fixed code's columns, or the features themselves.",
    )
    outputs: Literal["margins", "signs"] = Field(
        default="margins", description="Which part of the machines' answers to use: their margins, or only -1 and +1."
    )
    incremental: bool = Field(
        default=False, description="Design the columns one after the other, keeping the earlier ones fixed."
    )
    column_norm: Literal["whole", "column"] = Field(
        default="whole",
        description="With linf and incremental: each column minimises the norm of the whole code so far, or "
        "only its own norm, as in the paper. For the other norms, which are sums over the columns, "
        "both are the same.",
    )
    rounds: int = Field(
        default=1,
        ge=1,
        le=100,
        description="How often the machines are trained and the code is designed; the best round is kept.",
    )
    program: Literal["penalty", "norm", "hard"] = Field(
        default="penalty",
        description="penalty: the norm is added to the losses. norm: least losses with a norm of at most "
        "radius. hard: least norm without any loss, for separable examples. With the last two, C is "
        "where the search for the fitting C starts.",
    )
    radius: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="Largest norm, for the program norm.")
    kernel: Literal["linear", "poly", "rbf"] = Field(
        default="linear",
        description="Kernel between answers and code, in place of the inner product; needs the norm l2.",
    )
    degree: Degree = 3
    gamma: Literal["scale"] | Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] = Field(
        default="scale", description="Parameter of poly and rbf; scale uses 1 / (n_columns * variance of the answers)."
    )
    coef0: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Constant of the polynomial kernel.")

    @field_validator("outputs", "rounds")
    @classmethod
    def _are_of_columns(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("inputs") == "features" and value not in ("margins", 1):
            raise ValueError("with inputs features, outputs must be margins and rounds must be 1")
        return value

    @field_validator("program")
    @classmethod
    def _is_of_the_whole(cls, program: str, info: ValidationInfo) -> str:
        if program != "penalty" and info.data.get("incremental"):
            raise ValueError("incremental needs program penalty; norm and hard design the whole code at once")
        return program

    @field_validator("kernel")
    @classmethod
    def _goes_with_the_rest(cls, kernel: str, info: ValidationInfo) -> str:
        given = info.data
        others = given.get("norm") != "l2" or given.get("incremental") or given.get("rounds") != 1
        if kernel != "linear" and (others or given.get("program") != "penalty"):
            raise ValueError("a kernel other than linear needs norm l2, program penalty, rounds 1 and no incremental")
        return kernel


class Designer:
    """Makes tasks, designs and models of codes.

    Parameters
    ----------
    seed, threads : int
        Of the machines and designs that are made.
    """

    def __init__(self, params: ContinuousCodeParams, seed: int, threads: int) -> None:
        self.params = params
        self.seed = seed
        self.threads = threads

    def task(self, problem: Problem, machines: ColumnModels | None) -> Task:
        """What a code is designed for: the margins or signs of the machines, or the features themselves."""
        params = self.params
        if machines is not None:
            size = max(1, CHUNK_BYTES // (8 * max(1, machines.n_columns)))
            chunks = range(0, problem.n_samples, size)
            H: Any = np.concatenate([machines.margins(problem.X[begin : begin + size]) for begin in chunks])
            if params.outputs == "signs":
                H = np.sign(H)
        elif params.bias > 0 and params.kernel == "linear":
            constant = np.full((problem.n_samples, 1), params.bias)
            H = sp.csr_matrix(sp.hstack([problem.X, sp.csr_matrix(constant)], format="csr"))
        else:
            H = problem.X
        return Task(H, problem.y, problem.weights, params.C, problem.classes)

    def design(self, task: Task) -> Design:
        """The way to design a code for a task."""
        params = self.params
        if params.program != "penalty":
            radius = params.radius if params.program == "norm" else None
            tol, trials = params.tol or ACCURACY, params.max_epochs or MOST_ROUNDS
            return ConstrainedDesign(task, params.norm, partial(self._penalised, task), radius, tol, trials)
        if params.incremental:
            return ColumnByColumn(task, params.norm, self._column, alone=params.column_norm == "column")
        if params.norm == "l2":
            return QuadraticDesign(task, self.machine())
        guess = guess_by(task, lambda C: self._solver("crammer_singer", C=C, tol=GUESS_TOL, max_epochs=GUESS_EPOCHS))
        program = Program(task.H, task.y, task.bounds, len(task.classes), params.norm)
        return LinearDesign(program, params.tol or ACCURACY, params.max_epochs or MOST_ROUNDS, params.memory_mb, guess)

    def machine(self) -> Machine[Any]:
        """The multi-class machine of the quadratic design."""
        params = self.params
        given = {name: getattr(params, name) for name in ("C", "tol", "max_epochs", "memory_mb")}
        given = {name: value for name, value in given.items() if value is not None}
        if params.kernel == "linear":
            return self._solver("crammer_singer", **given)
        given |= {name: getattr(params, name) for name in ("kernel", "degree", "gamma", "coef0")}
        # a task of features has no constant one where a kernel takes its square
        return self._solver("spoc", bias=params.bias if params.inputs == "features" else 0.0, **given)

    def _penalised(self, task: Task, C: float, tol: float) -> Design:
        given = {"program": "penalty", "C": C, "tol": tol, "max_epochs": PENALISED_EPOCHS}
        return Designer(self.params.model_copy(update=given), self.seed, self.threads).design(replace(task, C=C))

    def _column(self, program: Program) -> Design:
        params = self.params
        tol, most = params.tol or ACCURACY, params.max_epochs or MOST_ROUNDS
        if params.norm == "l2":
            return QuadraticColumn(program, tol, most, self.seed)
        return LinearDesign(program, tol, most, params.memory_mb)

    def _solver(self, name: str, **given: Any) -> Machine[Any]:
        method = all_methods()[name]
        solver = method(method.Params.model_validate(given), seed=self.seed, threads=self.threads)
        return cast(Machine[Any], solver)

    def model(self, problem: Problem, machines: ColumnModels | None, signs: Code, code: Floats | Model) -> Model:
        how = "votes" if self.params.outputs == "signs" else "inner_product"
        if machines is None:
            return code if isinstance(code, Model) else self._linear(problem, code)
        if isinstance(code, Model):
            return CodeModel(problem.classes, machines, signs, how, head=code)
        return coded(problem.classes, machines, code, how)

    def _linear(self, problem: Problem, M: Floats) -> LinearModel:
        """The model of a code for the features themselves; its last column is the constant feature's."""
        bias, intercept = self.params.bias, None
        if bias > 0:
            M, intercept = M[:, :-1], bias * M[:, -1]
        used = np.unique(problem.X.indices).astype(np.int64)
        W = np.ascontiguousarray(M[:, used].T)
        return LinearModel(problem.classes, problem.n_features, used, W, intercept)
