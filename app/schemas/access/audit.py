"""Entries of the audit log."""

from typing import Any

from pydantic import AwareDatetime, BaseModel, Field


class AuditEntry(BaseModel):
    """One change that a request has made; a request that changes several things has several entries."""

    id: str
    at: AwareDatetime
    workspace: str
    key: str = Field(description="Name of the key that asked; empty: the service itself has removed old entries.")
    key_id: str
    method: str
    route: str
    path: str
    request_id: str | None = Field(description="As the answer had it in `X-Request-ID`, and the log has it.")
    address: str | None = Field(description="Where the request came from, as a trusted proxy says; else the proxy.")
    what: str | None = Field(
        description=(
            "What was changed: `dataset`, `job`, `key`, `session` (a browser has signed in), `audit` (old entries were "
            "removed), ...; null: nothing that has a name."
        )
    )
    thing: str | None = Field(description="Its id.")
    name: str | None
    before: dict[str, Any] | None = Field(description="What has changed of it, as it was; null: it was not there.")
    after: dict[str, Any] | None = Field(description="The same, as it is since; null: it is gone.")
