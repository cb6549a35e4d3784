"""Who may do what: bearer keys, remembered for moments, and the roles that routes ask for."""

import hashlib
import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session, sessionmaker
from starlette.concurrency import run_in_threadpool

from app.errors import Forbidden, Unauthenticated
from app.schemas.keys import Role
from app.services import keys
from app.services.keys import Principal

_ROLES: tuple[Role, ...] = ("viewer", "editor", "admin")
_REMEMBERED_SECONDS = 3.0
_MOST_REMEMBERED = 10_000

_bearer = HTTPBearer(auto_error=False, description="An API key, as POST /keys gave it.")


class KeyRing:
    """The keys that were shown lately; a key revoked in another process is refused here within three seconds."""

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        self._sessions = sessions
        self._remembered: dict[bytes, tuple[float, Principal]] = {}

    async def principal(self, authorization: str) -> Principal:
        """Whose ``Authorization`` header this is; raises Unauthenticated."""
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthenticated("Send the API key as 'Authorization: Bearer <key>'.")
        digest = hashlib.sha256(secret.strip().encode()).digest()
        expires, known = self._remembered.get(digest, (0.0, None))
        if known is None or expires < time.monotonic():
            known = await run_in_threadpool(self._authenticate, secret.strip())
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[digest] = (time.monotonic() + _REMEMBERED_SECONDS, known)
        return known

    def forget(self) -> None:
        """Ask the database again about every key."""
        self._remembered.clear()

    def _authenticate(self, secret: str) -> Principal:
        with self._sessions() as session:
            return keys.authenticate(session, secret)


def _needs(role: Role) -> Callable[..., object]:
    async def check(
        request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        return await authorize(request, role)

    return check


async def authorize(request: Request, role: Role) -> Principal:
    """The principal of a request whose key reaches as far as ``role``; raises Unauthenticated or Forbidden."""
    keyring: KeyRing = request.app.state.keyring
    principal = await keyring.principal(request.headers.get("authorization", ""))
    request.state.key = principal  # for the log
    if _ROLES.index(principal.role) < _ROLES.index(role):
        raise Forbidden(f"This takes the role {role}; the key's role is {principal.role}.")
    return principal


_viewer, _editor, _admin = _needs("viewer"), _needs("editor"), _needs("admin")

VIEWER, EDITOR, ADMIN = Depends(_viewer), Depends(_editor), Depends(_admin)
Editor = Annotated[Principal, EDITOR]
