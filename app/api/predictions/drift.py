"""The route for the drift of model versions."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db, Number, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.predictions.drift import Drift
from app.services.predictions.answer_counts import KEPT_DAYS
from app.services.predictions.drift import of_version
from app.services.predictions.model_cache import ModelCache

router = APIRouter(prefix=f"{V1}/models", tags=["models"])

Days = Annotated[int, Query(ge=1, le=KEPT_DAYS, description="Days, by UTC, up to today.")]


@router.get("/{ref}/versions/{number}/drift", dependencies=[VIEWER], responses=responses(401, 404, 409, 422, 503))
def get_drift(request: Request, session: Db, ref: Ref, number: Number, days: Days = 7) -> Drift:
    """How the answers of the last days differ from those to rows held out from the version's training."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, number, None))
    return of_version(session, cache.counts, loaded, days)
