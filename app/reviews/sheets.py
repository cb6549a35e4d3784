"""Review queues as spreadsheets: rows go out as a workbook, and come back with decisions as a workbook or CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import Conflict, InvalidInput, Item, NotFound, PreconditionFailed
from app.formats.labels import MAX_LABEL
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError
from app.formats.workbooks import sheets
from app.predictions.model_cache import LoadedModel, ModelCache
from app.reviews import decisions
from app.reviews.label_search import load_reviewed
from app.reviews.rows import caller
from app.reviews.schemas import MAX_LABELS, DecisionRequest, ImportedDecisions, LineProblem
from app.reviews.written_labels import UnknownLabel, WrittenLabels
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_DECISIONS = 10_000
_MOST_PROBLEMS = 1000
_MOST_CHARACTERS = 32_767
_HIDDEN = ("review", "row", "revision")
_NEEDED = (*_HIDDEN, "decision")
_CHECKED = "checked"
_WIDTH, _WIDE = 16, 60

R, O = tables.ReviewRow, tables.ReviewOpinion


def write(session: Session, ref: str, state: str | None) -> tuple[str, bytes]:
    """The name of a queue and a workbook of its rows, with a column for decisions whose drop-down has the alternatives.

    Hidden columns have the queue's id, the row's number and its revision. Nothing distinguishes sure rows from others.
    In queues of sets the decision is filled with the predicted set, in place of a drop-down, and a column ``checked``
    confirms it as it is.

    Raises
    ------
    NotFound
        There is no such queue.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        query = select(R).where(R.review_id == review.id)
        if state is not None:
            query = query.where(R.state == state)
        rows = session.scalars(query.order_by(R.place)).all()
    columns = list(dict.fromkeys(name for row in rows for name in (row.record or {})))
    inputs = [*(["text"] if any(row.text is not None for row in rows) else []), *columns]
    n_labels = max((len(row.alternatives) for row in rows), default=0)
    suffixes = ["", *(f"_{n}" for n in range(2, n_labels + 1))]
    labels = [f"{field}{suffix}" for suffix in suffixes for field in ("label", "name")][: 2 * n_labels]
    separator = review.label_separator
    choices = [f"choice_{n}" for n in range(1, n_labels + 1)] if separator is None else []
    decided = ["decision", "comment"] if separator is None else ["decision", _CHECKED, "comment"]
    header = [*_HIDDEN, "id", *inputs, *decided, *labels, *choices]
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Review")
    for at, name in enumerate(header, 1):
        size = sheet.column_dimensions[get_column_letter(at)]
        size.width = _WIDE if name in inputs or (name == "decision" and separator is not None) else _WIDTH
        size.hidden = name in _HIDDEN or name in choices
    if choices:
        decision = get_column_letter(header.index("decision") + 1)
        first, last = get_column_letter(len(header) - len(choices) + 1), get_column_letter(len(header))
        rule = DataValidation("list", formula1=f"${first}2:${last}2", allow_blank=True, showErrorMessage=False)
        rule.add(f"{decision}2:{decision}{len(rows) + 1}")
        sheet.data_validations.append(rule)
    sheet.freeze_panes = "A2"
    sheet.append([_cell(sheet, name, bold=True) for name in header])
    for row in rows:
        given = [(each["label"], each["name"]) for each in row.alternatives]
        given += [(None, None)] * (n_labels - len(given))
        record = {"text": row.text} | (row.record or {})
        cells = [review.id, row.row, row.revision, row.row_id, *(record.get(name) for name in inputs)]
        cells += [_filled(row.alternatives, row.labels, separator)] + [None] * (len(decided) - 1)
        cells += [value for pair in given for value in pair]
        cells += [label for label, _ in given] if choices else []
        sheet.append([_cell(sheet, value) for value in cells])
    stream = io.BytesIO()
    book.save(stream)
    return review.name, stream.getvalue()


