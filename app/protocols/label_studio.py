"""Label Studio's protocol for machine learning backends, a backend a model: ``/label-studio/NAME``.

Label Studio sends the key as the password of HTTP Basic. Answers are pre-annotations of the first Choices or Taxonomy
of the project's labeling configuration. Annotations that its webhooks tell of are kept as feedback, of which rules make
the next version.
"""

from dataclasses import dataclass
from typing import Any

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from fastapi import APIRouter, Request, Response

from app.api.common.parameters import Ref
from app.api.common.problems import responses
from app.errors import InvalidInput, Item
from app.protocols.asking import (
    EDITOR,
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    ask,
    loaded_model,
    most_instances,
    object_of,
    reads_texts,
    report_feedback,
    require_few,
)
from app.services.predictions.model_cache import LoadedModel

router = APIRouter(
    prefix="/label-studio/{ref}", tags=["label studio"], dependencies=[VIEWER], route_class=ProtocolRoute
)

_ERRORS = responses(401, 404, 409, 422)
_ASKING = responses(401, 404, 409, 413, 422)
_MOST_CONFIG = 256 << 10
_ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")


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


@router.post("/webhook", dependencies=[EDITOR], responses=_ASKING | responses(403, 507))
async def label_studio_webhook(request: Request, ref: Ref) -> Response:
    """Keep an annotation that was made or changed as feedback; other events of a project are taken notice of."""
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


def _noticed(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document = object_of(content)
    if document.get("action") in _ANNOTATED:
        _annotated(request, loaded, document)
    return answer_json({"status": "ok", "model_version": _version(loaded)})


def _annotated(request: Request, loaded: LoadedModel, document: dict[str, Any]) -> None:
    """Keep what an annotation of one task chooses; one that was skipped, or chooses nothing, says nothing."""
    annotation, task, project = (_object(document, name) for name in ("annotation", "task", "project"))
    control = _control(project.get("label_config"), "/project/label_config")
    labels = _chosen(control, annotation.get("result"))
    if annotation.get("was_cancelled") or not labels:
        return
    data = task.get("data")
    if not isinstance(data, dict):
        raise _fault("the data of the task was expected: let the webhook send its payload", "/task/data")
    (instance,) = _instances(loaded, control, [data])
    id = annotation.get("id")
    answer = f"label-studio:{id}" if type(id) is int else None
    report_feedback(request, loaded, [(instance, labels, answer)], again=True)


def _object(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise _fault("an object was expected: let the webhook send its payload", f"/{name}")
    return found


def _chosen(control: _Control, regions: Any) -> list[Any]:
    """The labels of the control's own region; of a taxonomy the last of each path."""
    kind = control.tag.lower()
    for region in regions if isinstance(regions, list) else []:
        if isinstance(region, dict) and region.get("from_name") == control.name:
            value = region.get("value")
            given = value.get(kind) if isinstance(value, dict) else None
            if not isinstance(given, list) or (kind == "taxonomy" and not all(map(_is_path, given))):
                raise _fault(f"a list of {kind} was expected", "/annotation/result")
            return given if kind == "choices" else [path[-1] for path in given]
    return []


def _is_path(given: Any) -> bool:
    return isinstance(given, list) and bool(given)


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
        columns = loaded.features.columns
        form = "features" if columns is None else "record"
        known = set(
            (loaded.features.names() or ())
            if columns is None
            else (*columns.texts, *columns.numbers, *columns.categories)
        )
        return [{form: {name: value for name, value in data.items() if name in known}} for data in tasks]
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
