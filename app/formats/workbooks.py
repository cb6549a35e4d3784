"""Workbooks of Excel (.xlsx) and LibreOffice (.ods): one sheet, read as the CSV file that it would be saved as."""

from __future__ import annotations

import csv
import datetime
import io
import tempfile
import zipfile
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from app.datasets.schemas import ImportOptions
from app.formats.columns import is_read
from app.formats.csv_header import blocks_of_csv, first_cells
from app.formats.csv_table import parse_csv
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, Parsed, RowError, row_error, shorten
from app.formats.workbook_cells import check_cells, column_of, errors_by_row, formulas_without_values
from app.plurals import counted

_SHOWN_SHEETS = 5


def parse_workbook(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read a sheet of a workbook as a CSV file with these options; raises FormatError with the sheet's rows."""
    with _written(path, most, options) as (sheet, lines):
        try:
            return parse_csv(sheet, options, "comma")
        except FormatError as error:
            report = [replace(one, row=bisect_right(lines, one.row)) for one in error.report]
            raise FormatError(_with_errors(report, path, options.sheet), error.n_errors) from None


def _with_errors(report: Sequence[RowError], path: Path, sheet: str | None) -> list[RowError]:
    """Faults of rows with the errors of their cells, which are read as empty cells."""
    with zipfile.ZipFile(path) as archive:
        errors = errors_by_row(archive, _sheet(path, sheet)[0])
    return [replace(one, detail=f"{one.detail}; {errors[one.row]}") if one.row in errors else one for one in report]


def first_values(path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int) -> dict[str, list[str]]:
    """The cells of a sheet's first rows by column; raises FormatError."""
    with _written(path, most, options) as (sheet, _):
        return first_cells(sheet, options, "comma", n_rows)


@contextmanager
def blocks(path: Path, options: ImportOptions, most: MostUnpacked) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """The names of a sheet's columns, and its cells as strings in blocks of rows, to be used within the context."""
    with _written(path, most, options) as (sheet, _), blocks_of_csv(sheet, options, most, "comma") as found:
        yield found


@contextmanager
def _written(path: Path, most: MostUnpacked, options: ImportOptions) -> Iterator[tuple[Path, array[int]]]:
    """A sheet, by default the first, as CSV in UTF-8, and the line on which each of its rows begins.

    Cells may have several lines. Text cells are unchanged, so codes keep their leading zeros. Whole numbers have no
    decimal point, dates are written as ISO 8601, and blank rows are left out.

    Raises
    ------
    FormatError
        The workbook is damaged, is empty, has no such sheet, or decompresses to too much.
    """
    _check_size(path, most)
    with (
        tempfile.TemporaryFile() as target,
        io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True) as text,
    ):
        writer, width, lines, line = csv.writer(text, lineterminator="\n"), None, array("q"), 1
        found, others, rows = _sheet(path, options.sheet, options)
        for cells in rows:
            row = [_text(cell) for cell in cells]
            lines.append(line)
            if not any(row):
                continue
            width = _width(row) if width is None else width
            if any(row[width:]):
                raise row_error(len(lines), f"the row has cells to the right of the header of sheet '{found}'")
            row = row[:width] + [""] * (width - len(row))
            writer.writerow(row)
            line += 1 + sum(cell.count("\n") for cell in row)
        if width is None:
            raise _empty(found, others)
        text.flush()
        yield Path(f"/proc/self/fd/{target.fileno()}"), lines


@contextmanager
def as_lines(path: Path, most: MostUnpacked, sheet: str | None = None) -> Iterator[tuple[Path, str]]:
    """As :func:`_written`, with the sheet's name; each row of the sheet, blank ones too, is one line of its number.

    No row is taken for the header, and line breaks within cells are blanks.
    """
    _check_size(path, most)
    with (
        tempfile.TemporaryFile() as target,
        io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True) as text,
    ):
        found, others, rows = _sheet(path, sheet)
        writer, is_empty = csv.writer(text, lineterminator="\n"), True
        for cells in rows:
            row = [" ".join(_text(cell).splitlines()) for cell in cells]
            is_empty = is_empty and not any(row)
            writer.writerow(row if any(row) else [])
        if is_empty:
            raise _empty(found, others)
        text.flush()
        yield Path(f"/proc/self/fd/{target.fileno()}"), found


