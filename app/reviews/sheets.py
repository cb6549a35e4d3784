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
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError
from app.formats.workbooks import sheets
from app.predictions.model_cache import LoadedModel, ModelCache
from app.reviews import decisions
from app.reviews.label_search import LabelIndex, index_of, load_reviewed
from app.reviews.schemas import DecisionRequest, ImportedDecisions, LineProblem
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_DECISIONS = 10_000
_MOST_PROBLEMS = 1000
_MOST_CHARACTERS = 32_767
_HIDDEN = ("review", "row", "revision")
_NEEDED = (*_HIDDEN, "decision")
_WIDTH, _WIDE = 16, 60

R, O = tables.ReviewRow, tables.ReviewOpinion


def write(session: Session, ref: str, state: str | None) -> tuple[str, bytes]:
    """The name of a queue and a workbook of its rows, with a column for decisions whose drop-down has the alternatives.

    Hidden columns have the queue's id, the row's number and its revision. Nothing distinguishes sure rows from others.

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
    choices = [f"choice_{n}" for n in range(1, n_labels + 1)]
    header = [*_HIDDEN, "id", *inputs, "decision", "comment", *labels, *choices]
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Review")
    for at, name in enumerate(header, 1):
        size = sheet.column_dimensions[get_column_letter(at)]
        size.width = _WIDE if name in inputs else _WIDTH
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
        cells = [review.id, row.row, row.revision, row.row_id, *(record.get(name) for name in inputs), row.label, None]
        cells += [value for pair in given for value in pair] + [label for label, _ in given]
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
        own = select(O).where(O.review_id == review.id, O.person == decisions.caller(session))
        before = {each.row: (each.label, each.comment) for each in session.scalars(own)}
        alternatives = {
            row: [each["label"] for each in given]
            for row, given in session.execute(select(R.row, R.alternatives).where(R.review_id == review.id))
        }
        id = review.id
    try:
        loaded: LoadedModel | None = load_reviewed(session, cache, ref)
    except NotFound:  # the version was deleted: the alternatives are what is left of its labels
        loaded = None
    known = _Labels(loaded, new_labels)
    lines = [line for line in _lines(path) if any(line.cells.values())]
    filled = [line for line in lines if line.cells["decision"] or line.cells.get("comment")]
    if len(filled) > MOST_DECISIONS:
        raise InvalidInput(f"the file has {len(filled):,} decisions; {MOST_DECISIONS:,} are the most: split it")
    n_decided = n_unchanged = 0
    problems: list[LineProblem] = []
    for line in filled:
        row = _whole(line.cells["row"])
        try:
            request, revision = _request(line, id, row, alternatives, known)
            assert row is not None
            if before.get(row) == (request.label, request.comment):
                n_unchanged += 1
                continue
            decisions.decide(session, id, row, request, revision)
            n_decided += 1
        except (_LineError, NotFound, Conflict) as error:
            problems.append(LineProblem(line=line.number, row=row, detail=str(error)))
        except InvalidInput as error:
            problems.append(LineProblem(line=line.number, row=row, detail=error.errors[0].detail))
        except PreconditionFailed:
            detail = "the row was changed after the file was made; download the rows again"
            problems.append(LineProblem(line=line.number, row=row, detail=detail))
    return ImportedDecisions(
        n_rows=len(lines),
        n_decided=n_decided,
        n_unchanged=n_unchanged,
        n_empty=len(lines) - len(filled),
        n_problems=len(problems),
        problems=problems[:_MOST_PROBLEMS],
    )


class _LineError(Exception):
    """What is wrong with a line."""


class _Line(NamedTuple):
    number: int
    cells: Mapping[str, str]


class _Labels:
    """What people write as a label: the label itself, its name or notation, or a code that lost its leading zeros."""

    def __init__(self, loaded: LoadedModel | None, new_labels: bool) -> None:
        self._loaded, self._new = loaded, new_labels
        self._index: LabelIndex | None = None if loaded is None else index_of(loaded)
        self._stripped: dict[str, str | None] = {}
        for label in self._index.places if self._index else ():
            bare = label.lstrip("0")
            if label.isdigit():
                self._stripped[bare] = None if bare in self._stripped else label

    def find(self, written: str, alternatives: Sequence[str]) -> str:
        """The label; raises _LineError."""
        if written in alternatives or (self._index is not None and written in self._index.places):
            return written
        if self._loaded is not None and self._index is not None:
            form = self._loaded.label_form(written)
            if form in self._index.places:
                return form
            named = self._index.named(written)
            if named is not None:
                return named
            bare = self._stripped.get(written)  # spreadsheets make numbers of codes
            if bare is not None:
                return bare
        if self._new:
            return written if self._loaded is None else self._loaded.label_form(written)
        raise _LineError(f"no label or unambiguous name is {written[:80]!r}; correct the decision, or allow new labels")


def _request(
    line: _Line, id: str, row: int | None, alternatives: Mapping[int, Sequence[str]], known: _Labels
) -> tuple[DecisionRequest, int]:
    """The decision of a line, and the revision that the row had; raises _LineError."""
    written, comment = line.cells["decision"], line.cells.get("comment") or None
    revision = _whole(line.cells["revision"])
    if line.cells["review"] != id:
        raise _LineError("the line belongs to another review, or its hidden column review was changed")
    if row is None or revision is None or row not in alternatives:
        raise _LineError("the hidden columns row and revision were changed; copy the decision into a new download")
    if not written:
        raise _LineError("a comment without a decision is not stored; decide the row")
    if len(written) > 1000 or len(comment or "") > 2000:
        raise _LineError("a label has at most 1000 characters and a comment 2000")
    return DecisionRequest(label=known.find(written, alternatives[row]), comment=comment), revision


def _lines(path: Path) -> Iterator[_Line]:
    """The lines below the header, from the first sheet that has the columns of a review."""
    missing: list[str] = list(_NEEDED)
    for rows in _tables(path):
        header = [name.strip() for name in next(rows, [])]
        lacks = [name for name in _NEEDED if name not in header]
        if not lacks:
            for number, row in enumerate(rows, 2):
                cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
                yield _Line(number, {name: cells.get(name, "") for name in (*_NEEDED, "comment")})
            return
        missing = min(missing, lacks, key=len)
    raise InvalidInput(
        "the file is not a spreadsheet of this review",
        [Item(f"the header has no column {name}; edit the file that the review gave out", "/file") for name in missing],
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
