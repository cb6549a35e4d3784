"""Version 1 of KServe's protocol, which is TensorFlow Serving's: ``/v1/models/NAME:predict``."""

from typing import Any

from fastapi import APIRouter, Request, Response

from app.errors import InvalidInput, Item
from app.http.parameters import Db, Ref
from app.http.problems import responses
from app.models import service as models
from app.predictions.inference import infer, loaded_model
from app.predictions.model_cache import LoadedModel
from app.protocols.adapter import (
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    object_of,
    reads_texts,
)

router = APIRouter(prefix="/v1/models", tags=["kserve v1"], dependencies=[VIEWER], route_class=ProtocolRoute)


@router.get("", responses=responses(401))
def model_names(session: Db) -> dict[str, Any]:
    """The names of the newest thousand models."""
    return {"models": [model.name for model in models.page(session, 1000).items]}


@router.get("/{ref}", responses=responses(401, 404, 409, 422))
async def model_status(request: Request, ref: Ref) -> Response:
    """The model's latest version can be loaded, and now is."""
    loaded = await loaded_model(request, ref)
    return answer_json({"name": loaded.version.model, "ready": True})


@router.post("/{ref}:predict", responses=responses(401, 404, 409, 413, 422))
async def predict_instances(request: Request, ref: Ref) -> Response:
    """One prediction an instance: `label`, `score`, and the `top_k` best in `top`.

    An instance is a text or a list of numbers, or an object as the other predictions take it.
    """
    return await answered(request, ref, _predicted)


def _predicted(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document = object_of(content)
    instances = document.pop("instances", None)
    document.pop("signature_name", None)
    if not isinstance(instances, list):
        raise InvalidInput("The body is not valid.", [Item("a list of instances is needed", "/instances")])
    if reads_texts(loaded):
        instances = [{"text": one} if type(one) is str else one for one in instances]
    answer = infer(request.app.state, loaded, {"instances": instances, **document})
    return answer_json({"predictions": answer["predictions"], "model_version": str(answer["version"])})
