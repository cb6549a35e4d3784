"""The web application, which :mod:`app.server` serves."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from app import logs, tracing
from app.api import evaluations, exports, hierarchies, pictures
from app.api.access import audit, keys, usage
from app.api.access.auth import KeyRing
from app.api.common import openapi, problems
from app.api.common.known_queries import require_known
from app.api.common.paths import ARCHIVES, DATASETS, HIERARCHIES
from app.api.datasets import datasets, partial_uploads
from app.api.jobs import jobs, solvers
from app.api.middleware.browsers import HostCheck, Hosts
from app.api.middleware.limits import BodyLimits
from app.api.middleware.request_middleware import RequestMiddleware
from app.api.models import deletions, models
from app.api.operation import health, status, storage
from app.api.operation.metrics import Metrics
from app.api.predictions import batch_predictions, codes, drift, nearest, predictions, terms, thresholds
from app.api.predictions.quick_predictions import QuickPredictions
from app.api.rules import feedback, rules
from app.config import Settings, settings
from app.protocols.spoken import routers
from app.services.common.remembered import Refreshing
from app.services.operation import readiness
from app.services.predictions.drift import recent as drift_of_models
from app.services.predictions.model_cache import ModelCache
from app.store.db import dispose, sessions
from app.store.privacy import keep_private
from app.version import VERSION
from app.web import assets, reference, sign_in
from app.web import audit as audit_pages
from app.web import datasets as dataset_pages
from app.web import hierarchies as hierarchy_pages
from app.web import jobs as job_pages
from app.web import keys as key_pages
from app.web import models as model_pages
from app.web import overview as overview_page
from app.web import training as training_pages
from app.web import tuning as tuning_pages

DESCRIPTION = (
    "Trains and serves large-margin classifiers with many classes. Every error is a problem document (RFC 9457), and "
    "every answer carries its request's id in `X-Request-ID`."
)
TAGS = [
    {"name": "datasets", "description": "Files with labels, uploaded once."},
    {"name": "hierarchies", "description": "Label trees, uploaded once."},
    {"name": "uploads", "description": "Files that come in pieces, and go on after a connection broke."},
    {"name": "solvers", "description": "The methods, and the parameters that they take."},
    {"name": "jobs", "description": "Imports and training, as they go on."},
    {"name": "rules", "description": "What trains models again by itself: by schedule, or by feedback."},
    {"name": "models", "description": "What training made: versions, and the aliases that move between them."},
    {"name": "evaluations", "description": "How well versions do on datasets, and which of two does better."},
    {"name": "predictions", "description": "Labels for new instances."},
    {"name": "open inference", "description": "The Open Inference Protocol: KServe, Triton, MLServer."},
    {"name": "kserve v1", "description": "Version 1 of KServe's protocol."},
    {"name": "mlflow", "description": "MLflow's scoring server, one a model."},
    {"name": "annif", "description": "Annif's projects and suggestions."},
    {"name": "label studio", "description": "Label Studio's machine learning backend, one a model."},
    {"name": "figures", "description": "Pictures of what was trained."},
    {"name": "keys", "description": "Who may use the service, and who changed what."},
    {"name": "operation", "description": "Signs of life."},
]

_WRITE_SECONDS = 20.0

PARTS = (
    batch_predictions,
    datasets,
    partial_uploads,
    hierarchies,
    solvers,
    jobs,
    rules,
    models,
    exports,
    deletions,
    evaluations,
    feedback,
    codes,
    terms,
    thresholds,
    drift,
    nearest,
    pictures,
    keys,
    audit,
    usage,
    storage,
    health,
    status,
)
PAGES = (
    sign_in,
    overview_page,
    dataset_pages,
    hierarchy_pages,
    training_pages,
    tuning_pages,
    job_pages,
    model_pages,
    key_pages,
    audit_pages,
    reference,
)


def create_app(config: Settings | None = None) -> FastAPI:
    """The application over the process's database and files.

    Parameters
    ----------
    config : Settings, optional
        Limits and the like; by default the process's own settings, which alone say where data is kept.
    """
    config = config or settings()
    logs.configure(config.log_level)
    factory = sessions()
    cache = ModelCache(factory, config.model_cache_bytes)
    recent = partial(drift_of_models, factory, cache)
    metrics = Metrics(partial(readiness.load, factory), lambda: cache.nbytes, recent)
    app = FastAPI(
        title="Polymargin",
        version=VERSION,
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=_lifespan,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.settings = config
    app.state.sessions = factory
    app.state.models = cache
    app.state.metrics = metrics
    app.state.keyring = KeyRing(factory, config.failed_keys_per_minute, config.requests_per_second)
    app.openapi = partial(openapi.describe, app)  # type: ignore[method-assign]
    problems.install(app)
    predicting = predictions.install(app)
    require_known(predicting)
    app.router.routes.append(assets.ROUTE)
    parts = [*(part.router for part in (*PARTS, *PAGES)), *routers(config.protocols)]
    # routes as their modules have made them: a router that is included makes each of its own anew, at its first request
    for route in (route for router in parts for route in router.routes):
        if isinstance(route, APIRoute):
            route.unique_id = route.name
            require_known(route)
        app.router.routes.append(route)
    app.state.routes = [route for route in app.router.routes if isinstance(route, Route)]
    uploads = {DATASETS: config.max_upload_bytes, HIERARCHIES: config.max_hierarchy_bytes}
    uploads[f"{DATASETS}/*/rows"] = config.max_upload_bytes
    uploads[ARCHIVES] = config.max_upload_bytes
    app.add_middleware(BodyLimits, max_body_bytes=config.max_body_bytes, uploads=uploads)
    hosts, verbose = Hosts(config.allowed_hosts), config.log_level == "debug"
    app.add_middleware(HostCheck, hosts=hosts, origins=config.allowed_origins)
    app.add_middleware(RequestMiddleware, metrics=metrics, verbose=verbose)
    if not verbose:  # which logs every prediction
        app.middleware_stack = QuickPredictions(app.build_middleware_stack(), app.state, hosts, predicting)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    keep_private(settings().home)
    tracing.configure(settings().trace_endpoint, "polymargin-api")
    keyring: KeyRing = app.state.keyring
    cache: ModelCache = app.state.models
    writing = asyncio.create_task(_write_now_and_then(keyring, cache))
    refreshing = Refreshing([keyring.known, keyring.signed_in, cache.resolved])
    refreshing.start()
    yield
    refreshing.stop()
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    await run_in_threadpool(keyring.write_uses)
    await run_in_threadpool(cache.counts.write)
    await run_in_threadpool(tracing.end)
    dispose()


async def _write_now_and_then(keyring: KeyRing, cache: ModelCache) -> None:
    while True:
        await asyncio.sleep(_WRITE_SECONDS)
        await run_in_threadpool(keyring.write_uses)
        await run_in_threadpool(cache.counts.write)


def main() -> None:
    """Print the API's description, as docs/openapi.json keeps it."""
    print(json.dumps(create_app().openapi(), indent=1, ensure_ascii=False, sort_keys=True))


if __name__ == "__main__":
    main()
