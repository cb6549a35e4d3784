"""Review queues in Label Studio: rows go out as tasks with predictions, and come back in its JSON or JSON-MIN export.

A task's data has the queue's id, the row's number and its revision, which its exports repeat. The labeling
configuration asks for the labels, for others as text, and for a comment.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import orjson

from app.datasets.formats.annotations import MIN
from app.errors import InvalidInput, Item
from app.formats.annotations import chosen_paths, records
from app.formats.json_columns import RefusedError
from app.formats.table import FormatError
from app.json_text import fault
from app.predictions.model_cache import LoadedModel
from app.reviews.file_decisions import Entry
from app.reviews.label_search import index_of
from app.store import tables

# Label Studio shows as many choices at once, and more of them in a list that can be searched
MOST_BUTTONS = 50
# its configuration is a text that each page of it loads
MOST_LISTED = 10_000
_KEYS = ("review", "row", "revision")
_LABEL, _OTHER, _COMMENT = "label", "other", "comment"
_ONE_TEXT = {"maxSubmissions": "1"}


class Choices(NamedTuple):
    """The labels from which annotators choose.

    Attributes
    ----------
    paths : mapping of str to list of str
        Of each label, those above it and itself.
    titles : mapping of str to str
        What annotators read in place of a label or of one above it.
    n_labels : int
        How many labels there are; ``paths`` has only those among the alternatives of the rows if there are too many.
    is_tree : bool
        They are shown as a tree that can be searched, in place of buttons.
    """

    paths: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    n_labels: int
    is_tree: bool


def choices(loaded: LoadedModel | None, alternatives: Sequence[Sequence[Mapping[str, Any]]]) -> Choices:
    """The labels of a version, or of the rows where it was deleted.

    Parameters
    ----------
    alternatives : sequence of sequence of mapping
        Of all rows of the queue.
    """
    names = {each["label"]: each["name"] for some in alternatives for each in some}
    known = list(names) if loaded is None else list(index_of(loaded).places)
    listed = known if len(known) <= MOST_LISTED else list(names)
    paths = {label: (None if loaded is None else loaded.path(label)) or [label] for label in listed}
    titles = {node: _title(node, names.get(node), loaded) for path in paths.values() for node in path}
    is_tree = len(paths) > MOST_BUTTONS or any(len(path) > 1 for path in paths.values())
    return Choices(paths, titles, len(known), is_tree)


def tasks(review: tables.Review, rows: Sequence[tables.ReviewRow], given: Choices) -> bytes:
    """Rows as a JSON array of tasks.

    The model's answer is the last prediction of a task, and its version the one that Label Studio shows to annotators.
    Each further alternative is a prediction with a version of its own. Queues that hide probabilities have no scores.
    """
    objects = _objects(rows)
    return orjson.dumps(
        [
            {"data": _data(review, row, objects), "predictions": _predictions(review, row, objects, given)}
            for row in rows
        ]
    )


def configuration(review: tables.Review, rows: Sequence[tables.ReviewRow], given: Choices) -> bytes:
    """The labeling configuration, in XML, of the tasks that :func:`tasks` makes of these rows."""
    several = review.label_separator is not None
    objects = _objects(rows)
    view = ElementTree.Element("View")
    for name in objects:
        ElementTree.SubElement(view, "Text" if name == "text" else "Table", name=name, value=f"${name}")
    if len(given.paths) < given.n_labels:
        hint = f"The list has {len(given.paths):,} of {given.n_labels:,} labels. Type others below it."
        ElementTree.SubElement(view, "Header", value=hint)
    asked = {"name": _LABEL, "toName": objects[0]}
    if given.is_tree:
        asked |= {"showFullPath": "true"} if several else {"showFullPath": "true", "maxUsages": "1"}
        control = ElementTree.SubElement(view, "Taxonomy", asked)
    else:
        control = ElementTree.SubElement(view, "Choices", asked | {"choice": "multiple" if several else "single"})
    nodes: dict[str, ElementTree.Element] = {}
    siblings: dict[tuple[str, ...], set[str]] = {}
    for path in given.paths.values():
        for depth, node in enumerate(path):
            if node not in nodes:
                title, taken = given.titles[node], siblings.setdefault(tuple(path[:depth]), set())
                if title in taken:  # Label Studio drops a choice with the title of another one
                    title = f"{title} ({node})"
                taken.add(title)
                above = nodes[path[depth - 1]] if depth else control
                nodes[node] = ElementTree.SubElement(above, "Choice", value=title, alias=node)
    other = {"name": _OTHER, "placeholder": "Other labels: label, name or notation"}
    if not several:
        other = _ONE_TEXT | {"name": _OTHER, "placeholder": "In place of the choice, another label, name or notation"}
    for each in (other, {"name": _COMMENT, "placeholder": "Comment"} | _ONE_TEXT):
        ElementTree.SubElement(view, "TextArea", each | {"toName": objects[0], "editable": "true"})
    ElementTree.indent(view)
    written: bytes = ElementTree.tostring(view, encoding="utf-8")
    return written


def is_export(path: Path) -> bool:
    """Whether a file begins as JSON does."""
    with path.open("rb") as file:
        return file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{")


def entries(path: Path) -> list[Entry]:
    """The annotations of an export, in the order in which people made them; of a person's for one row, the last.

    Annotations that are marked as ground truth come last.

    Raises
    ------
    InvalidInput
        The file is not JSON, or no task of it comes from a review.
    """
    found: list[tuple[tuple[bool, str], Entry]] = []
    is_ours = False
    try:
        for number, (task, _) in enumerate(records(path), 1):
            try:
                if isinstance(task, RefusedError):
                    raise task
                data = task["data"] if isinstance(task.get("data"), dict) else task
                is_ours = is_ours or data.keys() >= {*_KEYS}
                found += [(_order(each), _entry(number, data, each)) for each in _annotations(task)] or [
                    ((False, ""), Entry(number))
                ]
            except RefusedError as refusal:
                where = f"{refusal.column}: " if refusal.column else ""
                found.append(((False, ""), Entry(number, problem=where + refusal.detail)))
    except FormatError as error:
        item = Item(error.errors[0].detail, "/file")
        raise InvalidInput("the export of Label Studio cannot be read", [item]) from error
    if not is_ours:
        detail = (
            f"no task has {', '.join(_KEYS[:-1])} and {_KEYS[-1]} in its data; export the tasks from the review first"
        )
        raise InvalidInput("the file is not an export of this review's tasks", [Item(detail, "/file")])
    found.sort(key=lambda each: each[0])
    last: dict[object, Entry] = {}
    for at, (_, entry) in enumerate(found):
        last[at if entry.row is None else (entry.review, entry.row, entry.person)] = entry
    return list(last.values())


def _title(node: str, name: str | None, loaded: LoadedModel | None) -> str:
    """The name behind the notation, or the label where it is no address; characters that XML lacks become blanks."""
    facts: Mapping[str, Any] = {} if loaded is None else loaded.labels.shown.get(node, {})
    name = next(iter(facts.get("names", {}).values()), name)
    code = facts.get("notation") or ("" if name and "://" in node else node)
    title = code if name in (None, code) else f"{code} {name}"
    return " ".join("".join(each if each.isprintable() else " " for each in title).split()) or node


def _objects(rows: Sequence[tables.ReviewRow]) -> list[str]:
    """What annotators see of a row: its text, its columns, or both."""
    tabular = any(row.beside_text for row in rows)
    return [*(["text"] if not tabular or any(row.text is not None for row in rows) else []), *(["record"] * tabular)]


def _data(review: tables.Review, row: tables.ReviewRow, objects: Sequence[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"review": review.id, "row": row.row, "revision": row.revision, "row_id": row.row_id}
    if "text" in objects:
        data["text"] = f"Row {row.row_id or row.row}" if row.text is None else row.text
    if "record" in objects:
        data["record"] = {name: value for name, value in (row.beside_text or {}).items() if value is not None}
    return data


def _predictions(
    review: tables.Review, row: tables.ReviewRow, objects: Sequence[str], given: Choices
) -> list[dict[str, Any]]:
    alternatives = [{"predicted": at == 0} | each for at, each in enumerate(row.alternatives)]
    answer = [each for each in alternatives if each["predicted"]]
    others = [each for each in alternatives if not each["predicted"]]
    version = f"{review.model}/{review.version}"
    found = [([each], each["probability"], f"{version}, alternative {n}") for n, each in enumerate(others, 2)]
    found.append((answer, _score(answer, others), version))
    is_hidden = review.sure_share > 0 and row.state != "decided"
    return [
        {"model_version": name, "result": _result([each["label"] for each in labels], objects[0], given)}
        | ({} if score is None or is_hidden else {"score": score})
        for labels, score, name in found
    ]


def _score(answer: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> float | None:
    """The least probability of an answer's labels; of an empty one, that the best is not in it. None without any."""
    said = [each["probability"] for each in answer or others[:1]]
    known: list[float] = [each for each in said if each is not None]
    if not known or len(known) < len(said):
        return None
    return min(known) if answer else 1.0 - known[0]


