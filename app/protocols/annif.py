"""Annif's REST protocol: projects are models of texts, subjects their labels, what is to be learnt is feedback.

Scores are probabilities where the model tells them, else 1 / (1 + exp(-score)), which has the same order.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response

from app.api.common.parameters import Db, Ref
from app.api.common.problems import responses
from app.errors import InvalidInput, Item
from app.protocols.asking import (
    EDITOR,
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    ask,
    json_of,
    most_instances,
    object_of,
    report_feedback,
    require_few,
)
from app.schemas.models.models import Model
from app.services.hierarchies.label_facts import name_in
from app.services.models import models
from app.services.predictions.model_cache import LoadedModel
from app.services.predictions.predictions import MAX_LABELS, MAX_TOP
from app.version import VERSION

router = APIRouter(prefix="/v1", tags=["annif"], dependencies=[VIEWER], route_class=ProtocolRoute)

_Limit = Annotated[int, Query(ge=1, le=MAX_TOP)]
_Least = Annotated[float, Query(ge=0, le=1)]
_MOST_FIELDS = 20
# how many labels above the suggestions are looked past
_PASSED = 100


@router.get("/", responses=responses(401))
def annif_information() -> dict[str, str]:
    """What this server is."""
    return {"title": "Annif REST API, spoken by Polymargin", "version": VERSION}


@router.get("/projects", responses=responses(401))
def annif_projects(session: Db) -> dict[str, Any]:
    """The newest thousand models as projects."""
    return {"projects": [_project(model) for model in models.page(session, 1000).items]}


@router.get("/projects/{ref}", responses=responses(401, 404, 422))
def annif_project(session: Db, ref: Ref) -> dict[str, Any]:
    """One model as a project."""
    return _project(models.get(session, ref))


@router.post("/projects/{ref}/suggest", responses=responses(401, 404, 409, 413, 422))
async def annif_suggest(request: Request, ref: Ref) -> Response:
    """Subjects for the form's `text`: at most `limit`, with a score of at least `threshold`."""
    return await answered(request, ref, _of_form)


@router.post("/projects/{ref}/suggest-batch", responses=responses(401, 404, 409, 413, 422))
async def annif_suggest_batch(request: Request, ref: Ref, limit: _Limit = 10, threshold: _Least = 0.0) -> Response:
    """Subjects for every one of `documents`, each a `text` and, if it likes, a `document_id`."""
    return await answered(request, ref, partial(_of_documents, limit=limit, threshold=threshold))


@router.post(
    "/projects/{ref}/learn",
    status_code=204,
    response_class=Response,
    dependencies=[EDITOR],
    responses=responses(401, 403, 404, 409, 413, 422, 507),
)
async def annif_learn(request: Request, ref: Ref) -> Response:
    """Keep a list of documents, each a `text` and its `subjects`, as feedback, of which rules make the next version."""
    return await answered(request, ref, _learnt)


