"""Routes for pictures; each names its figure in the path, and takes what is to be drawn as a query."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.auth import VIEWER
from app.api.paths import V1
from app.api.problems import responses
from app.schemas.names import NAME_PATTERN
from app.services import codes, figures
from app.services.figures import Draw, Format

router = APIRouter(prefix=f"{V1}/figures", tags=["figures"])

_Format = Annotated[Format, Query(description="Of the picture.")]
_Model = Annotated[str, Query(pattern=NAME_PATTERN, description="Id or name.")]
_Version = Annotated[int, Query(ge=1, lt=2**31)]
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for kind in figures.MEDIA_TYPES.values()}}
}


@router.get(
    "/code",
    dependencies=[VIEWER],
    response_class=Response,
    responses={**_PICTURE, **responses(401, 404, 409, 422, 503)},
)
def draw_code(request: Request, model: _Model, version: _Version, format: _Format = "svg") -> Response:
    """The output code of a model version as a heat map, with the distances between its rows and its columns."""
    code = codes.of_version(request.app.state.models, request.state.key.workspace, model, version)
    return _picture(figures.code_heat_map(code), format)


def _picture(draw: Draw, format: Format) -> Response:
    return Response(figures.render(draw, format), media_type=figures.MEDIA_TYPES[format])
