"""Health and readiness of the service."""

from typing import Literal

from pydantic import BaseModel


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class Readiness(BaseModel):
    """Whether each part that a request may need is there."""

    ready: bool
    database: str
    queue: str
    workers: str
