"""Schemas of keys, the audit log and usage."""

from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from app.schemas import Moment, Name

Role = Literal["viewer", "clerk", "editor", "admin"]


class KeyRequest(BaseModel):
    """A key to create. A viewer reads and predicts; a clerk also predicts files, decides review rows and sends
    feedback; an editor also trains, promotes and deletes; an admin also creates keys."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Role = "viewer"
    workspace: Name | None = Field(
        default=None,
        description="Workspace of the key: the key sees only what belongs to it. Default: the workspace of the "
        "requesting key. Only administrators of the workspace `default` may name another. A workspace "
        "is created with its first key.",
    )
    expires_at: Moment | None = Field(
        default=None, description="Expiry time, with a time zone. Default: the key never expires."
    )
    promotes: bool = Field(
        default=False,
        description="Whether an editor's key may move and remove protected aliases (`POLYMARGIN_PROTECTED_ALIASES`). "
        "Administrators always may.",
    )

    @model_validator(mode="after")
    def _edits(self) -> Self:
        if self.promotes and self.role in ("viewer", "clerk"):
            raise ValueError(f"promotes needs the editor role; the key's role is {self.role}")
        return self


class Key(BaseModel):
    id: str
    name: str
    kind: Literal["key", "person"] = Field(
        default="key", description="`person`: signs in through an identity provider, and has no secret."
    )
    role: Role
    workspace: str = "default"
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = Field(default=None, description="Expiry time; null if the key never expires.")
    last_used_at: AwareDatetime | None = Field(
        default=None, description="Time of the last use, to the minute; null if the key was not used yet."
    )
    revoked: bool
    expired: bool = False
    promotes: bool = Field(default=False, description="Whether the key may move and remove protected aliases.")


class NewKey(Key):
    """A new key; its secret is shown only once."""

    secret: str


class AuditEntry(BaseModel):
    """One change made by a request; a request that changes several resources has several entries."""

    id: str
    at: AwareDatetime
    workspace: str
    key: str = Field(description="Name of the requesting key; empty if the service itself removed old entries.")
    key_id: str
    method: str
    route: str
    path: str
    request_id: str | None = Field(description="Request id, as in the response's `X-Request-ID` and in the log.")
    address: str | None = Field(
        description="Client address as reported by a trusted proxy, or else the address of the peer."
    )
    what: str | None = Field(
        description=(
            "Kind of the changed resource: `dataset`, `job`, `key`, `session` (a browser signed in), "
            "`audit` (old entries were removed), ...; null if the resource has no name."
        )
    )
    thing: str | None = Field(description="Id of the changed resource.")
    name: str | None
    before: dict[str, Any] | None = Field(
        description="The changed fields before the request; null if the resource did not exist."
    )
    after: dict[str, Any] | None = Field(
        description="The changed fields after the request; null if the resource was removed."
    )


class Usage(BaseModel):
    workspace: str
    jobs: int = Field(description="Jobs that have not ended.")
    max_jobs: int | None = Field(description="Maximum number of jobs; null if unlimited.")
    stored_bytes: int = Field(description="Bytes of uploaded files and model versions.")
    max_stored_bytes: int | None
    requests_per_second: float | None = Field(description="Average request limit of one key in each API process.")
