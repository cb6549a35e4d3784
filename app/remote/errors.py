"""What the client raises: one class for each kind of answer that is not a success.

ClientError
    UnreachableError            nothing answers at the service's address
        UploadInterruptedError      an upload broke off, and can go on from there
    TimedOutError               what was waited for did not happen in the time given
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

from pydantic import ValidationError

from app.schemas.common.problems import ProblemDocument, ProblemItem

_TOLD = 3


class ClientError(Exception):
    """Root of the tree; ``code`` is stable and meant for programs, ``detail`` for people."""

    code: str = "client"

    def __init__(self, detail: str, errors: list[ProblemItem] | None = None, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
        self.request_id = request_id

    def __str__(self) -> str:
        """The detail, and the first faults with their places: of an error that nobody caught nothing else is seen."""
        faults = [*map(told, self.errors[:_TOLD]), *(["..."] if len(self.errors) > _TOLD else [])]
        return f"{self.detail} ({'; '.join(faults)})" if faults else self.detail


class UnreachableError(ClientError):
    code = "unreachable"


class UploadInterruptedError(UnreachableError):
    """An upload in pieces broke off; ``upload`` is its id."""

    code = "upload_interrupted"

    def __init__(self, upload: str, offset: int, size: int, why: ClientError) -> None:
        super().__init__(
            f"{why.detail} The upload broke off at {offset:,} of {size:,} bytes; go on with resume={upload} (--resume "
            f"{upload})."
        )
        self.upload = upload


class TimedOutError(ClientError):
    code = "timed_out"


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


def told(fault: ProblemItem) -> str:
    """A fault in one line: its place, as far as it has one, and what is wrong there."""
    places = [fault.pointer, None if fault.row is None else f"row {fault.row}", fault.column]
    where = ", ".join(place for place in places if place)
    return f"{where}: {fault.detail}" if where else fault.detail


def from_answer(status: int, body: bytes) -> ResponseError:
    """The error that an answer with a status of 400 or more stands for.

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