def sheets(path: Path, most: MostUnpacked) -> Iterator[Iterator[list[str]]]:
    """The rows of each sheet of a workbook, with cells as in :func:`as_lines`.

    Raises
    ------
    FormatError
        The workbook is damaged, or decompresses to too much.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    _check_size(path, most)
    try:
        with path.open("rb") as file:
            book = CalamineWorkbook.from_filelike(file)
            for name in book.sheet_names:
                yield ([_text(cell) for cell in row] for row in book.get_sheet_by_name(name).iter_rows())
    except CalamineError as error:
        raise row_error(1, _damage(path)) from error


def _empty(name: str, others: str) -> FormatError:
    way = f": pass sheet to read another ({others})" if others else ""
    return row_error(1, f"sheet '{name}' of the workbook is empty{way}")


def _check_size(path: Path, most: MostUnpacked) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            most.check(sum(entry.file_size for entry in archive.infolist()), path.stat().st_size)
            check_cells(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise row_error(1, "the workbook is damaged or ends too early") from error


def _sheet(path: Path, name: str | None, options: ImportOptions | None = None) -> tuple[str, str, Iterator[list[Any]]]:
    """The name of a sheet, those of others, and its rows; formulas need values in the columns that are read."""
    # loaded by those who read a workbook alone
    from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

    try:
        with path.open("rb") as file:
            book = CalamineWorkbook.from_filelike(file)
        names = book.sheet_names
        if name is not None and name not in names:
            detail = (
                f"no sheet '{shorten(name)}' among the {counted(len(names), 'sheet')} of the workbook ({_shown(names)})"
            )
            raise row_error(1, detail)
        chosen = names[0] if name is None else name
        sheet = book.get_sheet_by_name(chosen)
        _require_values(path, chosen, sheet, options)
        rows = sheet.iter_rows()
    except (CalamineError, WorksheetNotFound, IndexError) as error:
        raise row_error(1, _damage(path)) from error
    return shorten(chosen), _shown([other for other in names if other != chosen]), rows


def _require_values(path: Path, name: str, sheet: Any, options: ImportOptions | None) -> None:
    with zipfile.ZipFile(path) as archive:
        found = formulas_without_values(archive, name)
    if found and options is not None:
        header: list[Any] = next((row for row in sheet.iter_rows() if any(row)), [])
        unread = {sheet.start[1] + at for at, cell in enumerate(header) if not is_read(_text(cell), options)}
        found = [(cell, row) for cell, row in found if column_of(cell) not in unread]
    if found:
        (cell, row), n_more = found[0], len(found) - 1
        last = max(row for _, row in found)
        where = "of the row" if last == row else f"down to row {last:,}"
        more = f" ({counted(n_more, 'more cell')} {where} too)" if n_more else ""
        way = "open the workbook in a spreadsheet program, which computes formulas, and save it"
        way += "" if options is None else ", or name columns that are not needed in ignore_columns"
        raise row_error(row, f"cell {cell} has a formula without a value{more}: {way}")


def _damage(path: Path) -> str:
    """What is wrong with a workbook that cannot be opened; other documents are packed alike."""
    try:
        with zipfile.ZipFile(path) as archive:
            folders = {name.partition("/")[0] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        folders = set()
    for folder, what in (("word", "a Word document"), ("ppt", "a presentation")):
        if folder in folders:
            return f"the file is {what}, not a workbook: save its table as .xlsx or CSV"
    return "the workbook is damaged, or has no sheet of cells: save it again in a spreadsheet program"


def _shown(names: list[str]) -> str:
    more = ", ..." if len(names) > _SHOWN_SHEETS else ""
    return ", ".join(f"'{shorten(name)}'" for name in names[:_SHOWN_SHEETS]) + more


def _width(header: list[str]) -> int:
    return max(at for at, name in enumerate(header, 1) if name)


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)
