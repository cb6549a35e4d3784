"""Keys and the audit log of a remote service; only an administrator's key may read them."""

from datetime import datetime
from typing import Any

from app.access.schemas import AuditEntry, Key, NewKey, Role
from app.remote.transport import Resource
from app.schemas import Page


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
