"""Annif's REST protocol: projects are models of texts, subjects their labels, what is to be learnt is feedback.

Scores are probabilities if the model has them, else 1 / (1 + exp(-score)), which has the same order.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from app.errors import MAX_ITEMS, InvalidInput, Item, Malformed
from app.features.language_detection import language_scores
from app.hierarchies import service as hierarchies
from app.hierarchies.label_facts import display_name, name_in
from app.hierarchies.schemas import Hierarchy
from app.hierarchies.version_labels import VersionLabels
from app.http.parameters import Db, Ref, opened
from app.http.problems import responses
from app.models import service as models
from app.models.schemas import Model
from app.predictions.inference import infer, most_instances
from app.predictions.model_cache import LoadedModel
from app.predictions.service import MAX_LABELS, MAX_TOP
from app.protocols.adapter import (
    CLERK,
    VIEWER,
    ProtocolRoute,
    answer_json,
    answered,
    json_of,
    object_of,
    report_feedback,
    require_few,
    share_of,
)
from app.storable_text import require_storable
from app.version import VERSION

router = APIRouter(prefix="/v1", tags=["annif"], dependencies=[VIEWER], route_class=ProtocolRoute)

_Limit = Annotated[int, Query(ge=1, le=MAX_TOP)]
_Least = Annotated[float, Query(ge=0, le=1)]
_Language = Annotated[str | None, Query(description="Language of the labels. Default: the project's.")]
_MOST_FIELDS = 20
# how many labels above the suggestions are looked past
_PASSED = 100
# models or hierarchies in a list, which the protocol has in one page
_LISTED = 1000


@router.get("/", responses=responses(401))
def annif_information() -> dict[str, str]:
    """What this server is."""
    return {"title": "Annif REST API of Polymargin", "version": VERSION}


@router.get("/projects", responses=responses(401))
def annif_projects(session: Db) -> dict[str, Any]:
    """Those of the newest thousand models that read texts, as projects."""
    newest = models.page(session, _LISTED).items
    reading = models.of_texts(session, [model.latest for model in newest if model.latest is not None])
    return {"projects": _projects(session, [model for model in newest if model.latest and model.latest.id in reading])}


@router.get("/projects/{ref}", responses=responses(401, 404, 422))
def annif_project(session: Db, ref: Ref) -> dict[str, Any]:
    """One model as a project."""
    return _projects(session, [models.get(session, ref)])[0]


@router.get("/vocabs", responses=responses(401))
def annif_vocabs(session: Db) -> dict[str, Any]:
    """The newest thousand hierarchies as vocabularies."""
    return {"vocabs": [_vocab(hierarchy) for hierarchy in hierarchies.page(session, _LISTED).items]}


_DETECTED = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["languages", "text"],
                    "properties": {
                        "languages": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                        "text": {"type": "string"},
                    },
                }
            }
        },
    }
}


@router.post("/detect-language", openapi_extra=_DETECTED, responses=responses(400, 401, 413, 422))
async def annif_detect_language(request: Request) -> Response:
    """The probability of each of `languages` (ISO 639-1) for `text`; `null` has that of all other languages."""
    return await run_in_threadpool(_detected, await request.body())


@router.post("/projects/{ref}/suggest", responses=responses(401, 404, 409, 413, 422))
async def annif_suggest(request: Request, ref: Ref) -> Response:
    """Subjects for the form's `text`: at most `limit`, with a score of at least `threshold`, named in `language`."""
    return await answered(request, ref, _of_form)


@router.post("/projects/{ref}/suggest-batch", responses=responses(401, 404, 409, 413, 422))
async def annif_suggest_batch(
    request: Request, ref: Ref, limit: _Limit = 10, threshold: _Least = 0.0, language: _Language = None
) -> Response:
    """Subjects for every one of `documents`, each a `text` and, if it likes, a `document_id`."""
    return await answered(request, ref, partial(_of_documents, limit=limit, threshold=threshold, language=language))


