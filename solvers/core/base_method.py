"""Methods that train others: how they name a base method, and how they get at it."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from solvers.core.base import ParamsError, Solver
from solvers.core.machine import SingleLabelParams
from solvers.core.methods import all_methods, parse, unknown_method


class BaseMethodParams(SingleLabelParams):
    """What methods have in common whose parts are trained by a base method, which is any other."""

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

    def base_settings(self, method: type[Solver[Any]]) -> dict[str, Any]:
        """The base method's parameters: of the inherited ones those given that it has, then those given for it."""
        has = method.Params.model_fields
        handed = {name: getattr(self, name) for name in self.inherited if name in has}
        return {name: value for name, value in handed.items() if value is not None} | self.base_params

    def base_solver(self, *, seed: int, threads: int = 1) -> Solver[Any]:
        """A new solver of the base method."""
        method = all_methods()[self.base]
        return method(method.Params.model_validate(self.base_settings(method)), seed=seed, threads=threads)


def can_be_base(method: type[Solver[Any]]) -> bool:
    """Whether a method can be a base method: it learns flat labels, and trains no other methods itself."""
    return method.handles.flat and method.parts != "columns" and not method.chooses


def check_base_method(params: BaseMethodParams) -> None:
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
