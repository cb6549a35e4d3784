"""The route for training rows that are like an instance."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.api.access.auth import VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.predictions.nearest import NearestRequest, NearestRows
from app.services.predictions.model_cache import ModelCache
from app.services.predictions.nearest import nearest

router = APIRouter(prefix=f"{V1}/models", tags=["predictions"])

_body = JsonBody(NearestRequest)


@router.post(
    "/{ref}/nearest",
    dependencies=[VIEWER],
    openapi_extra=_body.schema,
    responses=responses(400, 401, 404, 409, 413, 415, 422, 503),
)
def find_nearest_rows(
    request: Request, session: Db, ref: Ref, body: Annotated[NearestRequest, Depends(_body)]
) -> NearestRows:
    """The training rows of the predicted label, or of another, that are the most like an instance."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, body.version, None))
    return nearest(session, loaded, body)