@router.post(
    "/projects/{ref}/learn",
    status_code=204,
    response_class=Response,
    dependencies=[CLERK],
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
    ids = {facts["id"]: label for label, facts in loaded.labels.shown.items() if "id" in facts}
    known = {*loaded.model.classes, *loaded.nodes}
    kept = [
        (one.get("text"), _subjects(one, ids, known, loaded.labels)) if isinstance(one, dict) else (None, [])
        for one in documents
    ]
    bare = [
        Item("subjects are needed, each with its uri or its label", f"/{at}/subjects")
        for at, (_, of) in enumerate(kept)
        if not of and not (loaded.model.names_sets and _has_no_subjects(documents[at]))
    ]
    if bare:
        raise InvalidInput("The documents are not valid.", bare[:MAX_ITEMS])
    try:
        report_feedback(request, loaded, [({"text": text}, subjects, None) for text, subjects in kept])
    except InvalidInput as error:
        raise InvalidInput(
            error.detail, [replace(item, pointer=_in_document(item.pointer)) for item in error.errors]
        ) from None
    return Response(status_code=204)


def _has_no_subjects(document: Any) -> bool:
    """Whether a document says that none is right; one that leaves them out says nothing."""
    return isinstance(document, dict) and document.get("subjects") == []


def _in_document(pointer: str | None) -> str | None:
    """Where a fault of feedback is in what was sent: its labels are subjects there, and its instance is the text."""
    parts = (pointer or "").split("/")
    if parts[2:3] == ["labels"]:
        parts[2] = "subjects"
    elif parts[2:3] == ["instance"]:
        parts[2:] = ["text"]
    return pointer and "/".join(parts)


def _subjects(
    document: dict[str, Any], ids: Mapping[str, str], known: Collection[str], labels: VersionLabels
) -> list[Any]:
    """The labels of a document's subjects: what the vocabulary or the model knows by the URI, or else by the label.

    Either may be what training would make a label of, too: a retired label, or the name of one concept alone.

    What neither knows is new, and its URI names it, as in the corpora of which models of subjects are trained.
    """
    given: Any = document.get("subjects")
    entries = [one if isinstance(one, dict) else {} for one in (given if isinstance(given, list) else [])]
    found: list[Any] = []
    for uri, label in ((_bare(one.get("uri")), one.get("label")) for one in entries):
        candidates = (ids.get(one) or labels.node_of(one) for one in map(str, filter(None, (uri, label))))
        found.append(next((one for one in candidates if one in known), uri or label))
    return found


def _bare(uri: Any) -> Any:
    """A URI without the angle brackets that corpora write it in."""
    return uri[1:-1] if isinstance(uri, str) and uri.startswith("<") and uri.endswith(">") else uri


def _of_form(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    fields = _form(content)
    limit = _number(fields, "limit", int, 10, 1, MAX_TOP)
    threshold = _number(fields, "threshold", float, 0.0, 0.0, 1.0)
    found = _suggested(request, loaded, [fields.get("text", "")], int(limit), threshold, fields.get("language"))
    return answer_json({"results": found[0]})


def _of_documents(
    request: Request, loaded: LoadedModel, content: bytes, limit: int, threshold: float, language: str | None
) -> Response:
    documents: Any = object_of(content).get("documents")
    texts: list[Any] = (
        [one.get("text") for one in documents if isinstance(one, dict)] if isinstance(documents, list) else []
    )
    if not texts or len(texts) < len(documents) or not all(type(text) is str for text in texts):
        raise InvalidInput("The body is not valid.", [Item("a list of objects with a text", "/documents")])
    found = _suggested(request, loaded, texts, limit, threshold, language)
    ids = [one.get("document_id") for one in documents]
    return answer_json([{"document_id": id, "results": results} for id, results in zip(ids, found, strict=True)])


def _detected(content: bytes) -> Response:
    document = object_of(content)
    text, languages = document.get("text"), document.get("languages")
    if type(text) is not str:
        raise InvalidInput("The body is not valid.", [Item("a text is needed", "/text")])
    if not isinstance(languages, list) or not languages or not all(type(one) is str for one in languages):
        raise InvalidInput("The body must name languages.", [Item("a list of language codes, as en", "/languages")])
    try:
        found = language_scores(text, languages)
    except ValueError as error:
        raise InvalidInput("The languages are not valid.", [Item(str(error), "/languages")]) from None
    return answer_json({"results": [{"language": language, "score": score} for language, score in found.items()]})


def _projects(session: Session, shown: Sequence[Model]) -> list[dict[str, Any]]:
    latest = [model.latest for model in shown if model.latest is not None]
    languages = models.languages_of(session, latest)
    ids = {version.hierarchy for version in latest if version.hierarchy is not None}
    vocabs = {id: _vocab(hierarchies.get(session, id)) for id in ids}
    return [
        {
            "project_id": model.name,
            "name": model.name,
            "language": "und" if model.latest is None else languages.get(model.latest.id, "und"),
            "backend": {"backend_id": "polymargin"},
            "vocab": None if model.latest is None else vocabs.get(model.latest.hierarchy or ""),
            "is_trained": model.latest is not None,
            "modification_time": None if model.latest is None else model.latest.created_at,
        }
        for model in shown
    ]


def _vocab(hierarchy: Hierarchy) -> dict[str, Any]:
    return {
        "vocab_id": hierarchy.name,
        "languages": [language for language in hierarchy.languages if language != "und"],
        "size": hierarchy.n_nodes,
        "loaded": True,
    }


def _suggested(
    request: Request, loaded: LoadedModel, texts: list[str], limit: int, threshold: float, asked: str | None
) -> list[list[dict[str, Any]]]:
    language = _language(request, loaded, asked)
    top_k = limit
    if loaded.model.names_sets and loaded.nodes:
        top_k = max(limit, min(limit + _PASSED, MAX_TOP, MAX_LABELS // len(texts)))
    answer = infer(request.app.state, loaded, {"instances": [{"text": text} for text in texts], "top_k": top_k})
    found = []
    for text, prediction in zip(texts, answer["predictions"], strict=True):
        # as Annif: what a model would answer to nothing at all is no suggestion
        entries = _lowest(loaded, prediction) if text.strip() else []
        scored = [(entry, share_of(entry)) for entry in entries]
        found.append([_subject(entry, worth, language) for entry, worth in scored[:limit] if worth >= threshold])
    return found


def _language(request: Request, loaded: LoadedModel, asked: str | None) -> str | None:
    """The language of labels: that which is asked for, or the project's; raises Malformed if no label has a name in it.

    The project's language is always accepted.
    """
    if asked and name_in({tag: tag for tag in loaded.labels.languages}, asked.lower()) is not None:
        return asked.lower()
    if not asked and not loaded.labels.has_names:
        return None
    with opened(request) as session:
        of_project = models.languages_of(session, [loaded.version]).get(loaded.version.id)
    if asked and asked != of_project:
        raise Malformed(f"The vocabulary has no labels in the language {asked!r:.80}.")
    return of_project


def _lowest(loaded: LoadedModel, prediction: dict[str, Any]) -> list[dict[str, Any]]:
    """The best labels without those that are in the predicted set as parents of others alone."""
    above = set()
    for node in prediction["subtree"] or []:
        above.add(node["parent"])
        above.update(loaded.labels.other_parents.get(node["label"], ()))
    return [entry for entry in prediction["top"] if entry["label"] not in above]


def _subject(entry: dict[str, Any], worth: float, language: str | None) -> dict[str, Any]:
    names = entry.get("names") or {}
    name = display_name(names, language) or entry["label"]
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
        raise InvalidInput("The form is not valid.", [Item("a text is needed", "/text")])
    require_storable(given := {name: values[0] for name, values in fields.items()})
    return given


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
