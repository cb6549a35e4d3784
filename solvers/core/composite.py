"""Methods that train others: how they name a base method, and how they get at it."""

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from solvers.core.base import ParamsError, Solver, State
from solvers.core.machine import Machine, SingleLabelParams
from solvers.core.methods import all_methods, parse, unknown_method
from solvers.core.model import Model
from solvers.core.problem import Problem


class CompositeParams(SingleLabelParams):
    """What methods over a base method have in common."""

    inherited: ClassVar[tuple[str, ...]] = ("C", "tol", "max_epochs", "bias", "memory_mb")

    tol: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Stop each part at this relative duality gap; left out, at the method's own."
    )
    max_epochs: Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        default=None,
        description="Stop each part after so many passes, converged or not; left out, at the method's own limit.",
    )
    base: str = Field(default="one_vs_rest", description="Method that trains the binary machine of each column.")
    base_params: dict[str, Any] = Field(
        default={},
        description="Parameters of the base method, in place of its defaults and of what it inherits from above.",
    )

    def base_settings(self, method: type[Solver[Any]]) -> dict[str, Any]:
        """The base method's parameters: of the inherited ones those given that it has, then those given for it."""
        has = method.Params.model_fields
        handed = {name: getattr(self, name) for name in self.inherited if name in has}
        return {name: value for name, value in handed.items() if value is not None} | self.base_params


C = TypeVar("C", bound=CompositeParams)


class Composite(Machine[C]):
    """A method whose parts are trained by a base method, which is any other."""

    parts = "columns"

    @classmethod
    def takes(cls, method: type[Solver[Any]]) -> bool:
        """Whether a method can be a base method: it learns flat labels, and has no base method itself."""
        return method.handles.flat and method.parts != "columns"

    @classmethod
    def check_params(cls, params: CompositeParams) -> None:
        method = all_methods().get(params.base)
        if method is None:
            raise ParamsError([("/base", unknown_method(params.base))])
        if not cls.takes(method):
            fault = f"{params.base} cannot be a base method: it takes no flat labels, or has a base method itself"
            raise ParamsError([("/base", fault)])
        has, own = method.Params.model_fields, type(params).model_fields
        lost = [name for name in params.inherited if name not in has and getattr(params, name) != own[name].default]
        if lost:
            raise ParamsError([(f"/{name}", f"{params.base} has no such parameter to hand it on to") for name in lost])
        try:
            parse(method, params.base_settings(method))
        except ParamsError as error:
            inherited = set(params.inherited) - set(params.base_params)
            raise ParamsError(
                [(at if at.split("/")[1] in inherited else f"/base_params{at}", what) for at, what in error.items]
            ) from None

    @property
    def appends_constant(self) -> bool:
        return False  # it is the base method's

    def model(self, problem: Problem, state: State) -> Model:
        return self.fitted(self.prepared(problem), state)

    def base(self, *, threads: int = 1) -> Solver[Any]:
        """A new solver of the base method."""
        method = all_methods()[self.params.base]
        params = method.Params.model_validate(self.params.base_settings(method))
        return method(params, seed=self.seed, threads=threads)
