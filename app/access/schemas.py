"""Schemas of keys, the audit log and usage."""

from typing import Annotated, Any, Literal, Self

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
        default="key",
        description="`person`: signs in through an identity provider, and has tokens in place of a secret.",
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


_Address = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2000)]


class DeviceCode(BaseModel):
    """A sign-in that a program has started: a person enters `user_code` at `verification_uri` (RFC 8628)."""

    device_code: str = Field(
        min_length=1, max_length=4000, description="Secret of the program, for `POST /sign-in/token`."
    )
    user_code: str = Field(pattern="^[ -~]{1,100}$")
    verification_uri: _Address
    verification_uri_complete: _Address | None = Field(
        default=None, description="The same address with the code in it, if the identity provider has one."
    )
    expires_in: float = Field(gt=0, description="Seconds until both codes expire.")
    interval: float = Field(default=5.0, gt=0, description="Seconds to wait between two requests for the token.")

    @property
    def instructions(self) -> str:
        """What the person is to do, in one or two lines."""
        text = f"Open {self.verification_uri} and enter the code {self.user_code}"
        return text if self.verification_uri_complete is None else f"{text}\nor open {self.verification_uri_complete}"


class TokenRequest(BaseModel):
    """The sign-in whose token is asked for."""

    model_config = ConfigDict(extra="forbid")

    device_code: str = Field(min_length=1, max_length=4000, description="As `POST /sign-in/device` returned it.")


class SignInToken(BaseModel):
    """The token of a person who has signed in, or the state of the sign-in until then."""

    state: Literal["pending", "slow_down", "signed_in"] = Field(
        description="`pending`: nobody has entered the code yet. `slow_down`: neither, and the program must wait 5 "
        "seconds longer between two requests from now on."
    )
    secret: str | None = Field(
        default=None, description="The token, to be sent as an API key is. Only this response shows it."
    )
    name: str | None = Field(default=None, description="Name of the person, as in the list of keys.")
    role: Role | None = None
    workspace: str | None = None
    expires_at: AwareDatetime | None = None


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
            "`token` (a program signed in or out), `audit` (old entries were removed), ...; null if the resource has "
            "no name."
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
