"""The route that tells what the key's workspace has, and may have."""

from fastapi import APIRouter, Request

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.access.usage import Usage
from app.services.access import quotas

router = APIRouter(prefix=f"{V1}/usage", tags=["keys"], dependencies=[VIEWER])


@router.get("", responses=responses(401, 422))
def get_usage(session: Db, request: Request) -> Usage:
    """What the key's workspace has of jobs and bytes, and what it may have."""
    return quotas.usage(session, request.app.state.settings.requests_per_second)
