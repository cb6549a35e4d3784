"""The route that predicts; what is known to be good already is answered before it, by ``quick_predictions``."""

import time
from typing import Annotated

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from app.api.access.auth import VIEWER
from app.api.common.bodies import parse_object, request_schema, require_json
from app.api.common.parameters import Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.api.operation.metrics import Metrics
from app.schemas.common.names import NAME_PATTERN
from app.schemas.predictions.predictions import PredictRequest, PredictResponse
from app.services.access.keys import Principal
from app.services.predictions.model_cache import LoadedModel, ModelCache
from app.services.predictions.predictions import MAX_LABELS, predict


async def predict_labels(
    request: Request,
    ref: Ref,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, if neither is given.")] = None,
    alias: Annotated[str | None, Query(pattern=NAME_PATTERN, description="In place of a version.")] = None,
) -> Response:
    """Predict the label of every instance, with the scores of the `top_k` best labels."""
    require_json(request)
    content = await request.body()
    state = request.app.state
    principal: Principal = request.state.key
    cache: ModelCache = state.models
    loaded = await run_in_threadpool(cache.get, (principal.workspace, ref, version, alias))
    given = (loaded, content, state.settings.max_instances, state.metrics, request.state.request_id)
    return Response(await run_in_threadpool(answer, *given), media_type="application/json")


def install(app: FastAPI) -> APIRoute:
    """Add the route, and return it."""
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


def answer(loaded: LoadedModel, content: bytes, max_instances: int, metrics: Metrics, id: str) -> bytes:
    """The answer's body; raises Malformed and InvalidInput."""
    body = answer_few(loaded, content, max_instances, metrics, id, MAX_LABELS)
    assert body is not None
    return body


def answer_few(
    loaded: LoadedModel, content: bytes, max_instances: int, metrics: Metrics, id: str, most: int
) -> bytes | None:
    """As :func:`answer`; None where there are more than ``most`` instances."""
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
