"""The audit log of a remote service; only an administrator's key may ask."""

from datetime import datetime

from app.remote.transport import Transport
from app.schemas.access.audit import AuditEntry
from app.schemas.common.pages import Page


class Audit:
    """Who changed what."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
