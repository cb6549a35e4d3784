"""Label Studio's protocol for machine learning backends, a backend a model: ``/label-studio/NAME``.

Label Studio sends the key as the password of HTTP Basic. Answers are pre-annotations of the first Choices or Taxonomy
of the project's labeling configuration. Annotations that its webhooks report are kept as feedback, of which rules make
the next version.
"""

from dataclasses import dataclass
from typing import Any

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from fastapi import APIRouter, Request, Response

from app.errors import InvalidInput, Item, unfit
from app.http.parameters import Ref
from app.http.problems import responses
from app.predictions.inference import infer, loaded_model, most_instances
from app.predictions.model_cache import LoadedModel
from app.protocols.adapter import (
    CLERK,
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    lists_of,
    object_of,
    reads_texts,
    report_feedback,
    require_few,
    share_of,
)
from app.protocols.choices import Choice, ChosenLabels, from_elements, from_task

router = APIRouter(
    prefix="/label-studio/{ref}", tags=["label studio"], dependencies=[VIEWER], route_class=ProtocolRoute
)

_ERRORS = responses(401, 404, 409, 422)
_ASKING = responses(401, 404, 409, 413, 422)
_MOST_CONFIG = 256 << 10
_ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")


@dataclass(frozen=True)
class _Control:
    """What annotators choose by: its tag, its name, the object it belongs to, that object's field, and the choices."""

    tag: str
    name: str
    to_name: str
    field: str
    choices: tuple[Choice, ...] = ()
    choices_field: str | None = None
    is_single: bool = False

    def offered(self, data: Any) -> tuple[Choice, ...]:
        """The choices that the configuration or the task lists; none where they are kept elsewhere."""
        given = data.get(self.choices_field) if self.choices_field and isinstance(data, dict) else None
        return (*self.choices, *from_task(given))


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


@router.post("/webhook", dependencies=[CLERK], responses=_ASKING | responses(403, 507))
async def label_studio_webhook(request: Request, ref: Ref) -> Response:
    """Keep a created or changed annotation as feedback; acknowledge other events without effect."""
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
        raise InvalidInput("The body is not valid.", [Item("a list of tasks, each with its data", "/tasks")])
    require_few(len(tasks), most_instances(request), "/tasks")
    control = _control(document.get("label_config"), "/label_config")
    if not tasks:
        return answer_json({"results": [], "model_version": _version(loaded)})
    instances = _instances(loaded, control, [task["data"] for task in tasks])
    answer = infer(request.app.state, loaded, {"instances": instances})
    known: dict[tuple[Choice, ...], ChosenLabels] = {}
    results = []
    for task, prediction in zip(tasks, answer["predictions"], strict=True):
        offered = control.offered(task["data"])
        if offered and offered not in known:
            known[offered] = ChosenLabels(loaded, offered)
        results.append(_result(loaded, control, known.get(offered), prediction))
    return answer_json({"results": results, "model_version": _version(loaded)})


