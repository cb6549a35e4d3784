"""The route that predicts: the one whose every microsecond counts."""

import re
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from app.api.auth import VIEWER, authorize
from app.api.bodies import INLINE_BYTES, parse_object, request_schema, require_json
from app.api.metrics import Metrics
from app.api.parameters import Ref
from app.api.paths import V1
from app.api.problems import NAME_RULE, responses
from app.errors import InvalidInput, Item
from app.schemas.names import NAME_PATTERN
from app.schemas.predictions import PredictRequest, PredictResponse
from app.services.model_cache import LoadedModel, ModelCache, Reference
from app.services.predictions import predict

_INLINE_CLASSES = 20_000
_INLINE_READ = 64 << 20
_OF_ROWS = {"linear", "sparse_linear", "sharded_linear", "linear_code", "taxonomy"}
_NAME = re.compile(NAME_PATTERN)


class _Bare(APIRoute):
    """A route whose handler takes the request as it is; its signature only describes it.

    Solving the dependencies of this route and validating its answer took longer than most predictions.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handler(request: Request) -> Response:
            return await answer(request)

        return handler


async def predict_labels(
    ref: Ref,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, if neither is given.")] = None,
    alias: Annotated[str | None, Query(pattern=NAME_PATTERN, description="In place of a version.")] = None,
) -> Response:
    """Predict the label of every instance, with the scores of the `top_k` best labels."""
    raise NotImplementedError  # the route's handler answers


def install(app: FastAPI) -> None:
    """Add the route to the app itself: finding it inside a router took a tenth of a prediction's time."""
    app.router.add_api_route(
        f"{V1}/models/{{ref}}/predict",
        predict_labels,
        methods=["POST"],
        tags=["predictions"],
        dependencies=[VIEWER],
        response_model=PredictResponse,
        openapi_extra=request_schema(PredictRequest),
        responses=responses(400, 401, 404, 409, 413, 415, 422),
        route_class_override=_Bare,
        generate_unique_id_function=lambda route: route.name,
    )


async def answer(request: Request) -> Response:
    """Check, predict and answer; a single instance on the event loop, more of them in a worker thread."""
    await authorize(request, "viewer")
    reference = _reference(request)
    require_json(request)
    content = await request.body()
    state = request.app.state
    cache: ModelCache = state.models
    loaded = cache.ready(reference)
    if loaded is None:
        loaded = await run_in_threadpool(cache.get, reference)
    work = (loaded, content, state.settings.max_instances, state.metrics)
    body = _answer(*work, most=1) if takes_moments(loaded, len(content)) else None
    if body is None:
        body = await run_in_threadpool(_answer, *work)
    return Response(body, media_type="application/json")


def takes_moments(loaded: LoadedModel, n_bytes: int) -> bool:
    """Whether one instance, spelled in so many bytes, is scored sooner than other requests would notice."""
    n_classes = loaded.version.n_classes
    if n_bytes > INLINE_BYTES or n_classes > _INLINE_CLASSES:
        return False
    # a value takes four bytes to spell at least, and reads a row of weights; other models may read all that they have
    read = 8 * (n_bytes // 4) * n_classes if loaded.model.kind in _OF_ROWS else loaded.nbytes
    return read <= _INLINE_READ


def _answer(
    loaded: LoadedModel, content: bytes, max_instances: int, metrics: Metrics, most: int | None = None
) -> bytes | None:
    started = time.perf_counter()
    document = parse_object(content)
    instances = document.get("instances")
    n_instances = len(instances) if isinstance(instances, list) else 0
    if most is not None and n_instances > most:
        return None
    body = orjson.dumps(predict(loaded, document, max_instances))
    metrics.predicted(n_instances, time.perf_counter() - started)
    return body


def _reference(request: Request) -> Reference:
    ref: str = request.path_params["ref"]
    query = request.query_params
    version, alias = query.get("version"), query.get("alias")
    if not _NAME.fullmatch(ref):
        raise InvalidInput("The model's name is not valid.", [Item(NAME_RULE, "/path/ref")])
    if alias is not None and not _NAME.fullmatch(alias):
        raise InvalidInput("The alias is not valid.", [Item(NAME_RULE, "/query/alias")])
    if version is None:
        return ref, None, alias
    if not (version.isascii() and version.isdigit() and 1 <= len(version) <= 9 and int(version) >= 1):
        raise InvalidInput("The version is not valid.", [Item("a number from 1 was expected", "/query/version")])
    return ref, int(version), alias
