"""Schemas of keys, the audit log and usage."""

from typing import Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from app.schemas import Moment, Name

Role = Literal["viewer", "clerk", "editor", "admin"]


class KeyRequest(BaseModel):
    """A new key: viewer reads and predicts, clerk also predicts files, decides review rows and sends feedback, editor
    also trains, promotes and deletes, admin also makes keys."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Role = "viewer"
    workspace: Name | None = Field(
        default=None,
        description="What the key sees and makes belongs to it; by default that of the key that asks. Only "
        "administrators of the workspace `default` may name another; it is there with its first key.",
    )
    expires_at: Moment | None = Field(
        default=None, description="When the key ends by itself, with a time zone. Not given: never."
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
    expires_at: AwareDatetime | None = Field(default=None, description="Null: it does not end by itself.")
    last_used_at: AwareDatetime | None = Field(default=None, description="To the minute; null: not used yet.")
    revoked: bool
    expired: bool = False
    promotes: bool = Field(default=False, description="It may move and remove protected aliases.")


class NewKey(Key):
    """The only time that the secret is shown."""

    secret: str


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


class Usage(BaseModel):
    workspace: str
    jobs: int = Field(description="Jobs that are not over.")
    max_jobs: int | None = Field(description="Null: any number.")
    stored_bytes: int = Field(description="Of uploaded files, and of versions of models.")
    max_stored_bytes: int | None
    requests_per_second: float | None = Field(description="Of one key, in the mean, in each API process.")
