"""API keys."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.schemas.common.moments import Moment
from app.schemas.common.names import Name

Role = Literal["viewer", "editor", "admin"]


class KeyRequest(BaseModel):
    """A new key: viewer reads and predicts, editor also uploads and trains, admin also makes keys."""

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


class Key(BaseModel):
    id: str
    name: str
    role: Role
    workspace: str = "default"
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = Field(default=None, description="Null: it does not end by itself.")
    last_used_at: AwareDatetime | None = Field(default=None, description="To the minute; null: not used yet.")
    revoked: bool
    expired: bool = False


class NewKey(Key):
    """The only time that the secret is shown."""

    secret: str
