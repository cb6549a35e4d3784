"""MLflow's scoring protocol, a server a model: ``/mlflow/NAME/invocations``, ``/ping`` and ``/version``.

Clients that know no path ask at the root, for the model that POLYMARGIN_MLFLOW_MODEL names.
"""

from typing import Any

from fastapi import APIRouter, Request, Response

from app.errors import InvalidInput, Item, NotFound, UnsupportedFormat
from app.http.parameters import Ref
from app.http.problems import responses
from app.operation import readiness
from app.predictions.inference import infer, loaded_model, most_instances
from app.predictions.model_cache import LoadedModel
from app.protocols.adapter import (
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    object_of,
)
from app.protocols.frames import from_csv, from_document
from app.version import VERSION

router = APIRouter(tags=["mlflow"], dependencies=[VIEWER], route_class=ProtocolRoute)
probes = APIRouter(tags=["mlflow"], route_class=ProtocolRoute)

# as scikit-learn warns of a data frame where a model was trained without names
_UNREAD = '299 - "the version does not know names of columns: they are read by position"'
_ERRORS = responses(401, 404, 409, 422)
_ASKING = responses(401, 404, 409, 413, 415, 422)
_PLAIN: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/mlflow/{ref}/ping", responses=_ERRORS)
@router.get("/mlflow/{ref}/health", name="mlflow_health", responses=_ERRORS)
async def mlflow_ping(request: Request, ref: Ref) -> Response:
    """The model can be loaded, and now is."""
    await loaded_model(request, ref)
    return Response("\n", media_type="application/json")


@router.get("/mlflow/{ref}/version", response_class=Response, responses=_ERRORS | _PLAIN)
async def mlflow_version(request: Request, ref: Ref) -> Response:
    """The version of this service, as plain text."""
    await loaded_model(request, ref)
    return Response(VERSION, media_type="text/plain")


@router.post("/mlflow/{ref}/invocations", responses=_ASKING)
async def mlflow_invocations(request: Request, ref: Ref) -> Response:
    """The label, or set of labels, of every row of a data frame; with `{"params": {"top_k": 3}}` whole predictions."""
    return await answered(request, ref, _predicted)


@probes.get("/ping", responses=responses(404))
def default_ping(request: Request) -> Response:
    """Predictions are answered, as the database is there; a probe, which needs no key and loads no model."""
    _default(request)
    is_ready = readiness.check(request.app.state.sessions).database == "ok"
    return Response("\n", 200 if is_ready else 503, media_type="application/json")


router.routes.extend(probes.routes)  # as they are: a router that is included would ask for the key


@router.get("/version", response_class=Response, responses=_ERRORS | _PLAIN)
async def default_version(request: Request) -> Response:
    """The version of this service, as plain text."""
    return await mlflow_version(request, _default(request))


@router.post("/invocations", responses=_ASKING)
async def default_invocations(request: Request) -> Response:
    """As the same below a model, for the one that POLYMARGIN_MLFLOW_MODEL names."""
    return await answered(request, _default(request), _predicted)


def _default(request: Request) -> str:
    name: str = request.app.state.settings.mlflow_model
    if not name:
        raise NotFound("POLYMARGIN_MLFLOW_MODEL is not set; use /mlflow/NAME/invocations")
    return name


def _predicted(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    options: Any = {}
    if media_type == "text/csv":
        instances, is_unread = from_csv(loaded, content, most_instances(request))
    elif media_type == "application/json":
        document = object_of(content)
        options = document.get("params") or {}
        if not isinstance(options, dict) or "instances" in options:
            raise InvalidInput("The body's params are not valid.", [Item("an object of options", "/params")])
        instances, is_unread = from_document(loaded, document, most_instances(request))
    else:
        raise UnsupportedFormat("The Content-Type must be application/json or text/csv.")
    answer = infer(request.app.state, loaded, {"instances": instances, **options})
    if options:
        found = answer["predictions"]
    elif answer["set"]:
        found = [[label["label"] for label in prediction["labels"]] for prediction in answer["predictions"]]
    else:
        found = [prediction["labels"][0]["label"] for prediction in answer["predictions"]]
    response = answer_json({"predictions": found})
    if is_unread:
        response.headers["Warning"] = _UNREAD
    return response
