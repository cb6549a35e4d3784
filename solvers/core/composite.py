"""Methods that train others: how they name a base method, and how they get at it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from solvers.core.base import Solver
from solvers.core.flat import FlatMachine, FlatParams


class CompositeParams(FlatParams):
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


class Composite(FlatMachine[C]):
    """A method whose parts are trained by a base method of the registry.

    Methods do not know each other and cannot import the registry, which imports them. So the registry, once it has
    found all methods, puts them into :attr:`methods`.
    """

    methods: ClassVar[Mapping[str, type[Solver[Any]]]] = MappingProxyType({})

    @classmethod
    def takes(cls, method: type[Solver[Any]]) -> bool:
        """Whether a method can be a base method: it learns flat labels, and has no parts itself."""
        return method.handles.flat and not issubclass(method, Composite)

    def base(self, *, threads: int = 1) -> Solver[Any]:
        """A new solver of the base method."""
        method = self.methods[self.params.base]
        params = method.Params.model_validate(self.params.base_settings(method))
        return method(params, seed=self.seed, threads=threads)