def _noticed(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document = object_of(content)
    if document.get("action") in _ANNOTATED:
        _annotated(request, loaded, document)
    return answer_json({"status": "ok", "model_version": _version(loaded)})


def _annotated(request: Request, loaded: LoadedModel, document: dict[str, Any]) -> None:
    """Keep what an annotation of one task chooses; one that was skipped says nothing.

    One that chooses nothing is the empty set; of a model of one label it says nothing.
    """
    annotation, task, project = (_object(document, name) for name in ("annotation", "task", "project"))
    control = _control(project.get("label_config"), "/project/label_config")
    data = task.get("data")
    regions = annotation.get("result")
    labels = _chosen(loaded, control, regions, data)
    says_something = bool(labels) or (loaded.model.names_sets and isinstance(regions, list))
    if annotation.get("was_cancelled") or not says_something:
        return
    if not isinstance(data, dict):
        raise unfit("expected the data of the task: configure the webhook to send its payload", "/task/data")
    (instance,) = _instances(loaded, control, [data])
    id = annotation.get("id")
    answer = f"label-studio:{id}" if type(id) is int else None
    report_feedback(request, loaded, [(instance, labels, answer)], again=True)


def _object(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise unfit("expected an object: configure the webhook to send its payload", f"/{name}")
    return found


def _chosen(loaded: LoadedModel, control: _Control, regions: Any, data: Any) -> list[Any]:
    """The labels of the control's own region; a choice that maps to no label of the model is a new label.

    A new label has no place in a hierarchy, so models with one refuse choices below another choice that map to none.
    """
    kind = control.tag.lower()
    for region in regions if isinstance(regions, list) else []:
        if isinstance(region, dict) and region.get("from_name") == control.name:
            value = region.get("value")
            given = value.get(kind) if isinstance(value, dict) else None
            if not isinstance(given, list) or (kind == "taxonomy" and not all(map(_is_path, given))):
                raise unfit(f"expected a list of {kind}", "/annotation/result")
            paths = [tuple(one) if isinstance(one, list) else (one,) for one in given]
            labels = ChosenLabels(loaded, _as_choices(paths)).label_of
            labels |= ChosenLabels(loaded, control.offered(data)).label_of
            for path in paths:
                if len(path) > 1 and path not in labels and loaded.tree is not None:
                    raise unfit(
                        f"no label of the model's hierarchy matches the choice {_joined(path):.200}: add the label to "
                        "the hierarchy, or give the choice its id, notation or name",
                        "/annotation/result",
                    )
            return [labels.get(path, path[0] if len(path) == 1 else _joined(path)) for path in paths]
    return []


def _joined(path: tuple[Any, ...]) -> str:
    """A path as imported annotations write it."""
    return " > ".join(map(str, path))


def _as_choices(paths: list[tuple[Any, ...]]) -> tuple[Choice, ...]:
    """The choices that an annotation names, which the project's configuration need not list."""
    below: dict[str, list[tuple[Any, ...]]] = {}
    for path in paths:
        if path and isinstance(path[0], str):
            below.setdefault(path[0], []).append(path[1:])
    return tuple(Choice(word, (word,), _as_choices(rest)) for word, rest in below.items())


def _is_path(given: Any) -> bool:
    return isinstance(given, list) and bool(given)


def _control(config: Any, pointer: str) -> _Control:
    if isinstance(config, str) and len(config) > _MOST_CONFIG:
        raise unfit(f"expected a labeling configuration of at most {_MOST_CONFIG} characters", pointer)
    try:
        root = ElementTree.fromstring(config) if isinstance(config, str) else None
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        root = None
    if root is None:
        raise unfit("expected a labeling configuration in XML", pointer)
    fields = {tag.get("name"): tag.get("value", "") for tag in root.iter() if tag.get("value", "").startswith("$")}
    for tag in root.iter():
        name, to_name = tag.get("name"), tag.get("toName")
        if tag.tag in ("Choices", "Taxonomy") and name and to_name in fields:
            dynamic = tag.get("value", "")
            return _Control(
                tag.tag,
                name,
                str(to_name),
                fields[to_name][1:],
                from_elements(tag),
                dynamic[1:] if dynamic.startswith("$") else None,
                tag.get("maxUsages") == "1" or (tag.tag == "Choices" and tag.get("choice", "single") != "multiple"),
            )
    raise unfit("expected a Choices or Taxonomy whose toName is an object with a value such as $text", pointer)


def _instances(loaded: LoadedModel, control: _Control, tasks: list[dict[str, Any]]) -> list[Any]:
    if not reads_texts(loaded):
        columns = loaded.features.columns
        form = "features" if columns is None else "record"
        known = set(
            (loaded.features.names() or ())
            if columns is None
            else (*columns.texts, *columns.numbers, *columns.categories, *lists_of(loaded))
        )
        return [{form: {name: value for name, value in data.items() if name in known}} for data in tasks]
    for at, data in enumerate(tasks):
        if type(data.get(control.field)) is not str:
            raise unfit(f"expected a text in {control.field!r:.80}", f"/tasks/{at}/data")
    return [{"text": data[control.field]} for data in tasks]


def _result(
    loaded: LoadedModel, control: _Control, chosen: ChosenLabels | None, prediction: dict[str, Any]
) -> dict[str, Any]:
    """The labels of one answer by the project's choices; labels for which there is no choice are left out."""
    paths = _paths(control, chosen, prediction["labels"])
    result = []
    if paths:
        kind = control.tag.lower()
        value = {kind: [path[-1] for path in paths] if kind == "choices" else [list(path) for path in paths]}
        result = [{"from_name": control.name, "to_name": control.to_name, "type": kind, "value": value}]
    return {"result": result, "score": _score(prediction), "model_version": _version(loaded)}


def _paths(control: _Control, chosen: ChosenLabels | None, labels: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    if chosen is not None:
        paths = [chosen.path_of[each["label"]] for each in labels if each["label"] in chosen.path_of]
    elif control.tag == "Choices":
        paths = [(each["label"],) for each in labels]
    else:
        paths = [tuple(each.get("path") or [each["label"]]) for each in labels]
    return paths[:1] if control.is_single else paths


def _score(prediction: dict[str, Any]) -> float | None:
    """How sure the answer is, from 0 to 1: as its least sure label; of an empty one, as that the best is not in it."""
    labels = prediction["labels"] or [prediction]
    known = [share_of(label) for label in labels if label.get("probability", label["score"]) is not None]
    if not known:
        return None
    return min(known) if prediction["labels"] else 1.0 - known[0]


def _version(loaded: LoadedModel) -> str:
    return f"{loaded.version.model}/{loaded.version.version}"
