"""Parameters in the query of the API's routes that none of them has: refused with the nearest that there is."""

from collections.abc import Iterator

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.http.parameters import V1


class _OnlyKnown:
    """A dependency that refuses parameters in the query beyond the known ones."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known

    async def __call__(self, request: Request) -> None:
        unknown = [name for name in request.query_params if name not in self._known]
        if unknown:
            raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", name)} for name in unknown])


def require_known(route: APIRoute) -> None:
    """Let a route of the API refuse what its parameters do not name.

    Pages, and what other services' clients and monitors ask for, take what they do not know. Applications of one
    process share their routes: the second application finds them with the check.
    """
    dependencies = route.dependant.dependencies
    if not route.path.startswith(f"{V1}/") or any(isinstance(each.call, _OnlyKnown) for each in dependencies):
        return
    check = _OnlyKnown(frozenset(query_names(route.dependant)))
    # behind those that check the key, and before the body is looked at
    checked = get_parameterless_sub_dependant(depends=Depends(check), path=route.path_format)
    dependencies.insert(len(route.dependencies), checked)


def query_names(dependant: Dependant) -> Iterator[str]:
    """The names of all parameters in a route's query, those of a model one by one."""
    for parameter in dependant.query_params:
        kind = parameter.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from kind.model_fields
        else:
            yield parameter.alias
    for inner in dependant.dependencies:
        yield from query_names(inner)
