"""Every failure of a request as a problem document (RFC 9457), none of which repeats what was sent."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import Any

import orjson
import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from app.errors import MAX_ITEMS, InvalidInput, Item, PolymarginError, TooMany, problem_document
from app.http.parameters import query_names
from app.json_text import pointer
from app.schemas import NAME_PATTERN, VERSION_PATTERN
from app.store.failures import FAILURES, explained

MEDIA_TYPE = "application/problem+json"
UNKNOWN = "unknown field"
NAME_RULE = "a name is 1 to 128 letters, digits, '.', '_' or '-', the first a letter or digit"

_PATTERNS = {
    NAME_PATTERN: NAME_RULE,
    VERSION_PATTERN: "a version is MODEL@NUMBER or MODEL@ALIAS, as topics@3",
}

log = structlog.get_logger()

_HEADERS: dict[int, dict[str, str]] = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
_DESCRIPTIONS = {
    400: "The request cannot be parsed",
    401: "A valid API key is required",
    403: "Your role does not allow this",
    404: "Not found",
    405: "The path does not support this method",
    409: "Conflict with the current state",
    412: "The resource has changed",
    413: "The body is too large",
    415: "The format is not supported",
    421: "Unknown host name",
    422: "The input is not valid",
    429: "Too many requests",
    500: "Internal error",
    503: "Temporarily unavailable",
    507: "Insufficient storage",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the API's description says of the errors of a route; 400, 421, 429, 500 and 503 belong to every one.

    A route of the API names only what does not follow from its role, path and JSON body (``openapi.describe``).
    """
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    return {
        status: {"description": _DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*statuses, 400, 421, 429, 500, 503})
    }


def install(app: FastAPI) -> None:
    """Let the app answer every error that reaches it with a problem document."""
    app.add_exception_handler(PolymarginError, _from_error)
    for kind in FAILURES:
        app.add_exception_handler(kind, _from_error)
    app.add_exception_handler(HTTPException, from_http)
    app.add_exception_handler(RequestValidationError, _from_parameters)


def problem(error: PolymarginError, request_id: str | None) -> Response:
    """The answer for ``error``."""
    headers = _HEADERS.get(error.status)
    if isinstance(error, TooMany):
        headers = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return _response(error.document(), request_id, headers)


def items(faults: Iterable[Mapping[str, Any]], prefix: str = "") -> list[Item]:
    """Pydantic's faults as items: a pointer below ``prefix`` and a message, without the input.

    Parameters
    ----------
    faults : iterable of mapping
        As ``ValidationError.errors()`` gives them.
    prefix : str
        JSON pointer of the validated value.
    """
    return [Item(_message(fault), prefix + pointer(_keys(fault["loc"]))) for fault in islice(faults, MAX_ITEMS)]


def _keys(loc: Sequence[str | int]) -> list[str | int]:
    """A fault's place without the tags of unions that the input does not have."""
    return [part for part in loc if not (isinstance(part, str) and part[:1] == "<" and part[-1:] == ">")]


def request_id(request: Request) -> str | None:
    """The id that the middleware gave to the request."""
    found: str | None = request.scope.get("state", {}).get("request_id")
    return found


def problem_of(error: Exception, scope: Scope) -> Response:
    """The answer for an error of the service or for a failure; raises anything else again."""
    id = scope.get("state", {}).get("request_id")
    if isinstance(error, PolymarginError):
        return problem(error, id)
    found = explained(error)
    if found is None:
        raise error
    log.warning("request.unserved", request_id=id, error=type(error).__name__, code=found.code)
    return problem(found, id)


async def _from_error(request: Request, error: Exception) -> Response:
    return problem_of(error, request.scope)


async def from_http(request: Request, error: Exception) -> Response:
    """The answer for a path or method that no route has."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    code = status.phrase.lower().replace(" ", "_").replace("-", "_")
    detail = {404: "No route has this path.", 405: "The path does not support this method."}.get(status, status.phrase)
    document = problem_document(code, status.phrase, status.value, detail)
    if request.scope["path"].startswith("/v2/"):  # clients of the Open Inference Protocol read this field
        document["error"] = detail
    headers = {"Allow": ", ".join(_allowed(request))} if status == HTTPStatus.METHOD_NOT_ALLOWED else error.headers
    return _response(document, request_id(request), headers)


def _allowed(request: Request) -> list[str]:
    """The methods of all routes of a path; the router itself knows those of the first alone."""
    found: set[str] = set()
    routes: list[Route] = request.app.state.routes
    for route in routes:
        if route.path_regex.match(request.scope["path"]):
            found |= route.methods or set()
    return sorted(found)


async def _from_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    dependant = getattr(request.scope.get("route"), "dependant", None)
    known = () if dependant is None else tuple(query_names(dependant))
    return problem(refused_parameters(error, known), request_id(request))


def unknown(name: str, known: Sequence[str]) -> str:
    """What to say of a field that is none of those that are known."""
    near = difflib.get_close_matches(name[:80].lower(), known, n=1)
    if near:
        return f"{UNKNOWN}; did you mean {near[0]!r}?"
    return f"{UNKNOWN}; known are {', '.join(known)}" if known else f"{UNKNOWN}; there are none here"


def refused_parameters(error: RequestValidationError, known: Sequence[str] = ()) -> InvalidInput:
    """What is wrong with parameters of the path, the query and headers; ``known`` are those of the query."""
    found = [
        replace(item, detail=unknown((item.pointer or "").split("/")[-1], known)) if item.detail == UNKNOWN else item
        for item in items(error.errors())
    ]
    names = list(dict.fromkeys(item.pointer.split("/")[2][:80] for item in found if item.pointer))
    if len(names) == 1:
        return InvalidInput(f"The parameter {names[0]} is not valid.", found)
    return InvalidInput(f"The parameters {', '.join(names[:3])}{', ...' * (len(names) > 3)} are not valid.", found)


def _message(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] in _PATTERNS:
        return _PATTERNS[fault["ctx"]["pattern"]]
    if fault["type"] == "extra_forbidden":
        return UNKNOWN
    if fault["type"] == "missing" and isinstance(fault["loc"][-1], int):
        return f"{fault['loc'][-1] + 1} values or more were expected"
    return str(fault["msg"]).removeprefix("Value error, ")


def _response(document: dict[str, Any], request_id: str | None, headers: Mapping[str, str] | None) -> Response:
    content = orjson.dumps({**document, "request_id": request_id})
    return Response(content, document["status"], headers, MEDIA_TYPE)
