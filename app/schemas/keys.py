"""API keys."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from app.schemas.names import Name

Role = Literal["viewer", "editor", "admin"]


class KeyRequest(BaseModel):
    """A new key: viewer reads and predicts, editor also uploads and trains, admin also makes keys."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Role = "viewer"


class Key(BaseModel):
    id: str
    name: str
    role: Role
    created_at: AwareDatetime
    revoked: bool


class NewKey(Key):
    """The only time that the secret is shown."""

    secret: str
