"""Routes of health, status and storage."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State

from app.access.authentication import ADMIN, VIEWER, authorize
from app.errors import Item, Unavailable
from app.http.connections import DRAINING
from app.http.parameters import V1, Db, Everything
from app.http.problems import responses
from app.models.schemas import Storage
from app.operation import readiness, sweep
from app.operation.metrics import MEDIA_TYPE, Metrics
from app.operation.schemas import Health, Readiness, Status
from app.operation.status import status
from app.predictions import drift
from app.store.files import files
from app.version import VERSION

router = APIRouter(tags=["operation"])


@router.get("/healthz")
async def get_health(request: Request) -> Health:
    """Check that the process answers and has not been asked to end; requires no key."""
    _refuse_when_draining(request)
    return Health(version=VERSION)


@router.get("/readyz")
def get_readiness(request: Request) -> Readiness:
    """Check that database, queue and workers are ready; requires no key."""
    _refuse_when_draining(request)
    found = readiness.check(request.app.state.sessions)
    if not found.ready:
        faults = [Item(getattr(found, part), f"/{part}") for part in ("database", "queue", "workers")]
        raise Unavailable("A part of the service is unavailable.", [fault for fault in faults if fault.detail != "ok"])
    return found


def _refuse_when_draining(request: Request) -> None:
    if DRAINING in request.scope.get("state", ()):
        raise Unavailable("This process is ending: send requests to another one.")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **responses(401)},
)
async def get_metrics(request: Request) -> Response:
    """Get metrics for Prometheus; with a key also metrics of the versions in its workspace."""
    workspace = None
    if request.headers.get("authorization"):
        workspace = (await authorize(request, "viewer")).workspace
    content = await run_in_threadpool(_metrics, request.app.state, workspace)
    return Response(content, media_type=MEDIA_TYPE)


def _metrics(state: State, workspace: str | None) -> bytes:
    """The counters; those of versions for a workspace, and for everybody where the settings say so."""
    metrics: Metrics = state.metrics
    everything: bool = state.settings.open_metrics
    if workspace is None and not everything:
        return metrics.text()
    # as everywhere, keys of the default workspace, which is the installation's own, see no models of the others
    found = drift.recent(state.sessions, state.models)
    return metrics.text(each for each in found if everything or each.workspace == workspace)


status_router = APIRouter(prefix=f"{V1}/status", tags=["operation"])


@status_router.get("", dependencies=[VIEWER])
def get_status(session: Db) -> Status:
    """Get the current status: running jobs with curves, queues, free disk space and problems."""
    return status(session)


storage_router = APIRouter(prefix=f"{V1}/storage", tags=["operation"], dependencies=[ADMIN])


@storage_router.get("")
def get_storage(session: Everything) -> Storage:
    """List what the next collection removes: deleted versions and unreferenced files."""
    return sweep.report(session, files())


@storage_router.post("/collect")
def collect_storage(
    session: Everything,
    deleted: Annotated[bool, Query(description="Also remove deleted versions that could still be restored.")] = False,
) -> Storage:
    """Remove now what `GET /storage` lists; workers do so every ten minutes."""
    return sweep.collect(session, files(), deleted)
