"""Signing in to a remote service; and its keys and audit log, which only an administrator's key may read."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from app.access.schemas import AuditEntry, DeviceCode, Key, NewKey, Role, SignInToken
from app.remote.credentials import Credential
from app.remote.errors import (
    ClientError,
    SignInError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
    UnreachableError,
)
from app.remote.transport import Resource, Transport
from app.schemas import Page

# RFC 8628, 3.5
_SLOWER_SECONDS = 5.0
_LONGEST_PAUSE = 60.0


def login(transport: Transport, show: Callable[[DeviceCode], None]) -> SignInToken:
    """Sign a person in through the identity provider of the service, and keep the token; see ``Client.login``."""
    code = transport.post(DeviceCode, "/sign-in/device", credential="")
    show(code)
    ends = datetime.now(UTC) + timedelta(seconds=code.expires_in)
    pause, away = code.interval, None
    while True:
        transport.sleep(pause)
        if datetime.now(UTC) >= ends:
            raise away or SignInError("Nobody entered the code before it expired. Sign in again.")
        try:
            token = transport.post(SignInToken, "/sign-in/token", {"device_code": code.device_code}, credential="")
        except (TooManyError, UnavailableError, UnreachableError) as error:
            pause, away = min(pause * 2, _LONGEST_PAUSE), error
            continue
        away = None
        if token.state == "slow_down":
            pause += _SLOWER_SECONDS
        elif token.secret is not None and token.name is not None and token.expires_at is not None:
            transport.signed_in(Credential(secret=token.secret, name=token.name, expires_at=token.expires_at))
            return token


def logout(transport: Transport) -> str:
    """Revoke the token of a person, forget it, and return the name; see ``Client.logout``."""
    kept = transport.sign_in()
    if kept is None:
        raise SignInError(f"Nobody is signed in to {transport.url} on this machine.")
    failure: ClientError | None = None
    try:
        transport.send("DELETE", "/sign-in/token", credential=kept.secret)
    except UnauthenticatedError:
        pass  # it has ended already
    except ClientError as error:
        failure = error
    transport.signed_out()
    if failure is not None and not kept.has_expired:
        ends = f"{kept.expires_at.astimezone(UTC):%F %H:%M} UTC"
        raise SignInError(f"The token was removed from this machine, but is valid until {ends}: {failure.detail}")
    return kept.name


class Keys(Resource):
    """The service's keys."""

    def create(
        self,
        name: str,
        role: Role = "viewer",
        expires_at: datetime | None = None,
        workspace: str | None = None,
        promotes: bool = False,
    ) -> NewKey:
        """A new key; its secret is in this answer and nowhere else.

        ``expires_at`` is when it ends by itself, with a time zone; None: never. ``workspace`` is by default that of the
        key that asks. ``promotes`` lets an editor's key move and remove protected aliases.
        """
        given: dict[str, Any] = {"name": name, "role": role}
        if expires_at is not None:
            given["expires_at"] = expires_at.isoformat()
        if workspace is not None:
            given["workspace"] = workspace
        if promotes:
            given["promotes"] = True
        return self._transport.post(NewKey, "/keys", given)

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Key]:
        """One page, newest first."""
        return self._transport.get(Page[Key], "/keys", page_size=page_size, page_token=page_token)

    def revoke(self, key: str) -> None:
        """From now on the key is refused: of one's own workspace by name or id, of others by id."""
        self._transport.send("DELETE", f"/keys/{key}")


class Audit(Resource):
    """Who changed what."""

    def list(
        self,
        key: str | None = None,
        thing: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page_size: int = 50,
        page_token: str | None = None,
    ) -> Page[AuditEntry]:
        """One page, newest first.

        Parameters
        ----------
        key, thing : str or None
            Id or name; None: all.
        since, until : datetime or None
            With a time zone.
        """
        return self._transport.get(
            Page[AuditEntry],
            "/audit",
            key=key,
            thing=thing,
            since=None if since is None else since.isoformat(),
            until=None if until is None else until.isoformat(),
            page_size=page_size,
            page_token=page_token,
        )
