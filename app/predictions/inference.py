"""The one prediction behind all protocols: find the model, score its instances, count the answer."""

import time
from typing import Any

import orjson
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State

from app.access.keys import Principal
from app.http.bodies import INLINE_BYTES, parse_object
from app.operation.metrics import Metrics
from app.predictions.model_cache import LoadedModel, ModelCache, Reference
from app.predictions.service import predict

_INLINE_CLASSES = 20_000
_INLINE_READ = 64 << 20
_OF_ROWS = {"linear", "sparse_linear", "sharded_linear", "linear_code", "taxonomy"}


async def loaded_model(
    request: Request,
    ref: str,
    version: int | None = None,
    alias: str | None = None,
    rows_suffice: bool = False,
) -> LoadedModel:
    """The model that the request's workspace calls so; raises NotFound, Conflict, Unavailable, InvalidInput.

    With ``rows_suffice`` it may be one that still arrives; only :func:`app.predictions.service.predict` takes these.
    """
    cache: ModelCache = request.app.state.models
    principal: Principal = request.state.key
    reference: Reference = (principal.workspace, ref, version, alias)
    loaded = cache.ready(reference)
    return await run_in_threadpool(cache.get, reference, rows_suffice) if loaded is None else loaded


def infer(state: State, loaded: LoadedModel, document: dict[str, Any]) -> dict[str, Any]:
    """The counted answer to one request of :func:`app.predictions.service.predict`; its errors, too."""
    metrics: Metrics = state.metrics
    started = time.perf_counter()
    answer = predict(loaded, document, state.settings.max_instances)
    metrics.predicted(len(answer["predictions"]), time.perf_counter() - started)
    return answer


async def answer(state: State, loaded: LoadedModel, content: bytes, id: str) -> bytes:
    """The body of the answer to a ``PredictRequest``; a small one is answered on the event loop, others in a thread.

    Raises Malformed, and InvalidInput as :func:`app.predictions.service.predict` does.
    """
    if not takes_moments(loaded, len(content)):
        return await run_in_threadpool(_body, state, loaded, content, id)
    document = parse_object(content)
    instances = document.get("instances")
    if isinstance(instances, list) and len(instances) > 1:
        return await run_in_threadpool(_body, state, loaded, document, id)
    return _body(state, loaded, document, id)


def _body(state: State, loaded: LoadedModel, given: bytes | dict[str, Any], id: str) -> bytes:
    found = infer(state, loaded, parse_object(given) if isinstance(given, bytes) else given)
    found["id"] = id
    return orjson.dumps(found)


def most_instances(request: Request) -> int:
    """How many instances a request may have."""
    most: int = request.app.state.settings.max_instances
    return most


def takes_moments(loaded: LoadedModel, n_bytes: int) -> bool:
    """Whether one instance, spelled in so many bytes, is scored sooner than other requests would notice."""
    n_classes = loaded.version.n_classes
    if n_bytes > INLINE_BYTES or n_classes > _INLINE_CLASSES or loaded.on_disk:
        return False
    # a value takes four bytes to spell at least, and reads a row of weights; other models may read all that they have
    read = 8 * (n_bytes // 4) * n_classes if loaded.model.kind in _OF_ROWS else loaded.nbytes
    return read <= _INLINE_READ
