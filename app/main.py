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
from app.access import pages as access_pages
from app.access import routes as access_routes
from app.access.authentication import KeyRing
from app.access.openid import Provider
from app.access.proxies import Proxies
from app.config import Settings, settings
from app.curation import routes as curation_routes
from app.datasets import pages as datasets_pages
from app.datasets import routes as datasets_routes
from app.datasets import upload_routes
from app.datasets.schemas import MOST_SAMPLE_BYTES
from app.evaluations import routes as evaluations_routes
from app.exports import routes as exports_routes
from app.figures import routes as figures_routes
from app.hierarchies import pages as hierarchies_pages
from app.hierarchies import routes as hierarchies_routes
from app.http import openapi, problems
from app.http.body_limits import BodyLimits
from app.http.hosts import HostCheck, Hosts
from app.http.middleware import RequestMiddleware
from app.http.parameters import ARCHIVES, DATASETS, HIERARCHIES, REVIEWS, require_known
from app.jobs import pages as jobs_pages
from app.jobs import routes as jobs_routes
from app.jobs import tuning_pages
from app.models import pages as models_pages
from app.models import routes as models_routes
from app.operation import pages as operation_pages
from app.operation import readiness
from app.operation import routes as operation_routes
from app.operation.metrics import Metrics
from app.predictions import routes as predictions_routes
from app.predictions.model_cache import ModelCache
from app.predictions.quick_routes import QuickPredictions
from app.protocols.registry import routers
from app.reviews import pages as reviews_pages
from app.reviews import routes as reviews_routes
from app.rules import routes as rules_routes
from app.short_cache import Refreshing
from app.store.db import dispose, sessions
from app.store.files import files
from app.store.privacy import keep_private
from app.version import VERSION
from app.web import assets, reference, routing
from app.webhooks import routes as webhooks_routes

DESCRIPTION = (
    "Train and serve large-margin classifiers with many classes. Every error is a problem document (RFC 9457). Every "
    "response has its request's id in `X-Request-ID`."
)
TAGS = [
    {"name": "datasets", "description": "Upload labelled files and manage their versions."},
    {"name": "hierarchies", "description": "Upload and browse label trees and vocabularies."},
    {"name": "uploads", "description": "Upload large files in pieces, and resume interrupted uploads."},
    {"name": "solvers", "description": "List the training methods and their parameters."},
    {"name": "jobs", "description": "Submit and monitor imports, trainings and other jobs."},
    {
        "name": "reviews",
        "description": "Let people decide rows of which predictions are not sure.",
    },
    {"name": "curation", "description": "Find rows to label next, and labels that are wrong."},
    {"name": "rules", "description": "Retrain models automatically, on a schedule or after feedback."},
    {"name": "webhooks", "description": "Notify other programs of ended jobs, promotions and review queues."},
    {"name": "models", "description": "Manage models, their versions and aliases."},
    {"name": "evaluations", "description": "Evaluate versions on datasets, and compare two versions."},
    {"name": "predictions", "description": "Predict labels for new instances."},
    {"name": "open inference", "description": "The Open Inference Protocol of KServe, Triton and MLServer."},
    {"name": "kserve v1", "description": "Version 1 of KServe's protocol."},
    {"name": "mlflow", "description": "MLflow's scoring protocol, with one server per model."},
    {"name": "annif", "description": "Annif's REST API: projects and suggestions."},
    {"name": "label studio", "description": "Label Studio's machine learning backend, one per model."},
    {"name": "figures", "description": "Charts as SVG and PNG files."},
    {"name": "keys", "description": "Manage API keys, and read the audit log."},
    {"name": "operation", "description": "Health, status, metrics and storage of the service."},
]

_WRITE_SECONDS = 20.0

ROUTERS = (
    predictions_routes.models_router,
    predictions_routes.router,
    curation_routes.router,
    datasets_routes.router,
    upload_routes.router,
    hierarchies_routes.router,
    jobs_routes.solvers_router,
    jobs_routes.router,
    reviews_routes.router,
    rules_routes.router,
    models_routes.router,
    exports_routes.router,
    models_routes.deletions_router,
    evaluations_routes.router,
    rules_routes.feedback_router,
    predictions_routes.codes_router,
    predictions_routes.terms_router,
    predictions_routes.inputs_router,
    predictions_routes.thresholds_router,
    predictions_routes.drift_router,
    predictions_routes.nearest_router,
    figures_routes.router,
    access_routes.router,
    access_routes.sign_in_router,
    access_routes.audit_router,
    access_routes.usage_router,
    operation_routes.storage_router,
    operation_routes.router,
    operation_routes.status_router,
    webhooks_routes.router,
)
PAGES = (
    access_pages.router,
    operation_pages.router,
    datasets_pages.router,
    hierarchies_pages.router,
    jobs_pages.training_router,
    tuning_pages.router,
    jobs_pages.router,
    models_pages.router,
    reviews_pages.router,
    access_pages.keys_router,
    access_pages.audit_router,
    reference.router,
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
    metrics = Metrics(partial(readiness.load, factory), lambda: cache.nbytes, lambda: files().copies_bytes())
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
    app.state.openid = Provider(config) if config.openid_issuer else None
    app.state.proxies = Proxies(config) if config.sign_in_networks else None
    app.openapi = partial(openapi.describe, app)  # type: ignore[method-assign]
    problems.install(app)
    routing.install(app)
    app.router.routes.append(assets.ROUTE)
    parts = [*ROUTERS, *PAGES, *routers(config.protocols)]
    # routes as their modules have made them: a router that is included makes each of them again at its first request
    for route in (route for router in parts for route in router.routes):
        if isinstance(route, APIRoute):
            route.unique_id = route.name
            require_known(route)
        app.router.routes.append(route)
    app.state.routes = [route for route in app.router.routes if isinstance(route, Route)]
    uploads = {DATASETS: config.max_upload_bytes, HIERARCHIES: config.max_hierarchy_bytes}
    uploads[f"{DATASETS}/*/rows"] = config.max_upload_bytes
    uploads[f"{REVIEWS}/*/decisions"] = config.max_upload_bytes
    uploads[f"{DATASETS}/columns"] = MOST_SAMPLE_BYTES
    uploads[ARCHIVES] = config.max_upload_bytes
    app.add_middleware(BodyLimits, max_body_bytes=config.max_body_bytes, uploads=uploads)
    hosts, verbose = Hosts(config.allowed_hosts), config.log_level == "debug"
    app.add_middleware(HostCheck, hosts=hosts, origins=config.allowed_origins)
    app.add_middleware(RequestMiddleware, metrics=metrics, verbose=verbose)
    if not verbose:  # which logs every prediction
        app.middleware_stack = QuickPredictions(app.build_middleware_stack(), app.state, hosts)
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
