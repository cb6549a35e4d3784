"""The route that tells what goes on."""

from fastapi import APIRouter

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.operation.status import Status
from app.services.operation.status import status

router = APIRouter(prefix=f"{V1}/status", tags=["operation"])


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def get_status(session: Db) -> Status:
    """What goes on now: running jobs with their curves, queues, room on disk, and what wants attention."""
    return status(session)