def _result(labels: Sequence[str], shown: str, given: Choices) -> list[dict[str, Any]]:
    if not labels:
        return []
    paths = [list(given.paths.get(label, [label])) for label in labels]
    type, value = ("taxonomy", paths) if given.is_tree else ("choices", [path[-1] for path in paths])
    return [{"id": _LABEL, "from_name": _LABEL, "to_name": shown, "type": type, "value": {type: value}}]


def _annotations(task: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The annotations of a task, or the one that a record of JSON-MIN is; raises RefusedError."""
    if task.keys() >= MIN:
        return [{**task, "completed_by": task["annotator"], "result": list(_flat_results(task))}]
    annotations = task.get("annotations")
    if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
        raise RefusedError("not a task of Label Studio's export in JSON or JSON-MIN, with a list of annotations")
    return annotations


def _flat_results(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers of JSON-MIN, where one choice or text is a string, as JSON has them."""
    for name, key in ((_LABEL, "choices"), (_OTHER, "text"), (_COMMENT, "text")):
        answer = record.get(name)
        for each in answer if isinstance(answer, list) else [] if answer is None else [answer]:
            yield {"from_name": name, "value": each if isinstance(each, dict) else {key: [each]}}


def _order(annotation: Mapping[str, Any]) -> tuple[bool, str]:
    return bool(annotation.get("ground_truth")), str(annotation.get("created_at") or "")


def _entry(number: int, data: Mapping[str, Any], annotation: Mapping[str, Any]) -> Entry:
    """An annotation of the task with this data; raises RefusedError."""
    review, row, revision = (data.get(name) for name in _KEYS)
    chosen: list[str] = []
    texts: dict[str, list[str]] = {_OTHER: [], _COMMENT: []}
    results = annotation.get("result")
    if not isinstance(results, list):
        raise RefusedError("an annotation has no list 'result'")
    for result in results:
        name, value = (result.get("from_name"), result.get("value")) if isinstance(result, dict) else (None, None)
        if not isinstance(value, dict):
            continue
        if name == _LABEL and ("choices" in value or "taxonomy" in value):
            chosen += [path[-1] for path in chosen_paths(value, _LABEL) if path]
        elif name in texts:
            text = value.get("text")
            texts[name] += [
                each.strip() for each in (text if isinstance(text, list) else [text]) if isinstance(each, str)
            ]
    return Entry(
        number,
        review if isinstance(review, str) else "",
        row if isinstance(row, int) else None,
        revision if isinstance(revision, int) else None,
        written="\n".join(texts[_OTHER]).strip(),
        choices=chosen,
        checked=True,
        skipped=bool(annotation.get("was_cancelled")),
        comment=" ".join(texts[_COMMENT]).strip() or None,
        person=_person(annotation.get("completed_by")),
        is_truth=bool(annotation.get("ground_truth")),
    )


def _person(completed_by: object) -> str | None:
    """An annotator as a person of the queue, by address or else by number; None where the export does not say."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    if completed_by is None:
        return None
    person = f"label-studio:{completed_by}"
    if fault(person) or len(person) > 128:
        raise RefusedError("expected the number or the email address of an annotator", "completed_by")
    return person
