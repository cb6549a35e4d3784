"""Parameters in the query of the API's routes that none of them has: refused with the nearest that there is."""

from collections.abc import Iterator

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.api.paths import V1


def require_known(route: APIRoute) -> None:
    """Let a route of the API refuse what its parameters do not name.

    Pages, and what other services' clients and monitors ask for, take what they do not know.
    """
    if not route.path.startswith(f"{V1}/"):
        return
    known = frozenset(query_names(route.dependant))

    async def check(request: Request) -> None:
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", name)} for name in unknown])

    # behind those that check the key, and before the body is looked at
    checked = get_parameterless_sub_dependant(depends=Depends(check), path=route.path_format)
    route.dependant.dependencies.insert(len(route.dependencies), checked)


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
