"""What methods over the columns of a code share: which code, and what it takes."""

from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import ParamsError, Solver, State
from solvers.core.machine import Machine, SingleLabelParams
from solvers.core.memory import limit_bytes
from solvers.core.methods import all_methods, parse, unknown_method
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Floats
from solvers.output_codes import codes
from solvers.output_codes.code_families import Family, make, most_columns
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.training import (
    AT_ONCE_BYTES,
    DENSE,
    ColumnTraining,
    bytes_at_once,
    training_of,
)

FIXED = ("one_vs_rest", "all_pairs", "exhaustive")


class CodedParams(SingleLabelParams):
    """Which code the columns are of, and the base method that trains them, which is any other."""

    inherited: ClassVar[tuple[str, ...]] = ("C", "tol", "max_epochs", "bias", "memory_mb")

    tol: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Stop each part at this relative duality gap; the default is that of the base method."
    )
    max_epochs: Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        default=None,
        description="Stop each part after this many passes even if it has not converged; the default is that of "
        "the base method.",
    )
    base: str = Field(default="one_vs_rest", description="Method that trains the binary machine of each column.")
    base_params: dict[str, Any] = Field(
        default={},
        description="Parameters of the base method; they replace its defaults and what it inherits from this method.",
    )

    code: Family = Field(
        default="one_vs_rest", description="Family of the code matrix; exhaustive supports up to 11 classes."
    )
    matrix: list[list[int]] | None = Field(
        default=None,
        description="Your own code in place of a family: a row of -1, 0 and +1 for each class, in the order of "
        "the labels; 0 leaves the class's examples out of the column.",
    )
    n_columns: Annotated[int, Field(ge=1, le=4095)] | None = Field(
        default=None,
        description="Columns of a random or bch code; the default is 10 (sparse_random: 15) times the binary "
        "logarithm of the number of classes. A bch code has a power of two less one, or fewer if "
        "columns would repeat.",
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
            raise ValueError(
                f"only random and bch codes accept n_columns; {what} determines the number of columns itself"
            )
        return n_columns

    def base_settings(self, method: type[Solver[Any]]) -> dict[str, Any]:
        """The base method's parameters: of the inherited ones those given that it has, then those given for it."""
        has = method.Params.model_fields
        handed = {name: getattr(self, name) for name in self.inherited if name in has}
        return {name: value for name, value in handed.items() if value is not None} | self.base_params

    def base_solver(self, *, seed: int, threads: int = 1) -> Solver[Any]:
        """A new solver of the base method."""
        method = all_methods()[self.base]
        return method(method.Params.model_validate(self.base_settings(method)), seed=seed, threads=threads)


C = TypeVar("C", bound=CodedParams)


class Coded(Machine[C]):
    """A method over the columns of a code."""

    parts = "columns"

    @classmethod
    def check_params(cls, params: CodedParams) -> None:
        check_base_method(params)

    @property
    def appends_constant(self) -> bool:
        return False  # it is the base method's

    def model(self, problem: Problem, state: State) -> Model:
        return self.fitted(self.prepared(problem), state)

    @property
    def takes_kernel_values(self) -> bool:
        """As the base method does."""
        return self.base().takes_kernel_values

    def base(self, *, threads: int = 1) -> Solver[Any]:
        """A new solver of the base method."""
        return self.params.base_solver(seed=self.seed, threads=threads)

    def code(self, problem: Problem) -> Code:
        """The code of the problem's classes; raises :class:`solvers.output_codes.codes.CodeError`."""
        if self.params.matrix is not None:
            return codes.check(self.params.matrix, problem.classes)
        return make(self.family, problem.n_classes, self.params.n_columns, self.seed)

    @property
    def family(self) -> str:
        """Of the code that the columns are trained for."""
        return self.params.code

    def column_bytes(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """What the code takes, and the columns that are in work at a time with the weights of those that are done."""
        base, n_columns = self.base(), self.count_columns(n_classes)
        pairs = self.params.matrix is None and self.params.code == "all_pairs"
        code, served = n_classes * n_columns, 4 * n_features * min(n_classes, n_columns)
        fits = bytes_at_once(n_samples, n_features, n_columns) <= self.at_once_bytes()
        if base.trains_columns and fits and not (pairs and 2 / n_classes < DENSE):
            return code + max(served, base.bytes_needed(n_samples, n_features, n_columns))
        taking_part = 2 * n_samples // n_classes if pairs else n_samples
        each = base.bytes_needed(taking_part, n_features, 2)
        return code + served + min(self.threads, n_columns) * each

    def count_columns(self, n_classes: int) -> int:
        """How many columns the code of so many classes has at most."""
        if self.params.matrix is not None:
            return len(self.params.matrix[0])
        return most_columns(self.family, n_classes, self.params.n_columns)

    def at_once_bytes(self) -> int:
        """Columns that take more than this are not trained all at once."""
        return min(AT_ONCE_BYTES, limit_bytes(self.params.memory_mb))

    def machines_of(self, problem: Problem, code: Code, confidence: Floats | None = None) -> ColumnTraining:
        """The machines of the columns of ``code``, to be trained."""
        build = partial(self.params.base_solver, seed=self.seed)
        return training_of(problem, code, build, self.threads, confidence, self.at_once_bytes())


def can_be_base(method: type[Solver[Any]]) -> bool:
    """Whether a method can be a base method: it learns flat labels, and trains no other methods itself."""
    return method.handles.flat and method.parts != "columns" and not method.chooses


def check_base_method(params: CodedParams) -> None:
    """Raise ParamsError if there is no such base method, or it does not take the parameters that it is given."""
    method = all_methods().get(params.base)
    if method is None:
        raise ParamsError([("/base", unknown_method(params.base))])
    if not can_be_base(method):
        fault = f"{params.base} cannot be a base method: it takes no flat labels, or trains other methods itself"
        raise ParamsError([("/base", fault)])
    has, own = method.Params.model_fields, type(params).model_fields
    lost = [name for name in params.inherited if name not in has and getattr(params, name) != own[name].default]
    if lost:
        raise ParamsError([(f"/{name}", f"{params.base} has no such parameter to pass it to") for name in lost])
    try:
        parse(method, params.base_settings(method))
    except ParamsError as error:
        inherited = set(params.inherited) - set(params.base_params)
        raise ParamsError(
            [(at if at.split("/")[1] in inherited else f"/base_params{at}", what) for at, what in error.items]
        ) from None
