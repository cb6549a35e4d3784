"""Review queues as spreadsheets: rows go out as a workbook, and come back with decisions as a workbook or CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from app.config import settings
from app.errors import InvalidInput, Item
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError
from app.formats.workbooks import sheets
from app.reviews.file_decisions import Entry, filling
from app.store import tables

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MOST_CHARACTERS = 32_767
_HIDDEN = ("review", "row", "revision")
_NEEDED = (*_HIDDEN, "decision")
_CHECKED = "checked"
_WIDTH, _WIDE = 16, 60


def workbook(review: tables.Review, rows: Sequence[tables.ReviewRow]) -> bytes:
    """A workbook of rows, with a column for decisions whose drop-down has the alternatives.

    Hidden columns have the queue's id, the row's number and its revision. Nothing distinguishes sure rows from others.
    In queues of sets the decision is filled with the predicted set, in place of a drop-down, and a column ``checked``
    confirms it as it is.
    """
    columns = list(dict.fromkeys(name for row in rows for name in (row.beside_text or {})))
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
    wide = {*inputs} if separator is None else {*inputs, "decision"}
    for at, name in enumerate(header, 1):
        size = sheet.column_dimensions[get_column_letter(at)]
        size.width = _WIDE if name in wide else _WIDTH
        size.hidden = name in _HIDDEN or name in choices
    if choices:
        _offer(sheet, header, len(choices), len(rows))
    sheet.freeze_panes = "A2"
    sheet.append([_cell(sheet, name, bold=True) for name in header])
    for row in rows:
        given = [(each["label"], each["name"]) for each in row.alternatives]
        given += [(None, None)] * (n_labels - len(given))
        record = {"text": row.text} | (row.beside_text or {})
        cells = [review.id, row.row, row.revision, row.row_id, *(record.get(name) for name in inputs)]
        cells += [_filled(row.alternatives, row.labels, separator)] + [None] * (len(decided) - 1)
        cells += [value for pair in given for value in pair]
        cells += [label for label, _ in given] if choices else []
        sheet.append([_cell(sheet, value) for value in cells])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _offer(sheet: Any, header: Sequence[str], n_choices: int, n_rows: int) -> None:
    """Let the drop-down of each decision offer what the last columns of its row have."""
    decision = get_column_letter(header.index("decision") + 1)
    first, last = get_column_letter(len(header) - n_choices + 1), get_column_letter(len(header))
    rule = DataValidation("list", formula1=f"${first}2:${last}2", allow_blank=True, showErrorMessage=False)
    rule.add(f"{decision}2:{decision}{n_rows + 1}")
    sheet.data_validations.append(rule)


def entries(path: Path) -> Iterator[Entry]:
    """The lines of an edited workbook, or of a CSV file with its columns; raises InvalidInput."""
    for number, cells in _lines(path):
        if any(cells.values()):
            yield Entry(
                number,
                cells["review"],
                _whole(cells["row"]),
                _whole(cells["revision"]),
                written=cells["decision"],
                checked=bool(cells[_CHECKED]),
                comment=cells["comment"] or None,
            )


def _filled(
    alternatives: Sequence[Mapping[str, Any]], labels: Sequence[str] | None, separator: str | None
) -> str | None:
    if separator is None:
        return labels[0] if labels else None
    return separator.join(filling(alternatives, labels))


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The lines below the header, from the first sheet that has the columns of a review."""
    missing: list[str] = list(_NEEDED)
    for rows in _tables(path):
        header = [name.strip() for name in next(rows, [])]
        lacks = [name for name in _NEEDED if name not in header]
        if not lacks:
            for number, row in enumerate(rows, 2):
                cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
                yield number, {name: cells.get(name, "") for name in (*_NEEDED, "comment", _CHECKED)}
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
