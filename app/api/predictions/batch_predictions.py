"""The route that gives out the file of a prediction job."""

from fastapi import APIRouter
from starlette.responses import FileResponse

from app.api.access.auth import VIEWER
from app.api.common.parameters import Db, Id
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.services.predictions import batch_predictions

router = APIRouter(prefix=f"{V1}/jobs", tags=["predictions"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/{id}/predictions",
    dependencies=[VIEWER],
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": _BINARY}}, **responses(401, 404, 409, 422)},
)
def get_predictions(session: Db, id: Id) -> FileResponse:
    """The predictions that a job has made, as Parquet, CSV or JSON lines, as the job was asked for."""
    found = batch_predictions.of_job(session, id)
    return FileResponse(found.path, media_type=found.media_type, filename=found.name)
