"""Routes for those who run the service."""

from fastapi import APIRouter, Request, Response

from app.api.common.problems import responses
from app.api.operation.metrics import MEDIA_TYPE, Metrics
from app.errors import Item, Unavailable
from app.schemas.operation.health import Health, Readiness
from app.services.operation import readiness
from app.version import VERSION

router = APIRouter(tags=["operation"])


@router.get("/healthz", responses=responses())
async def get_health() -> Health:
    """Whether the process answers; needs no key."""
    return Health(version=VERSION)


@router.get("/readyz", responses=responses())
def get_readiness(request: Request) -> Readiness:
    """Whether the database, the queue and the workers are there; needs no key."""
    found = readiness.check(request.app.state.sessions)
    if not found.ready:
        faults = [Item(getattr(found, part), f"/{part}") for part in ("database", "queue", "workers")]
        raise Unavailable("A part of the service is not there.", [fault for fault in faults if fault.detail != "ok"])
    return found


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **responses()},
)
def get_metrics(request: Request) -> Response:
    """Counters for Prometheus; needs no key, so keep it on loopback or behind the proxy."""
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(), media_type=MEDIA_TYPE)
