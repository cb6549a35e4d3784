"""What surrounds every request: its id, its line in the log, its count, and the answer when all else fails."""

import re
import secrets
import time

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import tracing
from app.access.keys import Principal
from app.errors import InvalidInput, Item, PolymarginError
from app.http.hosts import secured
from app.http.problems import problem
from app.json_text import ZERO, fault, pointer
from app.operation.metrics import Metrics
from app.storable_text import require_storable_query
from app.store.failures import explained

SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_GONE = 499
_QUIET = (
    "/predict",
    ":predict",
    "/infer",
    "/invocations",
    "/suggest",
    "/suggest-batch",
    "/healthz",
    "/readyz",
    "/metrics",
)

log = structlog.get_logger()


class RequestMiddleware:
    """Gives each request an id (the client's own, if it is a plain word), logs it and counts it.

    A prediction or a health check that succeeds is logged only where ``verbose``: a line each would cost a good part
    of what the prediction costs.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, verbose: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._verbose = verbose

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = name
        if not tracing.is_on():
            await self._answer(scope, receive, send, name)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        with tracing.request(scope["method"], headers) as span:
            status = await self._answer(scope, receive, send, name)
            tracing.answered(span, scope["method"], _route(scope), status, name)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, name: str) -> int:
        header = (b"x-request-id", name.encode())
        started = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), header]
                message["headers"] = secured(headers, scope.get("scheme", "http"))
            await send(message)

        try:
            _require_storable(scope)
            await self._app(scope, receive, answer)
        except InvalidInput as error:
            await problem(error, name)(scope, receive, answer)
        except ClientDisconnect:
            status = _GONE
        except Exception as error:
            log.exception("request.failed", request_id=name, method=scope["method"], path=_path(scope))
            if status:
                raise
            failure = explained(error) or PolymarginError("Internal error; see the log entries with this request id.")
            await problem(failure, name)(scope, receive, answer)
        finally:
            self._note(scope, name, status, time.perf_counter() - started)
        return status

    def _note(self, scope: Scope, name: str, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if route != "unknown" else "any"
        self._metrics.answered(method, route, status, seconds, streamed=route.endswith("/events"))
        if status < 400 and route.endswith(_QUIET) and not self._verbose:
            return
        key: Principal | None = scope["state"].get("key")
        log.info(
            "request",
            request_id=name,
            key=None if key is None else key.name,
            key_id=None if key is None else key.key_id,
            method=scope["method"],
            path=_path(scope),
            status=status,
            ms=round(1000 * seconds, 2),
        )


def _request_id(scope: Scope) -> str:
    for key, value in scope["headers"]:
        if key == b"x-request-id" and SANE_ID.fullmatch(value):
            return bytes(value).decode()
    return secrets.token_hex(16)


def _require_storable(scope: Scope) -> None:
    """Raise InvalidInput where the request's path, query or a header has text that cannot be stored."""
    require_storable_query(scope["query_string"])
    if reason := fault(scope["path"]):
        raise InvalidInput("The request's path has text that cannot be stored.", [Item(reason, "/path")])
    for key, value in scope["headers"]:
        if b"\0" in value:
            item = Item(ZERO, pointer(("header", key.decode("latin-1"))))
            raise InvalidInput("A header of the request has text that cannot be stored.", [item])


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "unknown")


def _path(scope: Scope) -> str:
    return str(scope["path"])[:200]
