"""Paths of routes, and their shared parameters: sessions, names, pages, headers of repeatable POSTs. Refuses others."""

import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_parameterless_sub_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from sqlalchemy.orm import Session

from app.access.audit import Act, note_for
from app.access.keys import ADMIN, Principal
from app.errors import Forbidden, PreconditionFailed
from app.schemas import NAME_PATTERN
from app.store.idempotency import Token
from app.store.scope import DEFAULT, confine

V1 = "/api/v1"
DATASETS = f"{V1}/datasets"
ARCHIVES = f"{V1}/models/import"
UPLOADS = f"{V1}/uploads"
HIERARCHIES = f"{V1}/hierarchies"
REVIEWS = f"{V1}/reviews"


def point_to(response: Response, location: str, before: str | None) -> None:
    """Say in the answer's headers where the thing is that a POST made, and whether an earlier one had made it."""
    response.headers["Location"] = location
    if before is not None:
        response.headers["Idempotency-Replayed"] = "true"


def revision(if_match: str | None) -> int | None:
    """The revision that an ``If-Match`` names; None where any will do. Raises PreconditionFailed."""
    if if_match is None or if_match == "*":
        return None
    if not re.fullmatch(r'"[0-9]{1,9}"', if_match):
        raise PreconditionFailed("If-Match is not a valid ETag; expected a number in double quotes.")
    return int(if_match[1:-1])


def opened(request: Request) -> Session:
    """A session that is confined to what the request's key may see; none is to be had before the key was checked."""
    principal: Principal = request.state.key
    session: Session = request.app.state.sessions()
    return note_for(confine(session, principal.scope), _act(request, principal))


def opened_for_all(request: Request) -> Session:
    """A session that sees all workspaces and notes what it changes as done by the request's key."""
    session: Session = request.app.state.sessions()
    return note_for(session, _act(request, request.state.key))


def _session(request: Request) -> Iterator[Session]:
    with opened(request) as session:
        yield session


def _require_installation(request: Request) -> None:
    principal: Principal = request.state.key
    if principal.role != ADMIN or principal.workspace != DEFAULT:
        raise Forbidden(
            f"This applies to the whole installation; it requires an administrator of the workspace {DEFAULT!r}."
        )


def _everything(request: Request) -> Iterator[Session]:
    _require_installation(request)
    with opened_for_all(request) as session:
        yield session


def _act(request: Request, principal: Principal) -> Act:
    return Act(
        key_id=principal.key_id,
        key=principal.name,
        workspace=principal.workspace,
        method=request.method,
        route=getattr(request.scope.get("route"), "path", ""),
        path=request.url.path,
        request_id=request.scope.get("state", {}).get("request_id"),
        address=request.client.host if request.client else None,
    )


def _token(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            pattern="^[!-~]{1,255}$",
            description="The same key with the same request gives the answer of the first one, for a week.",
        ),
    ] = None,
) -> Token | None:
    principal: Principal = request.state.key
    return None if idempotency_key is None else Token(principal.key_id, idempotency_key)


# after the check of the key
INSTALLATION = Depends(_require_installation)
Db = Annotated[Session, Depends(_session, scope="function")]
Everything = Annotated[Session, Depends(_everything, scope="function")]
Once = Annotated[Token | None, Depends(_token)]
Ref = Annotated[str, Path(pattern=NAME_PATTERN, description="Id or name.")]
Id = Annotated[str, Path(pattern=NAME_PATTERN)]
Number = Annotated[int, Path(ge=1, lt=2**31)]
DryRun = Annotated[bool, Query(description="Show the effect without changing anything.")]
PageSize = Annotated[int, Query(ge=1, le=1000)]
PageToken = Annotated[str | None, Query(max_length=100, description="As the page before gave it.")]


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
