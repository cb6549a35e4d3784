"""Routes of predictions: answers, files of answers, codes, drift, nearest rows, terms, thresholds."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import FileResponse

from app.access.authentication import VIEWER
from app.http.bodies import Body, request_schema, require_json
from app.http.parameters import V1, Db, Id, Number, Ref
from app.http.problems import responses
from app.predictions import batch_predictions, inspection
from app.predictions.answer_counts import KEPT_DAYS
from app.predictions.drift import of_version
from app.predictions.inference import answer, loaded_model, most_instances
from app.predictions.inspection import read_columns
from app.predictions.inspection_schemas import (
    ClassTerms,
    Drift,
    NearestRequest,
    NearestRows,
    OutputCode,
    ThresholdCurve,
)
from app.predictions.model_cache import ModelCache
from app.predictions.nearest import nearest
from app.predictions.schemas import ModelInputs, PredictRequest, PredictResponse
from app.schemas import NAME_PATTERN

models_router = APIRouter(prefix=f"{V1}/models", tags=["predictions"])


@models_router.post(
    "/{ref}/predict",
    dependencies=[VIEWER],
    response_model=PredictResponse,
    openapi_extra=request_schema(PredictRequest),
    responses=responses(409, 413, 415),
)
async def predict_labels(
    request: Request,
    ref: Ref,
    version: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Version number. Default without an alias: the latest.")
    ] = None,
    alias: Annotated[str | None, Query(pattern=NAME_PATTERN, description="Alias instead of a version.")] = None,
) -> Response:
    """Predict the label of every instance, with the scores of the `top_k` best labels."""
    require_json(request)
    content = await request.body()
    loaded = await loaded_model(request, ref, version, alias, rows_suffice=True)
    body = await answer(request.app.state, loaded, content, request.state.request_id)
    return Response(body, media_type="application/json")


router = APIRouter(prefix=f"{V1}/jobs", tags=["predictions"])

_FileName = Annotated[
    str | None,
    Query(
        max_length=100,
        pattern=r"^[^/\\\x00-\x1f]+$",
        description="What the file is called before the model and the version, such as the name of the input file. By "
        "default, the name of the dataset, as long as it is there.",
    ),
]
_BINARY = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/{id}/predictions",
    dependencies=[VIEWER],
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": _BINARY}}, **responses(409)},
)
def get_predictions(session: Db, id: Id, name: _FileName = None) -> FileResponse:
    """Download the predictions of a job as Parquet, CSV, JSON lines or a workbook, in the format of the request."""
    found = batch_predictions.of_job(session, id, name)
    return FileResponse(found.path, media_type=found.media_type, filename=found.name)


codes_router = APIRouter(prefix=f"{V1}/models", tags=["models"])

_First = Annotated[int, Query(ge=0, lt=2**31)]
_Shown = Annotated[int, Query(ge=1, le=200)]


@codes_router.get("/{ref}/versions/{number}/code", dependencies=[VIEWER], responses=responses(409))
def get_code(
    request: Request,
    ref: Ref,
    number: Number,
    first_class: _First = 0,
    n_classes: _Shown = 100,
    first_column: _First = 0,
    n_columns: _Shown = 100,
) -> OutputCode:
    """Get the output code of a version, or a window of it, with the distances between its rows and between its columns.

    Versions of `output_code`, and of `continuous_code` over machines, have a code; other versions get 404.
    """
    code = inspection.code_of(request.app.state.models, request.state.key.workspace, ref, number)
    return inspection.code_window(code, first_class, n_classes, first_column, n_columns)


drift_router = APIRouter(prefix=f"{V1}/models", tags=["models"])

Days = Annotated[int, Query(ge=1, le=KEPT_DAYS, description="Number of days up to today, in UTC.")]


@drift_router.get("/{ref}/versions/{number}/drift", dependencies=[VIEWER], responses=responses(409))
def get_drift(request: Request, session: Db, ref: Ref, number: Number, days: Days = 7) -> Drift:
    """Compare the predictions of the last days with those on held-out rows."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, number, None))
    return of_version(session, cache.counts, loaded, days)


nearest_router = APIRouter(prefix=f"{V1}/models", tags=["predictions"])


@nearest_router.post("/{ref}/nearest", dependencies=[VIEWER], responses=responses(409))
def find_nearest_rows(request: Request, session: Db, ref: Ref, body: Body[NearestRequest]) -> NearestRows:
    """Find the training rows most similar to an instance, with the predicted label or another."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, body.version, None))
    return nearest(session, loaded, body)


terms_router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@terms_router.get("/{ref}/versions/{number}/terms", dependencies=[VIEWER], responses=responses(409))
def get_class_terms(
    request: Request,
    ref: Ref,
    number: Number,
    label: Annotated[str, Query(min_length=1, max_length=1000, description="Class label.")],
    limit: Annotated[
        int, Query(ge=1, le=inspection.MAX_TERMS, description="Number of features for and against the class.")
    ] = 20,
) -> ClassTerms:
    """List the features with the largest weights for and against a class of a linear model."""
    return inspection.class_terms(request.app.state.models, request.state.key.workspace, ref, number, label, limit)


inputs_router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@inputs_router.get("/{ref}/inputs", dependencies=[VIEWER], responses=responses(409))
def get_inputs(
    request: Request,
    session: Db,
    ref: Ref,
    version: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Version number. Default without an alias: the latest.")
    ] = None,
    alias: Annotated[str | None, Query(pattern=NAME_PATTERN, description="Alias instead of a version.")] = None,
) -> ModelInputs:
    """Get the columns of a table that a version reads."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, version, alias))
    return read_columns(session, loaded, most_instances(request))


thresholds_router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@thresholds_router.get("/{ref}/versions/{number}/thresholds", dependencies=[VIEWER], responses=responses(409))
def get_thresholds(request: Request, ref: Ref, number: Number) -> ThresholdCurve:
    """Get precision against coverage on held-out rows by threshold, for versions with probabilities.

    Versions trained by `auto` have probabilities; versions without them get 404. For sets of labels, each label of a
    set is an answer, and `recall` is the share of the true labels among the answers.
    """
    return inspection.threshold_curve(request.app.state.models, request.state.key.workspace, ref, number)
