"""Cells of workbooks that a reader does not show as they are: too many, formulas without values, and errors.

Cells are counted before a library reserves memory: two cells far apart, or one that is repeated, make a small file
claim a table of any size.
"""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from defusedxml import ElementTree

from app.formats.table import row_error

MOST_CELLS = 1 << 25

_BLOCK_BYTES = 1 << 20
_LONGEST_TAG = 1 << 20
_ATTRIBUTES = rb"((?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)"
_XLSX_TAG = re.compile(rb"<(?:\w+:)?(c|row)(?=[\s/>])" + _ATTRIBUTES + rb">")
_REFERENCE = re.compile(rb"\sr\s*=\s*[\"']\s*([A-Za-z]{0,8})([0-9]{1,12})")
_ODS_TAG = re.compile(rb"<table:(table|table-row|table-cell|covered-table-cell)(?=[\s/>])" + _ATTRIBUTES + rb">")
_ODS_CELLS = ("table:table-cell", "table:covered-table-cell")
_BEGIN, _END = rb"<(?:\w+:)?", rb"</(?:\w+:)?"
_FORMULA_ALONE = re.compile(
    _BEGIN + rb"c(?=\s)([^<>]*)>\s*" + _BEGIN + rb"f(?=[\s/>])[^<>]*(?:/>|>[^<]*" + _END + rb"f>)\s*"
    rb"(?:" + _BEGIN + rb"v\s*(?:/>|>\s*" + _END + rb"v>)\s*)?" + _END + rb"c>"
)  # fmt: skip
_ERROR = re.compile(
    _BEGIN + rb"c(?=\s)([^<>]*\st\s*=\s*[\"']e[\"'][^<>]*)>\s*(?:" + _BEGIN + rb"f(?=[\s/>])[^<>]*(?:/>|>[^<]*" + _END
    + rb"f>)\s*)?" + _BEGIN + rb"v\s*>([^<]{1,20})<"
)  # fmt: skip
_IS_TEXT = re.compile(rb"\st\s*=\s*[\"']str[\"']")
# of a cell whose end is not read yet; a formula has at most 8,192 characters
_LONGEST_CELL = 1 << 16
_REPEATED = re.compile(rb"table:number-(?:rows|columns)-repeated\s*=\s*[\"']\s*([0-9]{1,12})")


def check_cells(archive: zipfile.ZipFile, most: int = MOST_CELLS) -> None:
    """Refuse a workbook (.xlsx or .ods) whose sheets span too many cells, or are no XML; raises FormatError."""
    for name in archive.namelist():
        if name == "content.xml":
            _require_xml(archive, name)
            n_cells = _ods_cells(archive, name)
        elif name.startswith("xl/worksheets/") and name.endswith(".xml"):
            n_cells = _xlsx_cells(archive, name)
        else:
            continue
        if n_cells > most:
            detail = (
                f"a sheet spans {n_cells:,} cells, at most {most:,} are read: delete cells far from the table, or save "
                "the sheet as CSV"
            )
            raise row_error(1, detail)


def formulas_without_values(archive: zipfile.ZipFile, sheet: str) -> list[tuple[str, int]]:
    """Cells of a sheet, such as A2, with their rows, that have a formula but no value: readers see nothing.

    Programs that write formulas without computing them leave out the values. A formula whose value is the empty text
    has the type of a text.
    """
    if "content.xml" in archive.namelist():
        return _ods_formulas(archive, sheet).without_values
    cells = (match[1] for match in _cells(archive, sheet, _FORMULA_ALONE))
    return [_place(attributes) for attributes in cells if not _IS_TEXT.search(attributes)]


def errors_by_row(archive: zipfile.ZipFile, sheet: str) -> dict[int, str]:
    """The first cell of each row of a sheet that has an error, in words: cell B2 has the error #N/A."""
    if "content.xml" in archive.namelist():
        return _ods_formulas(archive, sheet).errors
    found: dict[int, str] = {}
    for match in _cells(archive, sheet, _ERROR):
        cell, row = _place(match[1])
        found.setdefault(row, f"cell {cell} has the error {match[2].decode('utf-8', 'replace')}")
    return found


def column_of(cell: str) -> int:
    """The number of a cell's column, from 0: 1 of B2."""
    return _column_number(cell.rstrip("0123456789").upper().encode()) - 1


def _place(attributes: bytes) -> tuple[str, int]:
    found = _REFERENCE.search(attributes)
    return ("?", 1) if found is None else ((found[1] + found[2]).decode(), int(found[2]))


