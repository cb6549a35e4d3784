"""Who may do what: keys and sessions, remembered for moments, and the roles that routes ask for.

A program sends its key with each request. A browser that has signed in sends a cookie, and with every change a token
that a page of another site cannot know.
"""

import hmac
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.types import Scope

from app.access import keys, sign_ins
from app.access.keys import Principal
from app.access.proxies import Proxies
from app.access.rate_limits import Rates
from app.access.schemas import Role
from app.errors import Forbidden, TooMany, Unauthenticated
from app.short_cache import Remembered

log = structlog.get_logger()

T = TypeVar("T")
_RANKS: dict[Role, int] = {"viewer": 0, "clerk": 1, "editor": 2, "admin": 3}
_MOST_REMEMBERED = 10_000
_FAILED_AT_ONCE = 20
# of one device code; providers ask for five seconds between two
_POLLS_PER_SECOND, _POLLS_AT_ONCE = 1.0, 10
_SAFE = ("GET", "HEAD")

_bearer = HTTPBearer(auto_error=False, description="An API key, as returned by POST /keys.")


class KeyRing:
    """The keys that were shown lately; a key revoked in another process is refused here within a second.

    Parameters
    ----------
    sessions : sessionmaker
    failed_per_minute : float
        Unknown keys of one address, in the mean; then only keys that were good before are looked up for it. 0: any.
    requests_per_second : float
        Of one key, in the mean. 0: any.
    """

    def __init__(
        self, sessions: sessionmaker[Session], failed_per_minute: float = 0.0, requests_per_second: float = 0.0
    ) -> None:
        self._sessions = sessions
        self.known = Remembered(self._authenticate)
        self.signed_in = Remembered(self._signed_in)
        self._good: set[str] = set()
        self._failed = Rates(failed_per_minute / 60.0, _FAILED_AT_ONCE)
        self._begun = Rates(failed_per_minute / 60.0, _FAILED_AT_ONCE)
        self._polled = Rates(_POLLS_PER_SECOND if failed_per_minute else 0.0, _POLLS_AT_ONCE)
        self.rates = Rates(requests_per_second, max(1.0, requests_per_second))
        self._used: dict[str, float] = {}

    async def principal(self, authorization: str, address: str = "") -> Principal:
        """Whose ``Authorization`` header this is.

        Raises
        ------
        Unauthenticated
            Nobody's.
        TooMany
            The address has shown too many unknown keys, and this one is new.
        """
        known = self.ready(authorization)
        if known is None:
            secret = _secret(authorization)
            if not secret:
                raise Unauthenticated("Send the API key as 'Authorization: Bearer <key>'.")
            known = await self._look_up(self.known, keys.digest(secret), address)
            self._used[known.key_id] = time.monotonic()
        return known

    def ready(self, authorization: str) -> Principal | None:
        """Whose ``Authorization`` header this is, if that is known without SQL; never waits."""
        known = self.known.ready(keys.digest(_secret(authorization)))
        if known is not None:
            self._used[known.key_id] = time.monotonic()
        return known

    async def of_session(self, secret: str, address: str = "") -> Principal:
        """Who has signed in to the session of that secret; raises as :meth:`principal`."""
        digest = keys.digest(secret)
        known = self.signed_in.ready(digest)
        if known is None:
            known = await self._look_up(self.signed_in, digest, address)
        self._used[known.key_id] = time.monotonic()
        return known

    async def guess(self, look_up: Callable[[], T], address: str, limiter: CapacityLimiter | None = None) -> T:
        """What ``look_up`` finds in a worker thread, unless the address has guessed too often; raises as it and so."""
        wait = self._failed.wait(address)
        if wait:
            raise TooMany("This address has sent too many unknown keys; retry later.", wait)
        try:
            return await to_thread.run_sync(look_up, limiter=limiter)
        except Unauthenticated:
            self._failed.acquire(address)
            raise

    def begin(self, address: str) -> None:
        """Count the start of a program's sign-in; raises TooMany after too many of one address."""
        wait = self._begun.acquire(address)
        if wait:
            raise TooMany("This address has started too many sign-ins; retry later.", wait)

    def poll(self, device_code: str) -> None:
        """Count a question for a device code's token; raises TooMany for more than a program sends that waits."""
        wait = self._polled.acquire(keys.digest(device_code))
        if wait:
            raise TooMany("The token of this sign-in is asked for too often; retry later.", wait)

    def forget(self) -> None:
        """Ask the database again about every key and session."""
        self.known.forget()
        self.signed_in.forget()

    def write_uses(self) -> None:
        """Write to the database when keys were last used; what it does not take now is kept for the next time."""
        used, self._used = self._used, {}
        if not used:
            return
        now = time.monotonic()
        try:
            with self._sessions() as session:
                keys.note_uses(session, {id: now - at for id, at in used.items()})
        except SQLAlchemyError as error:
            log.warning("keys.uses_not_written", error=type(error).__name__)
            self._used = used | self._used

    async def _look_up(self, remembered: Remembered[str, Principal], digest: str, address: str) -> Principal:
        look_up = partial(remembered.get, digest)
        if digest not in self._good:
            known = await self.guess(look_up, address)
        else:  # what was good before is never held up by what others of its address try
            try:
                known = await run_in_threadpool(look_up)
            except Unauthenticated:
                self._good.discard(digest)
                raise
        if len(self._good) >= _MOST_REMEMBERED:
            self._good.clear()
        self._good.add(digest)
        return known

    def _authenticate(self, digest: str) -> Principal:
        with self._sessions() as session:
            try:
                return keys.authenticate(session, digest)
            except Unauthenticated:
                found = sign_ins.of_token(session, digest)
                if found is None:
                    raise
                return found

    def _signed_in(self, digest: str) -> Principal:
        with self._sessions() as session:
            return sign_ins.principal(session, digest)


