"""The route that predicts: the one whose every microsecond counts."""

import re
import time
from typing import Annotated

import orjson
from fastapi import FastAPI, Query, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams, State
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.auth import VIEWER, admit
from app.api.bodies import INLINE_BYTES, check_json, parse_object, request_schema
from app.api.metrics import Metrics
from app.api.parameters import Ref
from app.api.paths import V1
from app.api.problems import NAME_RULE, problem_of, responses
from app.errors import InvalidInput, Item, PolymarginError
from app.schemas.names import NAME_PATTERN
from app.schemas.predictions import PredictRequest, PredictResponse
from app.services.model_cache import LoadedModel, ModelCache, Reference
from app.services.predictions import MAX_LABELS, predict
from app.store.failures import FAILURES

_INLINE_CLASSES = 20_000
_INLINE_READ = 64 << 20
_OF_ROWS = {"linear", "sparse_linear", "sharded_linear", "linear_code", "taxonomy"}
_NAME = re.compile(NAME_PATTERN)
_TOLD: tuple[type[Exception], ...] = (PolymarginError, *FAILURES)
_PATH = re.compile(f"{V1}/models/([^/]+)/predict")


async def predict_labels(
    ref: Ref,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, if neither is given.")] = None,
    alias: Annotated[str | None, Query(pattern=NAME_PATTERN, description="In place of a version.")] = None,
) -> Response:
    """Predict the label of every instance, with the scores of the `top_k` best labels."""
    raise NotImplementedError  # this only describes the route; Predictions answers


def install(app: FastAPI) -> APIRoute:
    """Describe the route, which :class:`Predictions` answers, and return it."""
    app.router.add_api_route(
        f"{V1}/models/{{ref}}/predict",
        predict_labels,
        methods=["POST"],
        tags=["predictions"],
        dependencies=[VIEWER],
        response_model=PredictResponse,
        openapi_extra=request_schema(PredictRequest),
        responses=responses(400, 401, 404, 409, 413, 415, 422),
        generate_unique_id_function=lambda route: route.name,
    )
    (route,) = (route for route in app.router.routes if getattr(route, "name", None) == predict_labels.__name__)
    assert isinstance(route, APIRoute)
    return route


class Predictions:
    """Answers predictions before the application's router: that took longer than parsing and scoring together.

    Parameters
    ----------
    app : ASGI application
        Answers all else.
    state : State
        The application's: settings, models, keyring, metrics.
    route : APIRoute
        By which these requests are counted.
    """

    def __init__(self, app: ASGIApp, state: State, route: APIRoute) -> None:
        self._app = app
        self._state = state
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if match is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        try:
            body = await answer(self._state, scope, receive, match[1])
        except _TOLD as error:
            await problem_of(error, scope)(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def answer(state: State, scope: Scope, receive: Receive, ref: str) -> bytes:
    """Check, predict and answer; a single instance on the event loop, more of them in a worker thread."""
    authorization = media_type = b""
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = value
        elif name == b"content-type":
            media_type = value
    principal = await admit(state, scope, authorization.decode("latin-1"), "viewer")
    reference = _reference(principal.workspace, ref, scope["query_string"])
    check_json(media_type.decode("latin-1"))
    content = await _body(receive)
    cache: ModelCache = state.models
    loaded = cache.ready(reference)
    if loaded is None:
        loaded = await run_in_threadpool(cache.get, reference)
    work = (loaded, content, state.settings.max_instances, state.metrics, scope["state"]["request_id"])
    body = _answer(*work, most=1) if takes_moments(loaded, len(content)) else None
    return await run_in_threadpool(_answer_all, *work) if body is None else body


async def _body(receive: Receive) -> bytes:
    content, more = b"", True
    parts = []
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content, more = message.get("body", b""), message.get("more_body", False)
        parts.append(content)
    return content if len(parts) == 1 else b"".join(parts)


def takes_moments(loaded: LoadedModel, n_bytes: int) -> bool:
    """Whether one instance, spelled in so many bytes, is scored sooner than other requests would notice."""
    n_classes = loaded.version.n_classes
    if n_bytes > INLINE_BYTES or n_classes > _INLINE_CLASSES:
        return False
    # a value takes four bytes to spell at least, and reads a row of weights; other models may read all that they have
    read = 8 * (n_bytes // 4) * n_classes if loaded.model.kind in _OF_ROWS else loaded.nbytes
    return read <= _INLINE_READ


def _answer_all(loaded: LoadedModel, content: bytes, max_instances: int, metrics: Metrics, id: str) -> bytes:
    body = _answer(loaded, content, max_instances, metrics, id, MAX_LABELS)
    assert body is not None
    return body


def _answer(
    loaded: LoadedModel, content: bytes, max_instances: int, metrics: Metrics, id: str, most: int
) -> bytes | None:
    """The answer's body; None where there are more than ``most`` instances."""
    started = time.perf_counter()
    document = parse_object(content)
    instances = document.get("instances")
    n_instances = len(instances) if isinstance(instances, list) else 0
    if most < n_instances <= max_instances:
        return None
    found = predict(loaded, document, max_instances)
    found["id"] = id
    body = orjson.dumps(found)
    metrics.predicted(n_instances, time.perf_counter() - started)
    return body


def _reference(workspace: str, ref: str, query_string: bytes) -> Reference:
    if not _NAME.fullmatch(ref):
        raise InvalidInput("The model's name is not valid.", [Item(NAME_RULE, "/path/ref")])
    if not query_string:
        return workspace, ref, None, None
    query = QueryParams(query_string)
    version, alias = query.get("version"), query.get("alias")
    if not _NAME.fullmatch(ref):
        raise InvalidInput("The model's name is not valid.", [Item(NAME_RULE, "/path/ref")])
    if alias is not None and not _NAME.fullmatch(alias):
        raise InvalidInput("The alias is not valid.", [Item(NAME_RULE, "/query/alias")])
    if version is None:
        return workspace, ref, None, alias
    if not (version.isascii() and version.isdigit() and 1 <= len(version) <= 9 and int(version) >= 1):
        raise InvalidInput("The version is not valid.", [Item("a number from 1 was expected", "/query/version")])
    return workspace, ref, int(version), alias
