"""Excel workbooks (.xlsx): the first sheet, read as the CSV file that it would be saved as."""

from __future__ import annotations

import csv
import datetime
import io
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.datasets.schemas import ImportOptions
from app.formats.csv_table import parse_csv
from app.formats.plain_file import MostUnpacked
from app.formats.table import Parsed, row_error


def parse_xlsx(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read the first sheet of a workbook as a CSV file with these options; raises FormatError."""
    with as_csv(path, most) as sheet:
        return parse_csv(sheet, options, "comma")


@contextmanager
def as_csv(path: Path, most: MostUnpacked) -> Iterator[Path]:
    """A path of the first sheet as CSV in UTF-8, to be used within the context.

    Text cells are unchanged, so codes keep their leading zeros. Whole numbers have no decimal point, dates are written
    as ISO 8601, and blank rows are left out.

    Raises
    ------
    FormatError
        The workbook is damaged, is empty, or decompresses to too much.
    """
    _check_size(path, most)
    with (
        tempfile.TemporaryFile() as target,
        io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True) as text,
    ):
        writer, width = csv.writer(text, lineterminator="\n"), None
        for cells in _rows(path):
            row = [_text(cell) for cell in cells]
            if not any(row):
                continue
            width = _width(row) if width is None else width
            if any(row[width:]):
                raise row_error(1, "a row of the first sheet has cells to the right of the header")
            writer.writerow(row[:width] + [""] * (width - len(row)))
        if width is None:
            raise row_error(1, "the first sheet of the workbook is empty")
        text.flush()
        yield Path(f"/proc/self/fd/{target.fileno()}")


def _check_size(path: Path, most: MostUnpacked) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise row_error(1, "the workbook is damaged or ends too early") from error
    most.check(total, path.stat().st_size)


def _rows(path: Path) -> Iterator[list[Any]]:
    # loaded by those who read a workbook alone
    from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

    try:
        with path.open("rb") as file:
            book = CalamineWorkbook.from_filelike(file)
            yield from book.get_sheet_by_index(0).iter_rows()
    except (CalamineError, WorksheetNotFound, IndexError) as error:
        raise row_error(1, "the workbook is damaged, or has no sheet of cells") from error


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
