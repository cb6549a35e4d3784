"""What the client raises: one class for each kind of answer that is not a success.

ClientError
    UnreachableError            nothing answers at the service's address
        UploadInterruptedError      an upload was interrupted, and can resume from there
    UnexpectedAnswerError       the answer is not one of this API: another program, or another version
    TimedOutError               what was waited for did not happen in the time given
    SignInError                 a person was not signed in or out
    JobFailedError              a job that was waited for failed or was cancelled
    ResponseError               the service answered with a problem document
        MalformedError              400 malformed
        InvalidInputError           422 invalid_input
        UnauthenticatedError        401 unauthenticated
        ForbiddenError              403 forbidden
        NotFoundError               404 not_found
        ConflictError               409 conflict
        PreconditionFailedError     412 precondition_failed
        TooLargeError               413 too_large
        UnsupportedFormatError      415 unsupported_format
        TooManyError                429 too_many
        UnavailableError            503 unavailable
        StorageFullError            507 storage_full
        InternalError               500 internal, and whatever else is not known here
"""

import os
import traceback
from pathlib import Path

from pydantic import ValidationError

from app.json_text import place_of
from app.schemas import ProblemDocument, ProblemItem

_LISTED = 3


class ClientError(Exception):
    """Base class; ``code`` is stable and for programs, ``detail`` is for people."""

    code: str = "client"

    def __init__(self, detail: str, errors: list[ProblemItem] | None = None, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
        self.request_id = request_id

    def __str__(self) -> str:
        """The detail, and the first faults with their places: of an error that nobody caught nothing else is seen."""
        faults = [*map(fault_line, self.errors[:_LISTED]), *(["..."] if len(self.errors) > _LISTED else [])]
        return f"{self.detail} ({'; '.join(faults)})" if faults else self.detail

    def _render_traceback_(self) -> list[str]:
        """The traceback in notebooks: the caller's own lines and the message, without the client's frames."""
        own = Path(__file__).parents[1]
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if own not in Path(frame.filename).parents and f"{os.sep}site-packages{os.sep}" not in frame.filename
        ]
        lines = [f"line {frame.lineno}, in {frame.name}: {frame.line}" for frame in frames if frame.line]
        return [*lines, "", f"{type(self).__name__}: {self}"]


class UnreachableError(ClientError):
    code = "unreachable"


class UnexpectedAnswerError(ClientError):
    """An answer of another form than ``expected``; ``reason`` is the first difference."""

    code = "unexpected_answer"

    def __init__(self, url: str, expected: str, reason: str) -> None:
        super().__init__(
            f"The answer of {url} is not a {expected} of Polymargin ({reason}). Check the address; if a service of "
            "another version answers there, install the client of that version."
        )


class UploadInterruptedError(UnreachableError):
    """An upload in pieces was interrupted; ``upload`` is its id."""

    code = "upload_interrupted"

    def __init__(self, upload: str, offset: int, size: int, why: ClientError) -> None:
        super().__init__(
            f"{why.detail} The upload was interrupted at {offset:,} of {size:,} bytes; resume it with "
            f"resume={upload} (--resume {upload})."
        )
        self.upload = upload


class TimedOutError(ClientError):
    code = "timed_out"


class SignInError(ClientError):
    code = "sign_in"


class JobFailedError(ClientError):
    code = "job_failed"


class ResponseError(ClientError):
    """The service's refusal; ``status`` is its HTTP status."""

    code = "internal"

    def __init__(self, problem: ProblemDocument) -> None:
        super().__init__(problem.detail, problem.errors, problem.request_id)
        self.code = problem.code
        self.status = problem.status
        self.title = problem.title


class MalformedError(ResponseError):
    code = "malformed"


class InvalidInputError(ResponseError):
    code = "invalid_input"


class UnauthenticatedError(ResponseError):
    code = "unauthenticated"


class ForbiddenError(ResponseError):
    code = "forbidden"


class NotFoundError(ResponseError):
    code = "not_found"


class ConflictError(ResponseError):
    code = "conflict"


class PreconditionFailedError(ResponseError):
    code = "precondition_failed"


class TooLargeError(ResponseError):
    code = "too_large"


class UnsupportedFormatError(ResponseError):
    code = "unsupported_format"


class TooManyError(ResponseError):
    code = "too_many"


class UnavailableError(ResponseError):
    code = "unavailable"


class StorageFullError(ResponseError):
    code = "storage_full"


class InternalError(ResponseError):
    code = "internal"

    def __init__(self, problem: ProblemDocument) -> None:
        super().__init__(problem)
        self.detail += f" (request id {self.request_id})" if self.request_id else ""


_STATUSES: dict[int, type[ResponseError]] = {
    400: MalformedError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: TooLargeError,
    415: UnsupportedFormatError,
    422: InvalidInputError,
    429: TooManyError,
    503: UnavailableError,
    507: StorageFullError,
}
_CODES = {kind.code: kind for kind in _STATUSES.values()}


def fault_line(fault: ProblemItem) -> str:
    """A fault in one line: its place, as far as it has one, and what is wrong there."""
    places = [
        fault.pointer and place_of(fault.pointer),
        None if fault.row is None else f"row {fault.row}",
        fault.column,
    ]
    where = ", ".join(place for place in places if place)
    return f"{where}: {fault.detail}" if where else fault.detail


def from_answer(status: int, body: bytes) -> ResponseError:
    """The error for an answer with a status of 400 or more.

    Parameters
    ----------
    status : int
        The HTTP status.
    body : bytes
        The body; where it is no problem document (a proxy in between answered), the status alone decides.
    """
    try:
        problem = ProblemDocument.model_validate_json(body)
    except ValidationError:
        kind = _STATUSES.get(status, InternalError)
        detail = f"The server at this address answered with HTTP status {status} and no problem document"
        problem = ProblemDocument(type="about:blank", title="HTTP error", status=status, code=kind.code, detail=detail)
    return _CODES.get(problem.code, _STATUSES.get(status, InternalError))(problem)
