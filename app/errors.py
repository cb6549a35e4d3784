"""Every error that may leave the service, and how each one maps to a problem document (RFC 9457).

PolymarginError
    Malformed           400  the request cannot be read at all: broken JSON, a truncated body
    InvalidInput        422  the request is well formed, its content is not
    Unauthenticated     401  no key, or one that is not known
    Forbidden           403  the key's role does not reach this far
    NotFound            404
    Conflict            409  the thing's state or name stands in the way
    PreconditionFailed  412  If-Match named another version
    TooLarge            413
    UnsupportedFormat   415
    Misdirected         421  the Host is no name of this service
    TooMany             429  more than is allowed at a time; come again later
    Unavailable         503  a part of the service is not there now; try again
    StorageFull         507  the disk, or the database's disk, has no room
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

MAX_ITEMS = 20


@dataclass(frozen=True)
class Item:
    """One fault in the input: where it is (JSON pointer, or row and column) and what is wrong."""

    detail: str
    pointer: str | None = None
    row: int | None = None
    column: str | None = None

    def document(self) -> dict[str, Any]:
        """The item as JSON, without the places that it does not name."""
        return {key: value for key, value in asdict(self).items() if value is not None}


class PolymarginError(Exception):
    """Root of the tree; ``code`` is stable and meant for programs, ``detail`` for people."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, errors: Sequence[Item] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)[:MAX_ITEMS]

    def document(self) -> dict[str, Any]:
        """The problem document, without the request's id."""
        return {
            "type": f"urn:polymargin:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "errors": [item.document() for item in self.errors],
        }


class Malformed(PolymarginError):
    status, code, title = 400, "malformed", "The request cannot be read"


class InvalidInput(PolymarginError):
    status, code, title = 422, "invalid_input", "The input is not valid"


class Unauthenticated(PolymarginError):
    status, code, title = 401, "unauthenticated", "A valid API key is needed"


class Forbidden(PolymarginError):
    status, code, title = 403, "forbidden", "The key's role does not allow this"


class NotFound(PolymarginError):
    status, code, title = 404, "not_found", "No such thing"


class Conflict(PolymarginError):
    status, code, title = 409, "conflict", "The state of the resource stands in the way"


class PreconditionFailed(PolymarginError):
    status, code, title = 412, "precondition_failed", "The resource has changed"


class TooLarge(PolymarginError):
    status, code, title = 413, "too_large", "The body is too large"


class UnsupportedFormat(PolymarginError):
    status, code, title = 415, "unsupported_format", "The format is not known"


class Misdirected(PolymarginError):
    status, code, title = 421, "misdirected", "This service does not have that name"


class TooMany(PolymarginError):
    """``retry_after`` tells in how many seconds it is worth coming again."""

    status, code, title = 429, "too_many", "Too many at a time"

    def __init__(self, detail: str, retry_after: float) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(PolymarginError):
    status, code, title = 503, "unavailable", "Not available now"


class StorageFull(PolymarginError):
    status, code, title = 507, "storage_full", "There is no room to store this"


class SettingsError(Exception):
    """The environment has settings that cannot be; it ends a process and never leaves the service."""
