"""Workbooks of answers (.xlsx): a sheet of sure rows, one of rows to review, and one about the model."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._write_only import WriteOnlyWorksheet
from openpyxl.worksheet.datavalidation import DataValidation

from app.errors import InvalidInput

SURE, REVIEW, ROWS, MODEL = "Sure", "To review", "Rows", "Model"
MOST_ROWS = 1_048_575
_MOST_CHARACTERS = 32_767
_WIDTH, _WIDE = 16, 48
# columns that people do not need stay, hidden, so that a file that comes back has them
_HIDDEN = ("row", "score", "path", "known_terms", "alternative_scores", "scores", "paths")
_LABEL = re.compile(r"label(_\d+)?")


def write_workbook(
    tables: Iterable[pa.Table], file: BinaryIO, answers: Sequence[str], about: Sequence[tuple[str, Any]]
) -> None:
    """Write rows of answers, row by row, and what is known of the model.

    Parameters
    ----------
    tables : iterable of Table
        Columns of the input and of the answers, without lists; all have the same columns.
    file : binary file
    answers : sequence of str
        The columns of answers, the last of a table.
    about : sequence of (str, object)
        The lines of the last sheet.

    Raises
    ------
    InvalidInput
        There are more rows than a sheet can have.

    Notes
    -----
    Strings are text cells, whatever they begin with. The choices of a row's drop-down are its labels, which hidden
    columns at the right repeat side by side, so that one rule serves the whole column.
    """
    book, n_rows = Workbook(write_only=True), 0
    sheets: dict[str, _Sheet] = {}
    for table in tables:
        if not sheets:
            asked = table["sure"].null_count < table.num_rows
            sheets = {title: _Sheet(book, title, table, answers) for title in ((SURE, REVIEW) if asked else (ROWS,))}
        n_rows += table.num_rows
        if n_rows > MOST_ROWS:
            raise InvalidInput(f"a sheet has at most {MOST_ROWS:,} rows: choose csv or parquet as the format")
        sure = [_is_sure(cell) for cell in table["sure"].to_pylist()]
        columns = [column.to_pylist() for column in table.columns]
        for is_sure, row in zip(sure, zip(*columns, strict=True), strict=True):
            sheets[ROWS if ROWS in sheets else SURE if is_sure else REVIEW].append(row)
    for sheet in sheets.values():
        sheet.finish()
    last = book.create_sheet(MODEL)
    last.column_dimensions["A"].width, last.column_dimensions["B"].width = 36, _WIDE
    for title, value in about:
        last.append([_bold(last, title), _cell(value, _text_cell(last))])
    book.save(file)


def _is_sure(cell: bool | str | None) -> bool:
    """Whether the label is sure, or all labels of a set are."""
    if isinstance(cell, str):
        return bool(cell) and "false" not in cell
    return bool(cell)


class _Sheet:
    def __init__(self, book: Workbook, title: str, table: pa.Table, answers: Sequence[str]) -> None:
        self._sheet: WriteOnlyWorksheet = book.create_sheet(title)
        columns, n_inputs = table.column_names, len(table.column_names) - len(answers)
        labels = [name for name in answers if _LABEL.fullmatch(name)]
        self._choices = [columns.index(name) for name in labels] if len(labels) > 1 else []
        for at, name in enumerate(columns, 1):
            size = self._sheet.column_dimensions[get_column_letter(at)]
            size.width = _WIDE if at <= n_inputs or name.startswith("name") else _WIDTH
            size.hidden = at > n_inputs and name.startswith(_HIDDEN)
        first = len(columns) + 1
        for at in range(first, first + len(self._choices)):
            self._sheet.column_dimensions[get_column_letter(at)].hidden = True
        if self._choices:
            label = get_column_letter(self._choices[0] + 1)
            begin, end = get_column_letter(first), get_column_letter(first + len(self._choices) - 1)
            rule = DataValidation("list", formula1=f"${begin}2:${end}2", allow_blank=True, showErrorMessage=False)
            rule.add(f"{label}2:{label}{MOST_ROWS + 1}")
            self._sheet.data_validations.append(rule)
        self._sheet.freeze_panes = "A2"
        self._width = len(columns)
        self._texts = [_text_cell(self._sheet) for _ in range(len(columns) + len(self._choices))]
        titles = [*columns, *(f"choice_{n}" for n in range(1, len(self._choices) + 1))]
        self._sheet.append([_bold(self._sheet, title) for title in titles])
        self._n_rows = 1

    def append(self, row: Sequence[Any]) -> None:
        cells = [*row, *(row[at] for at in self._choices)]
        self._sheet.append([_cell(value, text) for value, text in zip(cells, self._texts, strict=True)])
        self._n_rows += 1

    def finish(self) -> None:
        self._sheet.auto_filter.ref = f"A1:{get_column_letter(self._width)}{self._n_rows}"


def _cell(value: Any, text: WriteOnlyCell) -> Any:
    """A value as it is written; strings are put into the cell ``text``, which is written before it is used again."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if not isinstance(value, str):
        value = str(value)
    if ILLEGAL_CHARACTERS_RE.search(value):
        value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
    text.value = value[:_MOST_CHARACTERS]
    text.data_type = "s"  # also of what looks like a formula or an error
    return text


def _text_cell(sheet: WriteOnlyWorksheet) -> WriteOnlyCell:
    """A cell that stays text when a person edits it."""
    cell = WriteOnlyCell(sheet)
    cell.number_format = "@"
    return cell


def _bold(sheet: WriteOnlyWorksheet, title: str) -> WriteOnlyCell:
    cell = WriteOnlyCell(sheet, title)
    cell.data_type = "s"
    cell.font = Font(bold=True)
    return cell