def secret_of(request: Request) -> str:
    """The key or token that a request sends; empty where there is none."""
    return _secret(request.headers.get("authorization", ""))


def _secret(authorization: str) -> str:
    """The key in an ``Authorization`` header; empty where there is none."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _needs(role: Role) -> Callable[..., object]:
    async def check(
        request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        return await authorize(request, role)

    return check


async def authorize(request: Request, role: Role) -> Principal:
    """The principal of a request whose key reaches as far as ``role``; raises Unauthenticated, Forbidden or TooMany."""
    return await admit(request.app.state, request.scope, request.headers.get("authorization", ""), role)


async def require_still(request: Request) -> None:
    """Raise Unauthenticated where the key or the session of a request that goes on has ended since."""
    await _whose(request.app.state, request.scope, request.headers.get("authorization", ""))


async def admit(state: State, scope: Scope, authorization: str, role: Role) -> Principal:
    """As :func:`authorize`, for a request whose ``Authorization`` header is known; without one its cookie counts."""
    keyring: KeyRing = state.keyring
    principal, cookie = await _whose(state, scope, authorization)
    noted = scope.setdefault("state", {})
    if "key" not in noted:  # else it has been counted
        noted["key"] = principal  # for the log, too
        wait = keyring.rates.acquire(principal.key_id)  # what is refused below counts, too
        if wait:
            raise TooMany("Too many requests with this key; retry later.", wait)
    if cookie is not None:
        token = Request(scope).headers.get("x-csrf-token", "")
        if scope["method"] not in _SAFE and not is_csrf_token(cookie, token):
            raise Forbidden("Changes from a browser session require the page's token in X-CSRF-Token.")
    if _RANKS[principal.role] < _RANKS[role]:
        raise Forbidden(f"This requires the {role} role; your role is {principal.role}.")
    return principal


async def _whose(state: State, scope: Scope, authorization: str) -> tuple[Principal, str | None]:
    """Who asks, and the secret of the session by which."""
    keyring: KeyRing = state.keyring
    client = scope.get("client")
    address = client[0] if client else ""
    cookie = None if authorization else session_of(Request(scope))
    if cookie is None:
        return await keyring.principal(authorization, address), None
    principal = await keyring.of_session(cookie, address)
    if principal.proxy_user is not None:
        proxies: Proxies | None = state.proxies
        if proxies is None or proxies.user(scope) != principal.proxy_user:
            raise Unauthenticated("The proxy does not name the user of this session; sign in again.")
    return principal, cookie


_viewer, _clerk, _editor, _admin = (_needs(role) for role in _RANKS)

VIEWER, CLERK, EDITOR, ADMIN = Depends(_viewer), Depends(_clerk), Depends(_editor), Depends(_admin)


def cookie_name(request: Request) -> str:
    """What the session's cookie is called: services on several ports of one host do not share it."""
    return f"polymargin_{request.url.port or 0}"


def session_of(request: Request) -> str | None:
    """The secret of the session that a browser has signed in to, as it says."""
    return request.cookies.get(cookie_name(request))


def csrf_token(secret: str) -> str:
    """What the pages of a session send with every change."""
    return hmac.new(secret.encode(), b"csrf", "sha256").hexdigest()


def is_csrf_token(secret: str, token: str) -> bool:
    """Whether a request's token is that of its session."""
    return hmac.compare_digest(csrf_token(secret).encode(), token.encode())
