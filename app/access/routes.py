"""Routes of keys, the audit log and usage."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.access import audit, keys, quotas
from app.access.authentication import ADMIN, VIEWER
from app.access.schemas import AuditEntry, Key, KeyRequest, NewKey, Usage
from app.http.bodies import Body
from app.http.parameters import V1, Db, PageSize, PageToken, Ref
from app.http.problems import responses
from app.schemas import NAME_PATTERN, Moment, Page

router = APIRouter(prefix=f"{V1}/keys", tags=["keys"], dependencies=[ADMIN])


@router.get("")
def list_keys(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Key]:
    """List keys, newest first, without their secrets."""
    return keys.page(session, page_size, page_token)


@router.post("", status_code=201, responses=responses(409))
def create_key(session: Db, response: Response, body: Body[KeyRequest]) -> NewKey:
    """Create a key. Only this response shows its secret, so a repeated request with the same name is refused."""
    response.headers["Cache-Control"] = "no-store"
    return keys.create(session, body.name, body.role, body.expires_at, body.workspace, body.promotes)


@router.delete("/{ref}", status_code=204, responses=responses(409))
def revoke_key(session: Db, request: Request, ref: Ref) -> None:
    """Revoke a key by its name in your workspace; it takes effect in all processes within a second."""
    keys.revoke(session, ref)
    request.app.state.keyring.forget()


audit_router = APIRouter(prefix=f"{V1}/audit", tags=["keys"], dependencies=[ADMIN])

_Named = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Id or name.")]
_SINCE = Query(description="Time with a time zone, such as 2030-01-31T12:00:00Z.")


@audit_router.get("")
def list_audit(
    session: Db,
    key: _Named = None,
    thing: _Named = None,
    since: Annotated[Moment | None, _SINCE] = None,
    until: Annotated[Moment | None, _SINCE] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Page[AuditEntry]:
    """List changes, newest first, filtered by key, object and time."""
    return audit.page(session, page_size, page_token, key=key, thing=thing, since=since, until=until)


usage_router = APIRouter(prefix=f"{V1}/usage", tags=["keys"], dependencies=[VIEWER])


@usage_router.get("")
def get_usage(session: Db, request: Request) -> Usage:
    """Get the jobs and bytes of the key's workspace, and its limits."""
    return quotas.usage(session, request.app.state.settings.requests_per_second)
