"""The body of every error answer (RFC 9457, application/problem+json)."""

from pydantic import BaseModel


class ProblemItem(BaseModel):
    """One fault: where (JSON pointer, or row and column) and what."""

    detail: str
    pointer: str | None = None
    row: int | None = None
    column: str | None = None


class ProblemDocument(BaseModel):
    """What went wrong; ``code`` is for programs, ``detail`` for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None = None
    errors: list[ProblemItem] = []
