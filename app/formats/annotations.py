"""Exports of annotation tools: Label Studio (JSON, JSON-MIN, CSV), doccano and Argilla (JSON, JSON lines).

The keys of a record identify the tool. Label Studio's JSON has `data` and `annotations` with `choices` or a `taxonomy`;
its JSON-MIN and CSV have one record an annotation, with `annotation_id`. Doccano has `text` (or `data`) and `label`, a
list. Argilla has `fields` and `responses`; version 1 has `text` or `inputs`, and `annotation`.

The text is that of the `text_columns`, else of the key `text`, else of the only key that there is. `label_column` names
the question whose answers are labels, where there are several. A choice in a taxonomy is a path, `Animals > Cat`.
Annotations that were cancelled do not count, and Label Studio's ground truth alone counts where there is one. Where
annotators disagree, the record is refused. Rows have one label each if all have exactly one, otherwise sets.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from app.datasets.formats.annotations import MIN
from app.datasets.formats.delimited import cells_of
from app.datasets.schemas import ImportOptions
from app.formats.json_array import array_records, begins_array
from app.formats.json_columns import RefusedError, joined_texts, type_name
from app.formats.label_sets import LabelSets
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob
from app.formats.window import BOM, MAX_RECORD_BYTES, NOT_UTF8, Window
from app.plurals import counted

_BLOCK_ROWS = 1 << 14
_MOST_SHOWN = 5
# what Label Studio writes of an annotation beside the task's data and the answers
_OF_ANNOTATION = frozenset(
    {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "was_cancelled"}
)
_PATH = " > "

Record = dict[str, Any]


class _Row(NamedTuple):
    """A record as it is read: `answers` has those of each annotator by question, and `data` what was shown to them."""

    id: object
    data: Mapping[str, Any]
    answers: Sequence[Mapping[str, list[str]]]


def parse_annotations(path: Path, options: ImportOptions) -> Parsed:
    """Read an export.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column` is the question, `text_columns` name keys of the data.

    Returns
    -------
    Parsed
        Kind "text".

    Raises
    ------
    FormatError
        With the lines of the records that are of no tool, have no text, or whose annotators disagree.
    """
    reader = _Reader(options)
    for record, line in records(path):
        reader.read(record, line)
    return reader.build()


def records(path: Path) -> Iterator[tuple[Record | RefusedError, int]]:
    """Records, or what is wrong with one, and their lines; raises FormatError where the file ceases to have records."""
    with path.open("rb") as file:
        first = file.readline(1 << 20).removeprefix(BOM).decode("utf-8", "replace")
    if set(cells_of(first, ",")) >= MIN:
        yield from _csv_records(path)
        return
    line = 1
    with Window(path) as window:
        if begins_array(window.fill(line)):
            for record, line in array_records(window):
                yield _loaded(record), line
            return
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            for record in unread[:end].removesuffix(b"\n").split(b"\n") if end else []:
                if record and not record.isspace():
                    yield _loaded(record), line
                line += 1
            window.consume(end)


def _loaded(record: bytes) -> Record | RefusedError:
    try:
        row = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        return RefusedError(f"not valid JSON at character {error.pos + 1}")
    return row if isinstance(row, dict) else RefusedError(f"{type_name(row)}, expected an object")


def _csv_records(path: Path) -> Iterator[tuple[Record | RefusedError, int]]:
    csv.field_size_limit(MAX_RECORD_BYTES)
    with path.open("rb") as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader, line = csv.reader(text, strict=True), 0
        try:
            header = next(reader)
            line = reader.line_num
            for cells in reader:
                begin, line = line + 1, reader.line_num
                if not cells:
                    continue
                if len(cells) != len(header):
                    yield RefusedError(f"{counted(len(cells), 'cell')}, expected {len(header)} as in the header"), begin
                    continue
                yield {name: _cell(cell) for name, cell in zip(header, cells, strict=True)}, begin
        except csv.Error as error:
            raise row_error(line + 1, f"not a CSV record: {error}") from None
        except UnicodeDecodeError:
            raise row_error(_line_without_text(path), f"not {NOT_UTF8}") from None


def _line_without_text(path: Path) -> int:
    """The first line that is not UTF-8."""
    with path.open("rb") as file:
        for line, record in enumerate(file, 1):
            try:
                record.decode()
            except UnicodeDecodeError:
                return line
    return 1


def _cell(cell: str) -> Any:
    """Answers that are no single choice are JSON."""
    if cell.startswith(("[", "{")):
        try:
            return orjson.loads(cell)
        except orjson.JSONDecodeError:
            return cell
    return cell


class _Reader:
    """Rows as they come; blocks of them are moved into arrays."""

    def __init__(self, options: ImportOptions) -> None:
        self._options = options
        self._may_lack = options.without_label != "refuse"
        self._question: str | None = None
        self._texts, self._ids, self._labels, self._problems = TextBlob(), TextBlob(), LabelSets(), Problems()
        self._n_records, self._single, self._has_ids = 0, True, False
        # of files with a record for each annotation
        self._known: dict[object, tuple[list[str], int]] = {}
        self._begin_block()

    def _begin_block(self) -> None:
        self._block: list[tuple[bytes, bytes, list[str], int]] = []

    def read(self, record: Record | RefusedError, line: int) -> None:
        """Read one record, or note what is wrong with it."""
        self._n_records += 1
        try:
            if isinstance(record, RefusedError):
                raise record
            self._add(record, line)
        except RefusedError as refusal:
            self._problems.add(line, refusal.detail, refusal.column, refusal.cause)
        if len(self._block) >= _BLOCK_ROWS:
            self._flush()

    def build(self) -> Parsed:
        """The whole file."""
        self._flush()
        self._problems.raise_if_any()
        if self._n_records == 0:
            raise row_error(1, "the file is empty or has only blank lines")
        names, y, indptr = self._labels.build()
        if len(indptr) == 1:
            raise row_error(1, "all annotations of the file were cancelled")
        single = self._single and not self._options.unlabelled
        if single and len(y) < len(indptr) - 1:  # rows without a label have the empty one, which sorts first
            one = np.zeros(len(indptr) - 1, dtype=np.int32)
            one[np.diff(indptr) == 1] = y + 1
            names, y = ["", *names], one
        return Parsed(
            "text",
            names,
            y,
            texts=self._texts.build(),
            ids=self._ids.build() if self._has_ids else None,
            label_indptr=None if single else indptr,
        )

    def _add(self, record: Record, line: int) -> None:
        row = _row(record, self._options)
        if row is None:
            return
        text = self._text(row.data).encode()
        labels = [] if self._options.unlabelled else self._agreed(row, record, line)
        if labels is None:
            return
        self._single = self._single and (len(labels) == 1 or (not labels and self._may_lack))
        id = b"" if row.id is None else str(row.id).encode()
        self._has_ids = self._has_ids or bool(id)
        self._block.append((text, id, labels, line))

    def _agreed(self, row: _Row, record: Record, line: int) -> list[str] | None:
        """The labels; None of a further annotation of a row that was read."""
        wanted = self._options.label_column
        skipped = self._may_lack and wanted != ImportOptions.model_fields["label_column"].default
        answers = [each[self._asked(each)] for each in row.answers if each and not (skipped and wanted not in each)]
        if not answers:
            if not self._may_lack:
                detail = "the record has no annotation (pass without_label=leave_out to skip such records)"
                raise RefusedError(detail, None, "no_label")
            return []
        other = next((each for each in answers if set(each) != set(answers[0])), None)
        if other is not None:
            raise RefusedError(_disagreement(answers[0], other), self._question)
        if record.keys() >= MIN and row.id is not None:
            before = self._known.setdefault(row.id, (answers[0], line))
            if before[1] != line:
                if set(before[0]) != set(answers[0]):
                    detail = f"{_disagreement(before[0], answers[0])} (the record's first annotation is on line"
                    raise RefusedError(f"{detail} {before[1]})", self._question)
                return None
        return answers[0]

    def _asked(self, answers: Mapping[str, list[str]]) -> str:
        """The question whose answers are labels."""
        wanted = self._options.label_column
        if wanted in answers:
            self._question = wanted
            return wanted
        if wanted != ImportOptions.model_fields["label_column"].default:
            raise RefusedError(
                f"no answer to '{shorten(wanted)}'; the record has {_named(answers)}", wanted, "no_label"
            )
        names = {*answers} if self._question is None else {*answers, self._question}
        if len(names) > 1:
            raise RefusedError(f"the file has several questions ({_named(names)}): pass label_column to name one")
        self._question = next(iter(names))
        return self._question

    def _text(self, data: Mapping[str, Any]) -> str:
        keys = self._options.text_columns
        if not keys:
            strings = [key for key, value in data.items() if isinstance(value, str)]
            keys = ("text",) if "text" in strings else tuple(strings)
            if len(keys) != 1:
                what = f"several texts ({_named(keys)})" if keys else f"no text among {_named(data)}"
                raise RefusedError(f"the record has {what}: pass text_columns to name those to read")
        return joined_texts(dict(data), keys)

    def _flush(self) -> None:
        lines = np.array([row[3] for row in self._block], dtype=np.int64)
        self._labels.add_sets(np.arange(len(lines)), [row[2] for row in self._block], lines, self._problems)
        for blob, pieces in (
            (self._texts, [row[0] for row in self._block]),
            (self._ids, [row[1] for row in self._block]),
        ):
            blob.add(np.frombuffer(b"".join(pieces), np.uint8), np.array([len(each) for each in pieces], np.int64))
        self._begin_block()


def _row(record: Record, options: ImportOptions) -> _Row | None:
    """A record of any tool; None of an annotation that was cancelled.

    Raises
    ------
    RefusedError
        No tool writes such a record.
    """
    keys = record.keys()
    if keys >= {"data"} and isinstance(record["data"], dict):
        return _Row(record.get("id"), record["data"], _studio_answers(record))
    if keys >= MIN:
        return _flat_row(record, options)
    if keys >= {"fields"} and isinstance(record["fields"], dict):
        return _Row(record.get("id"), record["fields"], _argilla_answers(record))
    if keys >= {"annotation"} and keys & {"text", "inputs"}:
        inputs = record.get("inputs")
        data = inputs if isinstance(inputs, dict) and inputs else {"text": record.get("text")}
        given = record["annotation"]
        return _Row(record.get("id"), data, [] if given is None else [{"annotation": _names(given, "annotation")}])
    label = next((key for key in ("label", "labels") if key in record), None)
    text = next((key for key in ("text", "data") if key in record), None)
    if text is not None and label is not None:
        given = record[label]
        if isinstance(given, list) and any(isinstance(each, list) for each in given):
            raise RefusedError("the labels are of spans of the text, expected labels of whole texts", label)
        asked = options.label_column if options.label_column in keys else "label"
        return _Row(record.get("id"), {"text": record[text]}, [{asked: _names(given, label)}] if given else [])
    raise RefusedError(f"not a record of Label Studio, doccano or Argilla: its keys are {_named(record)}")


def _studio_answers(record: Record) -> list[dict[str, list[str]]]:
    """Answers in Label Studio's JSON."""
    annotations = record.get("annotations", record.get("completions"))
    if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
        raise RefusedError("expected a list of annotations", "annotations")
    counting = [each for each in annotations if not each.get("was_cancelled")]
    truths = [each for each in counting if each.get("ground_truth")]
    found: list[dict[str, list[str]]] = []
    for annotation in truths or counting:
        results = annotation.get("result")
        if not isinstance(results, list):
            raise RefusedError("an annotation has no list 'result'", "annotations")
        answers: dict[str, list[str]] = {}
        for result in results:
            value = result.get("value") if isinstance(result, dict) else None
            if isinstance(value, dict) and ("choices" in value or "taxonomy" in value):
                name = str(result.get("from_name", "label"))
                answers.setdefault(name, []).extend(_chosen(value, name))
        found.append(answers)
    return found


def chosen_paths(value: Mapping[str, Any], question: str) -> list[list[str]]:
    """The choices of an answer in Label Studio, each with those above it in a taxonomy; raises RefusedError."""
    if "choices" in value:
        return [[name] for name in _names(value["choices"], question)]
    paths = value["taxonomy"]
    if not isinstance(paths, list):
        raise RefusedError(f"{type_name(paths)}, expected a list of paths", question)
    return [_names(path, question) for path in paths]


def _chosen(value: Mapping[str, Any], question: str) -> list[str]:
    return [_PATH.join(path) for path in chosen_paths(value, question)]


def _flat_row(record: Record, options: ImportOptions) -> _Row | None:
    """A record of Label Studio's JSON-MIN or CSV, where answers are beside the data."""
    if record.get("was_cancelled") in (True, "True", "true"):
        return None
    data = {key: value for key, value in record.items() if key not in _OF_ANNOTATION and key != "id"}
    texts = options.text_columns or (("text",) if "text" in data else ())
    named = options.label_column if options.label_column in data else None
    answers: dict[str, list[str]] = {}
    for key, value in data.items():
        if key in texts or (named is not None and key != named):
            continue
        choices = _flat_choices(value, key, strings=bool(texts) or named is not None)
        if choices is not None:
            answers[key] = choices
    if not (answers or texts or named):
        raise RefusedError(f"pass label_column: the keys that may hold the labels are {_named(data)}")
    rest = {key: value for key, value in data.items() if key not in answers}
    return _Row(record.get("id"), rest, [answers] if any(answers.values()) else [])


def _flat_choices(value: Any, question: str, strings: bool) -> list[str] | None:
    """The choices of an answer; None of what is no answer."""
    if isinstance(value, dict) and ("choices" in value or "taxonomy" in value):
        return _chosen(value, question)
    if (
        isinstance(value, list)
        and value
        and all(
            isinstance(each, str) or (isinstance(each, dict) and ("choices" in each or "taxonomy" in each))
            for each in value
        )
    ):
        return [name for each in value for name in ([each] if isinstance(each, str) else _chosen(each, question))]
    if strings and isinstance(value, str):
        return [value] if value.strip() else []
    return None


def _argilla_answers(record: Record) -> list[dict[str, list[str]]]:
    responses = record.get("responses") or {}
    if not isinstance(responses, dict):
        raise RefusedError(f"{type_name(responses)}, expected an object of questions", "responses")
    by_user: dict[object, dict[str, list[str]]] = {}
    for question, given in responses.items():
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise RefusedError("expected a list of responses", question)
        for at, response in enumerate(given):
            value = response.get("value")
            is_label = isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
            if response.get("status") in (None, "submitted") and is_label:
                by_user.setdefault(response.get("user_id", at), {})[question] = _names(value, question)
    return list(by_user.values())


def _names(value: Any, question: str) -> list[str]:
    names = value if isinstance(value, list) else [value]
    wrong = next((each for each in names if not isinstance(each, str | int)), None)
    if wrong is not None or None in names:
        raise RefusedError(f"{type_name(wrong)}, expected a label", question)
    return [str(name) for name in names]


def _disagreement(one: Sequence[str], other: Sequence[str]) -> str:
    first, second = (shorten(", ".join(each)) or "nothing" for each in (one, other))
    return (
        f"annotators disagree ('{first}' and '{second}'): settle it in the tool (in Label Studio mark one annotation "
        "as ground truth and export JSON), or export one annotation of each record"
    )


def _named(keys: Any) -> str:
    shown = sorted(keys)
    return ", ".join(f"'{shorten(key)}'" for key in shown[:_MOST_SHOWN]) + (", ..." if len(shown) > _MOST_SHOWN else "")