def _learnt(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    documents = json_of(content)
    if not isinstance(documents, list) or not documents:
        raise InvalidInput("The body must be a list of documents.")
    require_few(len(documents), most_instances(request), "")
    labels = {facts["id"]: label for label, facts in loaded.labels.shown.items() if "id" in facts}
    known = {*loaded.model.classes, *loaded.nodes}
    kept = [
        (one.get("text"), _subjects(one, labels, known)) if isinstance(one, dict) else (None, []) for one in documents
    ]
    bare = [
        Item("subjects are needed, each with its uri or its label", f"/{at}/subjects")
        for at, (_, of) in enumerate(kept)
        if not of
    ]
    if bare:
        raise InvalidInput("The documents are not valid.", bare)
    try:
        report_feedback(request, loaded, [({"text": text}, subjects, None) for text, subjects in kept])
    except InvalidInput as error:
        raise InvalidInput(
            error.detail, [replace(item, pointer=_in_document(item.pointer)) for item in error.errors]
        ) from None
    return Response(status_code=204)


def _in_document(pointer: str | None) -> str | None:
    """Where a fault of feedback is in what was sent: its labels are subjects there, and its instance is the text."""
    parts = (pointer or "").split("/")
    if parts[2:3] == ["labels"]:
        parts[2] = "subjects"
    elif parts[2:3] == ["instance"]:
        parts[2:] = ["text"]
    return pointer and "/".join(parts)


def _subjects(document: dict[str, Any], labels: Mapping[str, str], known: Collection[str]) -> list[Any]:
    """The labels of a document's subjects: what the vocabulary or the model knows by the URI, or else by the label.

    What neither knows is new, and its URI names it, as in the corpora of which models of subjects are trained.
    """
    given: Any = document.get("subjects")
    named = [one if isinstance(one, dict) else {} for one in (given if isinstance(given, list) else [])]
    told = [(one.get("uri"), one.get("label")) for one in named]
    return [
        labels.get(str(uri)) or (label if str(uri) not in known and str(label) in known else uri or label)
        for uri, label in told
    ]


def _of_form(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    fields = _form(content)
    limit = _number(fields, "limit", int, 10, 1, MAX_TOP)
    threshold = _number(fields, "threshold", float, 0.0, 0.0, 1.0)
    found = _suggested(request, loaded, [fields.get("text", "")], int(limit), threshold)
    return answer_json({"results": found[0]})


def _of_documents(request: Request, loaded: LoadedModel, content: bytes, limit: int, threshold: float) -> Response:
    documents: Any = object_of(content).get("documents")
    texts: list[Any] = (
        [one.get("text") for one in documents if isinstance(one, dict)] if isinstance(documents, list) else []
    )
    if not texts or len(texts) < len(documents) or not all(type(text) is str for text in texts):
        raise InvalidInput("The body must be an object.", [Item("a list of objects with a text", "/documents")])
    found = _suggested(request, loaded, texts, limit, threshold)
    ids = [one.get("document_id") for one in documents]
    return answer_json([{"document_id": id, "results": results} for id, results in zip(ids, found, strict=True)])


def _project(model: Model) -> dict[str, Any]:
    return {
        "project_id": model.name,
        "name": model.name,
        "language": "und",
        "backend": {"backend_id": "polymargin"},
        "is_trained": model.latest is not None,
        "modification_time": None if model.latest is None else model.latest.created_at,
    }


def _suggested(
    request: Request, loaded: LoadedModel, texts: list[str], limit: int, threshold: float
) -> list[list[dict[str, Any]]]:
    top_k = limit
    if loaded.model.names_sets and loaded.nodes:
        top_k = max(limit, min(limit + _PASSED, MAX_TOP, MAX_LABELS // len(texts)))
    answer = ask(request, loaded, [{"text": text} for text in texts], top_k=top_k)
    found = []
    for prediction in answer["predictions"]:
        scored = [(entry, _worth(entry)) for entry in _lowest(loaded, prediction)]
        found.append([_subject(entry, worth) for entry, worth in scored[:limit] if worth >= threshold])
    return found


def _lowest(loaded: LoadedModel, prediction: dict[str, Any]) -> list[dict[str, Any]]:
    """The best labels without those that are in the predicted set as parents of others alone."""
    above = set()
    for node in prediction["subtree"] or []:
        above.add(node["parent"])
        above.update(loaded.labels.other_parents.get(node["label"], ()))
    return [entry for entry in prediction["top"] if entry["label"] not in above]


def _worth(entry: dict[str, Any]) -> float:
    if "probability" in entry:
        return float(entry["probability"])
    score = entry["score"]
    return 1.0 / (1.0 + math.exp(-score)) if score > -700 else 0.0


def _subject(entry: dict[str, Any], worth: float) -> dict[str, Any]:
    names = entry.get("names") or {}
    name = name_in(names, "en") or next(iter(names.values()), entry["label"])
    uri = entry.get("id", entry["label"])
    return {"uri": uri, "label": name, "notation": entry.get("notation"), "score": worth}


def _form(content: bytes) -> dict[str, str]:
    try:
        fields = parse_qs(
            content.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (ValueError, UnicodeDecodeError):
        raise InvalidInput("The body must be a form (application/x-www-form-urlencoded) with a text.") from None
    if "text" not in fields:
        raise InvalidInput("The body must be a form.", [Item("a text is needed", "/text")])
    return {name: values[0] for name, values in fields.items()}


def _number(
    fields: dict[str, str], name: str, kind: type[int] | type[float], default: float, least: float, most: float
) -> float:
    try:
        value = kind(fields.get(name, default))
    except ValueError:
        value = kind(-1)
    if not least <= value <= most:
        raise InvalidInput("The form is not valid.", [Item(f"a number from {least:g} to {most:g}", f"/{name}")])
    return value
