"""Routes of keys, sign-ins of programs, the audit log and usage."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from app.access import audit, keys, people, quotas, sign_ins
from app.access.authentication import ADMIN, VIEWER, KeyRing, secret_of
from app.access.keys import Principal
from app.access.openid import Provider
from app.access.people import Visitor
from app.access.schemas import AuditEntry, DeviceCode, Key, KeyRequest, NewKey, SignInToken, TokenRequest, Usage
from app.errors import Conflict, NotFound, TooMany
from app.http.bodies import Body
from app.http.parameters import V1, Db, PageSize, PageToken, Ref, opened_for_all
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


def provider_of(request: Request) -> Provider:
    """The identity provider; raises NotFound where the service has none."""
    provider: Provider | None = request.app.state.openid
    if provider is None:
        raise NotFound(
            "This service has no identity provider: set POLYMARGIN_API_KEY to a key, which an administrator creates."
        )
    return provider


_Provider = Annotated[Provider, Depends(provider_of)]
# a provider that does not answer holds up these threads alone
ASKING_PROVIDERS = CapacityLimiter(8)

T = TypeVar("T")
sign_in_router = APIRouter(prefix=f"{V1}/sign-in", tags=["keys"])


@sign_in_router.post("/device", responses=responses(404, 422))
async def start_device_sign_in(request: Request, response: Response, provider: _Provider) -> DeviceCode:
    """Start a sign-in by a program: a person enters the code at the identity provider (RFC 8628)."""
    _keyring(request).begin(_address(request))
    response.headers["Cache-Control"] = "no-store"
    return await to_thread.run_sync(provider.device_code, limiter=ASKING_PROVIDERS)


@sign_in_router.post("/token", responses=responses(401, 403, 404, 507))
async def get_token(
    request: Request,
    response: Response,
    body: Body[TokenRequest],
    provider: _Provider,
) -> SignInToken:
    """Get the token of a person who has entered the code, or the state of the sign-in until then."""
    response.headers["Cache-Control"] = "no-store"
    _keyring(request).poll(body.device_code)
    look_up = partial(provider.device_visitor, body.device_code)
    found = await _keyring(request).guess(look_up, _address(request), ASKING_PROVIDERS)
    if not isinstance(found, Visitor):
        return SignInToken(state=found)
    issue = partial(sign_ins.issue_token, by="OpenID device flow")
    secret, expires_at = await run_in_threadpool(welcome, request, found, issue)
    person: Principal = request.state.key
    return SignInToken(
        state="signed_in",
        secret=secret,
        name=person.name,
        role=person.role,
        workspace=person.workspace,
        expires_at=expires_at,
    )


@sign_in_router.delete("/token", status_code=204, dependencies=[VIEWER], responses=responses(401, 409, 422, 507))
def revoke_token(session: Db, request: Request) -> None:
    """Revoke the token that this request sends; it takes effect in all processes within a second."""
    if not sign_ins.end_token(session, secret_of(request)):
        raise Conflict("The request has no token of a person; API keys are revoked by administrators.")
    _keyring(request).forget()


def welcome(request: Request, visitor: Visitor, begin: Callable[[Session, str], T]) -> T:
    """Sign in a person who may be new here; ``begin`` makes the session or token of the key with that id.

    Raises
    ------
    Forbidden
        The person has no role, or no longer.
    TooMany
        The person's sign-ins count as requests of the key.
    """
    for is_last in (False, True):
        with request.app.state.sessions() as session:
            principal = people.resolve(session, visitor, request.app.state.settings)
        count(request, principal)
        try:
            with opened_for_all(request) as session:
                request.state.key = people.save(session, visitor, principal)
                begun = begin(session, principal.key_id)
        except IntegrityError:  # the same person signs in elsewhere at this moment, or another took the name
            if is_last:
                raise
        else:
            _keyring(request).forget()  # the role may be another
            return begun
    raise AssertionError("the second attempt returns or raises")


def count(request: Request, principal: Principal) -> None:
    """Count a sign-in as a request of its key, whose the request is from now on; raises TooMany."""
    wait = _keyring(request).rates.acquire(principal.key_id)
    if wait:
        raise TooMany("Too many requests with this key; retry later.", wait)
    request.state.key = principal


def _keyring(request: Request) -> KeyRing:
    keyring: KeyRing = request.app.state.keyring
    return keyring


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


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