def read(session: Session, cache: ModelCache, ref: str, path: Path, new_labels: bool) -> ImportedDecisions:
    """Record the decisions of a spreadsheet as the caller's, matched by queue, row and revision.

    Parameters
    ----------
    path : Path
        A workbook or a CSV file.
    new_labels : bool
        Accept labels that the model does not know.

    Raises
    ------
    NotFound
        There is no such queue.
    InvalidInput
        The file is not a spreadsheet of a review, or has too many decisions.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        own = select(O).where(O.review_id == review.id, O.person == caller(session))
        before = {each.row: each for each in session.scalars(own)}
        columns = select(R.row, R.revision, R.alternatives, R.labels).where(R.review_id == review.id)
        rows = {each.row: _Row(*each) for each in session.execute(columns)}
        id, separator = review.id, review.label_separator
    try:
        loaded: LoadedModel | None = load_reviewed(session, cache, ref)
    except NotFound:  # the version was deleted: the alternatives are what is left of its labels
        loaded = None
    known = WrittenLabels(loaded, new_labels)
    lines = [line for line in _lines(path) if any(line.cells.values())]
    found: list[tuple[int, _Row, DecisionRequest, int]] = []
    problems: list[LineProblem] = []
    n_empty = 0
    for line in lines:
        try:
            asked = _request(line, id, rows, before, known, separator)
        except (_LineError, UnknownLabel) as error:
            problems.append(LineProblem(line=line.number, row=_whole(line.cells["row"]), detail=str(error)))
            continue
        if asked is None:
            n_empty += 1
        else:
            found.append((line.number, *asked))
    n_filled = len(lines) - n_empty
    if n_filled > MOST_DECISIONS:
        raise InvalidInput(f"the file has {n_filled:,} decisions; at most {MOST_DECISIONS:,} are allowed: split it")
    n_decided = n_unchanged = 0
    for number, row, request, revision in found:
        old = before.get(row.number)
        if old is not None and old.comment == request.comment and decisions.same_labels(old.labels, request.labels):
            n_unchanged += 1
            continue
        detail = _decide(session, id, row.number, request, revision)
        if detail is None:
            n_decided += 1
        else:
            problems.append(LineProblem(line=number, row=row.number, detail=detail))
    problems.sort(key=lambda each: each.line)
    return ImportedDecisions(
        n_rows=len(lines),
        n_decided=n_decided,
        n_unchanged=n_unchanged,
        n_empty=n_empty,
        n_problems=len(problems),
        problems=problems[:_MOST_PROBLEMS],
    )


class _LineError(Exception):
    """What is wrong with a line."""


class _Line(NamedTuple):
    number: int
    cells: Mapping[str, str]


class _Row(NamedTuple):
    """What the queue has of a row."""

    number: int
    revision: int
    alternatives: list[dict[str, Any]]
    labels: list[str] | None


def _decide(session: Session, id: str, row: int, request: DecisionRequest, revision: int) -> str | None:
    """Record a decision; what is wrong with it, or None."""
    try:
        decisions.decide(session, id, row, request, revision)
    except (NotFound, Conflict) as error:
        return str(error)
    except InvalidInput as error:
        return error.errors[0].detail
    except PreconditionFailed:
        return "the row was changed after the file was made; download the rows again"
    return None


def _request(
    line: _Line,
    id: str,
    rows: Mapping[int, _Row],
    before: Mapping[int, tables.ReviewOpinion],
    known: WrittenLabels,
    separator: str | None,
) -> tuple[_Row, DecisionRequest, int] | None:
    """The row of a line, its decision and the revision that it had; None without a decision. Raises _LineError.

    A decision that the caller has made before keeps its comment where the line has none.
    """
    written, comment = line.cells["decision"], line.cells["comment"] or None
    checked = bool(line.cells[_CHECKED]) and separator is not None
    if not (written or comment or checked):
        return None
    number, revision = _whole(line.cells["row"]), _whole(line.cells["revision"])
    if line.cells["review"] != id:
        raise _LineError("the line belongs to another review, or its hidden column review was changed")
    if number is None or revision is None or number not in rows:
        raise _LineError("the hidden columns row and revision were changed; copy the decision into a new download")
    row = rows[number]
    if len(comment or "") > 2000:
        raise _LineError("a comment has at most 2000 characters")
    alternatives = [each["label"] for each in row.alternatives]
    if separator is None:
        labels = [known.find(written, alternatives)] if written else []
        left = not labels
    else:
        labels = known.find_set(written, alternatives, separator)
        fillings = [_filling(row.alternatives, row.labels)]
        fillings += [_filling(row.alternatives, None)] if revision != row.revision else []
        left = not checked and (not labels or any(decisions.same_labels(labels, each) for each in fillings))
    own = before.get(number)
    if own is not None and decisions.same_labels(own.labels, labels):
        return row, DecisionRequest(labels=labels, comment=comment or own.comment), revision
    if left and comment is None:
        return None
    if left:
        what = "decide the row" if separator is None else f"change the decision, or fill in the column {_CHECKED}"
        raise _LineError(f"a comment without a decision is not stored; {what}")
    if len(labels) > MAX_LABELS or any(len(label) > MAX_LABEL for label in labels):
        raise _LineError(f"a label has at most {MAX_LABEL} characters, and a set at most {MAX_LABELS} labels")
    return row, DecisionRequest(labels=labels, comment=comment), revision


def _filling(alternatives: Sequence[Mapping[str, Any]], labels: Sequence[str] | None) -> Sequence[str]:
    """The set with which a cell is filled: the decision, or before there is one what was predicted."""
    return [each["label"] for each in alternatives if each.get("predicted")] if labels is None else labels


def _filled(
    alternatives: Sequence[Mapping[str, Any]], labels: Sequence[str] | None, separator: str | None
) -> str | None:
    if separator is None:
        return labels[0] if labels else None
    return separator.join(_filling(alternatives, labels))


def _lines(path: Path) -> Iterator[_Line]:
    """The lines below the header, from the first sheet that has the columns of a review."""
    missing: list[str] = list(_NEEDED)
    for rows in _tables(path):
        header = [name.strip() for name in next(rows, [])]
        lacks = [name for name in _NEEDED if name not in header]
        if not lacks:
            for number, row in enumerate(rows, 2):
                cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
                yield _Line(number, {name: cells.get(name, "") for name in (*_NEEDED, "comment", _CHECKED)})
            return
        missing = min(missing, lacks, key=len)
    raise InvalidInput(
        "the file is not a spreadsheet of this review",
        [
            Item(f"the header has no column {name}; edit the file that was exported from the review", "/file")
            for name in missing
        ],
    )


def _tables(path: Path) -> Iterator[Iterator[list[str]]]:
    """The sheets of a workbook, or the one table of a CSV file with any of the usual separators."""
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(b"PK"):
        most = settings()
        try:
            yield from sheets(path, MostUnpacked(most.max_unpacked_bytes))
        except FormatError as error:
            raise InvalidInput("the workbook cannot be read", [Item(error.errors[0].detail, "/file")]) from error
        return
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        fault = Item("expected a workbook (.xlsx) or a CSV file in UTF-8", "/file")
        raise InvalidInput("the file cannot be read", [fault]) from error
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    yield csv.reader(io.StringIO(text, newline=""), delimiter=separator)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _cell(sheet: Any, value: Any, bold: bool = False) -> Any:
    """A value as it is written; strings are text cells, whatever they begin with, and stay text when edited."""
    if value is None or (isinstance(value, bool | int | float) and not bold):
        text = WriteOnlyCell(sheet, None if value is None else value)
    else:
        written = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", str(value))[:_MOST_CHARACTERS]
        text = WriteOnlyCell(sheet, written)
        text.data_type = "s"
    if not isinstance(value, bool | int | float):
        text.number_format = "@"
    if bold:
        text.font = Font(bold=True)
    return text
