"""Label Studio's protocol for machine learning backends, a backend a model: ``/label-studio/NAME``.

Label Studio sends the key as the password of HTTP Basic. Answers are pre-annotations of the first Choices or Taxonomy
of the project's labeling configuration.
"""

from dataclasses import dataclass
from typing import Any

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from fastapi import APIRouter, Request, Response

from app.api.parameters import Ref
from app.api.problems import responses
from app.errors import InvalidInput, Item
from app.protocols.asking import (
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    ask,
    loaded_model,
    most_instances,
    object_of,
    reads_texts,
    require_few,
)
from app.services.model_cache import LoadedModel

router = APIRouter(
    prefix="/label-studio/{ref}", tags=["label studio"], dependencies=[VIEWER], route_class=ProtocolRoute
)

_ERRORS = responses(401, 404, 409, 422)
_ASKING = responses(401, 404, 409, 413, 422)
_MOST_CONFIG = 256 << 10


@dataclass(frozen=True)
class _Control:
    """What annotators choose by: its tag, its name, the object it belongs to, and that object's field of a task."""

    tag: str
    name: str
    to_name: str
    field: str


@router.get("", name="label_studio_root", responses=_ERRORS)
@router.get("/health", responses=_ERRORS)
async def label_studio_health(request: Request, ref: Ref) -> Response:
    """The model can be loaded, and now is."""
    loaded = await loaded_model(request, ref)
    return answer_json({"status": "UP", "model_class": loaded.version.solver, "model_dir": ""})


@router.post("/setup", responses=_ASKING)
async def label_studio_setup(request: Request, ref: Ref) -> Response:
    """Check a project's labeling configuration; the answer names the version."""
    return await answered(request, ref, _checked)


@router.post("/predict", responses=_ASKING)
async def label_studio_predict(request: Request, ref: Ref) -> Response:
    """One pre-annotation a task."""
    return await answered(request, ref, _predicted)


@router.post("/webhook", responses=_ASKING)
async def label_studio_webhook(request: Request, ref: Ref) -> Response:
    """Take notice of an event of a project; nothing is learnt from it."""
    return await answered(request, ref, _noticed)


def _checked(_request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document = object_of(content)
    if document.get("schema"):
        _control(document["schema"], "/schema")
    return answer_json({"model_version": _version(loaded)})


def _predicted(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document = object_of(content)
    tasks = document.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(t, dict) and isinstance(t.get("data"), dict) for t in tasks):
        raise InvalidInput("The body must be an object.", [Item("a list of tasks, each with its data", "/tasks")])
    require_few(len(tasks), most_instances(request), "/tasks")
    control = _control(document.get("label_config"), "/label_config")
    if not tasks:
        return answer_json({"results": [], "model_version": _version(loaded)})
    answer = ask(request, loaded, _instances(loaded, control, [task["data"] for task in tasks]))
    results = [_result(loaded, control, prediction) for prediction in answer["predictions"]]
    return answer_json({"results": results, "model_version": _version(loaded)})


def _noticed(_request: Request, loaded: LoadedModel, content: bytes) -> Response:
    object_of(content)
    return answer_json({"status": "ok", "model_version": _version(loaded)})


def _control(config: Any, pointer: str) -> _Control:
    if isinstance(config, str) and len(config) > _MOST_CONFIG:
        raise _fault(f"a labeling configuration of at most {_MOST_CONFIG} characters was expected", pointer)
    try:
        root = ElementTree.fromstring(config) if isinstance(config, str) else None
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        root = None
    if root is None:
        raise _fault("a labeling configuration in XML was expected", pointer)
    fields = {tag.get("name"): tag.get("value", "") for tag in root.iter() if tag.get("value", "").startswith("$")}
    for tag in root.iter():
        name, to_name = tag.get("name"), tag.get("toName")
        if tag.tag in ("Choices", "Taxonomy") and name and to_name in fields:
            return _Control(tag.tag, name, str(to_name), fields[to_name][1:])
    raise _fault("a Choices or Taxonomy whose toName is an object with a value such as $text was expected", pointer)


def _instances(loaded: LoadedModel, control: _Control, tasks: list[dict[str, Any]]) -> list[Any]:
    if not reads_texts(loaded):
        known = set(loaded.features.names() or ())
        return [{"features": {name: value for name, value in data.items() if name in known}} for data in tasks]
    for at, data in enumerate(tasks):
        if type(data.get(control.field)) is not str:
            raise _fault(f"a text {control.field!r:.80} was expected", f"/tasks/{at}/data")
    return [{"text": data[control.field]} for data in tasks]


def _result(loaded: LoadedModel, control: _Control, prediction: dict[str, Any]) -> dict[str, Any]:
    if control.tag == "Choices":
        value = {"choices": [prediction["label"]]}
    else:
        path = prediction["path"]
        value = {"taxonomy": [[prediction["label"]] if path is None else [step["label"] for step in path]]}
    choice = {
        "from_name": control.name,
        "to_name": control.to_name,
        "type": control.tag.lower(),
        "value": value,
    }
    score = prediction.get("probability", prediction["score"])
    return {"result": [choice], "score": score, "model_version": _version(loaded)}


def _version(loaded: LoadedModel) -> str:
    return f"{loaded.version.model}/{loaded.version.version}"


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", [Item(detail, pointer)])
