"""Every error that may leave the service, and how each one maps to a problem document (RFC 9457).

PolymarginError
    Malformed           400  the request cannot be parsed: broken JSON, a truncated body
    InvalidInput        422  the request is well formed but its content is not valid
    Unauthenticated     401  the API key is missing or unknown
    Forbidden           403  the role does not allow this
    NotFound            404
    Conflict            409  the request conflicts with the resource's state or name
    PreconditionFailed  412  If-Match names another version
    TooLarge            413
    UnsupportedFormat   415
    Misdirected         421  the Host header is not a name of this service
    TooMany             429  too many requests or jobs; retry later
    Unavailable         503  a part of the service is unavailable; retry later
    StorageFull         507  the disk of the service or of the database is full
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
        """The item as JSON, without empty fields."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def problem_document(
    code: str, title: str, status: int, detail: str, errors: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """A problem document, without the request's id."""
    return {
        "type": f"urn:polymargin:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": list(errors),
    }


class PolymarginError(Exception):
    """Root of the tree; ``code`` is stable and for programs, ``detail`` is for people."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, errors: Sequence[Item] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)[:MAX_ITEMS]

    def document(self) -> dict[str, Any]:
        """The problem document, without the request's id."""
        return problem_document(
            self.code, self.title, self.status, self.detail, [item.document() for item in self.errors]
        )


class Malformed(PolymarginError):
    status, code, title = 400, "malformed", "The request cannot be parsed"


class InvalidInput(PolymarginError):
    status, code, title = 422, "invalid_input", "The input is not valid"


def unfit(detail: str, pointer: str) -> InvalidInput:
    """The error of a request that the model cannot answer, by its one fault."""
    return InvalidInput("The request does not fit the model.", [Item(detail, pointer)])


class Unauthenticated(PolymarginError):
    status, code, title = 401, "unauthenticated", "A valid API key is required"


class Forbidden(PolymarginError):
    status, code, title = 403, "forbidden", "Your role does not allow this"


class NotFound(PolymarginError):
    status, code, title = 404, "not_found", "Not found"


class Conflict(PolymarginError):
    status, code, title = 409, "conflict", "Conflict with the current state"


class PreconditionFailed(PolymarginError):
    status, code, title = 412, "precondition_failed", "The resource has changed"


class TooLarge(PolymarginError):
    status, code, title = 413, "too_large", "The body is too large"


class UnsupportedFormat(PolymarginError):
    status, code, title = 415, "unsupported_format", "The format is not supported"


class Misdirected(PolymarginError):
    status, code, title = 421, "misdirected", "Unknown host name"


class TooMany(PolymarginError):
    """``retry_after`` is the number of seconds after which to retry."""

    status, code, title = 429, "too_many", "Too many requests"

    def __init__(self, detail: str, retry_after: float) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(PolymarginError):
    status, code, title = 503, "unavailable", "Temporarily unavailable"


class StorageFull(PolymarginError):
    status, code, title = 507, "storage_full", "Insufficient storage"


class SettingsError(Exception):
    """Settings in the environment are invalid; the process exits, and no client ever sees this error."""
