"""The route for the output codes of model versions."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from app.api.access.auth import VIEWER
from app.api.common.parameters import Number, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.predictions.codes import OutputCode
from app.services.predictions import codes

router = APIRouter(prefix=f"{V1}/models", tags=["models"])

_First = Annotated[int, Query(ge=0, lt=2**31)]
_Shown = Annotated[int, Query(ge=1, le=200)]


@router.get("/{ref}/versions/{number}/code", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_code(
    request: Request,
    ref: Ref,
    number: Number,
    first_class: _First = 0,
    n_classes: _Shown = 100,
    first_column: _First = 0,
    n_columns: _Shown = 100,
) -> OutputCode:
    """The output code of a version, or a window of it, with the distances between its rows and between its columns.

    Versions of `output_code` have one, and those of `continuous_code` over machines; others get 404.
    """
    code = codes.of_version(request.app.state.models, request.state.key.workspace, ref, number)
    return codes.window(code, first_class, n_classes, first_column, n_columns)