def _cells(archive: zipfile.ZipFile, sheet: str, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    part = _part_of(archive, sheet)
    if part is None:
        return
    with archive.open(part) as file:
        left = b""
        while block := file.read(_BLOCK_BYTES):
            left += block
            end = 0
            for match in pattern.finditer(left):
                yield match
                end = match.end()
            left = left[max(end, len(left) - _LONGEST_CELL) :]


def _part_of(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """The document of a sheet of .xlsx; None where the workbook does not say it."""
    try:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    except (KeyError, ElementTree.ParseError, ValueError):
        return None
    named = [each for each in book.iter() if each.tag.endswith("}sheet") and each.get("name") == sheet]
    id = next((value for each in named for name, value in each.items() if name.endswith("}id")), None)
    target = next((each.get("Target", "") for each in links.iter() if each.get("Id") == id), "")
    part = target[1:] if target.startswith("/") else f"xl/{target}"
    return part if part in archive.namelist() else None


def _require_xml(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse a document that is not well-formed: calamine never stops at such a file."""
    try:
        with archive.open(name) as file:
            expat.ParserCreate().ParseFile(file)
    except expat.ExpatError as error:
        detail = f"the workbook is damaged: {name}, line {error.lineno}, character {error.offset + 1}: "
        raise row_error(1, f"{detail}{expat.ErrorString(error.code)}") from None


def _xlsx_cells(archive: zipfile.ZipFile, name: str) -> int:
    n_rows, columns = 1, {b"A"}
    counted, widest = 0, 0
    for tag, attributes in _tags(archive, name, _XLSX_TAG):
        if tag == b"row":
            counted = 0
        else:
            counted += 1
            widest = max(widest, counted)  # cells without a reference follow each other
        found = _REFERENCE.search(attributes)
        if found is not None:
            columns.add(found[1].upper())
            n_rows = max(n_rows, int(found[2]))
        elif tag == b"row":
            n_rows += 1
    return n_rows * max(widest, *map(_column_number, columns))


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


@dataclass
class _Table:
    """One sheet as its rows are counted; empty rows and cells at an end count only once something follows."""

    n_rows: int = 0
    width: int = 0
    empty_rows: int = 0
    repeats: int = 0
    cells: int = 0
    empty_cells: int = 0

    def begin_row(self, repeats: int) -> None:
        if self.cells:
            self.n_rows += self.empty_rows + self.repeats
            self.width, self.empty_rows = max(self.width, self.cells), 0
        else:
            self.empty_rows += self.repeats
        self.repeats, self.cells, self.empty_cells = repeats, 0, 0

    def add_cells(self, repeats: int, empty: bool) -> None:
        self.empty_cells += repeats
        if not empty:
            self.cells, self.empty_cells = self.cells + self.empty_cells, 0


def _ods_cells(archive: zipfile.ZipFile, name: str) -> int:
    total, table = 0, _Table()
    for tag, attributes in _tags(archive, name, _ODS_TAG):
        found = _REPEATED.search(attributes)
        repeats = 1 if found is None else int(found[1])
        if tag == b"table":
            table.begin_row(0)
            total, table = total + table.n_rows * table.width, _Table()
        elif tag == b"table-row":
            table.begin_row(repeats)
        else:
            table.add_cells(repeats, attributes.endswith(b"/") and b"value" not in attributes)
    table.begin_row(0)
    return total + table.n_rows * table.width


@dataclass
class _Formulas:
    """What is wrong with cells of one sheet of .ods, as its document is read."""

    sheet: str
    without_values: list[tuple[str, int]] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    here: bool = False
    row: int = 1
    n_rows: int = 1
    column: int = 0
    cell: dict[str, str] | None = None
    text: str = ""

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "table:table":
            self.here, self.row = attributes.get("table:name") == self.sheet, 1
        elif tag == "table:table-row":
            self.n_rows, self.column = int(attributes.get("table:number-rows-repeated", 1)), 0
        elif tag in _ODS_CELLS:
            self.cell, self.text = attributes, ""

    def add(self, text: str) -> None:
        if self.cell is not None:
            self.text += text

    def end(self, tag: str) -> None:
        if tag == "table:table-row":
            self.row += self.n_rows
        elif tag in _ODS_CELLS and self.cell is not None:
            if self.here and "table:formula" in self.cell:
                self.check(f"{_letters(self.column)}{self.row}", self.cell)
            self.column += int(self.cell.get("table:number-columns-repeated", 1))
            self.cell = None

    def check(self, cell: str, attributes: dict[str, str]) -> None:
        if attributes.get("calcext:value-type") == "error":
            self.errors.setdefault(self.row, f"cell {cell} has the error {self.text.strip()[:20]}")
        elif not self.text and not any(name.endswith("-value") or name == "office:value" for name in attributes):
            self.without_values.append((cell, self.row))


def _ods_formulas(archive: zipfile.ZipFile, sheet: str) -> _Formulas:
    found, parser = _Formulas(sheet), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = found.begin, found.end
    parser.CharacterDataHandler = found.add
    with archive.open("content.xml") as file:
        parser.ParseFile(file)
    return found


def _letters(column: int) -> str:
    """The name of a column by its number from 0, as a spreadsheet has it."""
    return ("" if column < 26 else _letters(column // 26 - 1)) + chr(65 + column % 26)


def _tags(archive: zipfile.ZipFile, name: str, pattern: re.Pattern[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Names and attributes of the tags in a document, read in blocks."""
    with archive.open(name) as file:
        left = b""
        while block := file.read(_BLOCK_BYTES):
            left += block
            end = 0
            for match in pattern.finditer(left):
                yield match[1], match[2]
                end = match.end()
            begin = max(end, left.rfind(b"<"))
            left = left[begin:]
            if len(left) > _LONGEST_TAG:
                raise row_error(1, "the workbook is damaged, or has no sheet of cells")
