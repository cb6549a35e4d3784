"""Workbooks of Excel and LibreOffice: sheets by name, rows as the sheet counts them, and no more cells than fit."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed
from app.formats.workbook_cells import check_cells, formulas_without_values

NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
)
MIMETYPE = "application/vnd.oasis.opendocument.spreadsheet"
MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{MIMETYPE}"/></manifest:manifest>'
)


def ods_of(**tables: str) -> bytes:
    """A file as LibreOffice packs it, of sheets in XML."""
    sheets = "".join(f'<table:table table:name="{name}">{rows}</table:table>' for name, rows in tables.items())
    body = f"<office:body><office:spreadsheet>{sheets}</office:spreadsheet></office:body>"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), MIMETYPE)
        archive.writestr("content.xml", f"<office:document-content {NAMESPACES}>{body}</office:document-content>")
        archive.writestr("META-INF/manifest.xml", MANIFEST)
    return stream.getvalue()


def ods(**sheets: list[list[Any]]) -> bytes:
    return ods_of(**{name: "".join(map(_row, rows)) for name, rows in sheets.items()})


def _row(cells: list[Any]) -> str:
    return f"<table:table-row>{''.join(map(_cell, cells))}</table:table-row>"


def _cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if value == "#N/A":  # as LibreOffice writes it
        types = 'office:value-type="string" office:string-value="" calcext:value-type="error"'
        return f'<table:table-cell table:formula="of:=NA()" {types}><text:p>#N/A</text:p></table:table-cell>'
    if isinstance(value, str) and value.startswith("="):
        return f'<table:table-cell table:formula="of:{escape(value, {chr(34): "&quot;"})}"/>'
    if isinstance(value, str):
        lines = "".join(f"<text:p>{escape(line)}</text:p>" for line in value.split("\n"))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


def xlsx(**sheets: list[list[Any]]) -> bytes:
    book, stream = openpyxl.Workbook(write_only=True), io.BytesIO()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


WRITERS = {"xlsx": xlsx, "ods": ods}
every_format = pytest.mark.parametrize("format", sorted(WRITERS))


def read(folder: Path, content: bytes, format: str, **options: Any) -> Parsed:
    path = folder / "data"
    path.write_bytes(content)
    assert declared_format(path, ImportOptions()) == format
    return parse(path, format, ImportOptions(**options))


@every_format
def test_a_sheet_is_read_by_its_name_and_else_the_first(tmp_path: Path, format: str) -> None:
    content = WRITERS[format](first=[["label", "text"], ["a", "one"]], second=[["label", "text"], ["007", "two"]])
    assert read(tmp_path, content, format).labels == ["a"]
    assert read(tmp_path, content, format, sheet="second").labels == ["007"]
    with pytest.raises(FormatError, match=re.escape("no sheet 'third' among the 2 sheets of the workbook ('first', ")):
        read(tmp_path, content, format, sheet="third")


@every_format
def test_an_empty_first_sheet_is_refused_with_the_names_of_others(tmp_path: Path, format: str) -> None:
    content = WRITERS[format](notes=[], rows=[["label", "text"], ["a", "one"]])
    with pytest.raises(FormatError, match=re.escape("sheet 'notes' of the workbook is empty: pass sheet to read ")):
        read(tmp_path, content, format)


@every_format
def test_columns_are_inferred_from_the_named_sheet(tmp_path: Path, format: str) -> None:
    content = WRITERS[format](a=[["x"]], b=[["label", "size", "colour"], *([["k", 1.5, "red"], ["l", 2, "blue"]] * 9)])
    parsed = read(tmp_path, content, format, sheet="b", infer_columns=True)
    assert parsed.columns is not None
    assert (parsed.columns.numbers, parsed.columns.categories) == (("size",), ("colour",))


@every_format
def test_a_fault_has_the_row_of_the_sheet(tmp_path: Path, format: str) -> None:
    """Blank rows and cells of several lines count as the program counts them."""
    rows = [[None], ["label", "x", "note"], ["a", 1, "one\ntwo\nthree"], [None], ["b", "no", "four"]]
    with pytest.raises(FormatError) as refused:
        read(tmp_path, WRITERS[format](s=rows), format, ignore_columns=("note",))
    assert [(one.row, one.column) for one in refused.value.errors] == [(5, "x")]


@every_format
def test_a_fault_names_the_error_of_its_cell(tmp_path: Path, format: str) -> None:
    content = WRITERS[format](Sheet=[["text", "label"], ["a", "x"], ["b", "#N/A"]])
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content, format)
    (fault,) = refused.value.report
    assert (fault.row, fault.detail) == (3, "the label is empty; cell B3 has the error #N/A")


TWO_SHEETS = {
    "First": [["text", "label"], ["a", "x"]],
    "Other": [["text", "label"], ['=CONCATENATE("a","b")', "x"]] * 2,
}


@every_format
def test_formulas_without_values_are_refused_with_their_first_cell(tmp_path: Path, format: str) -> None:
    content = WRITERS[format](**TWO_SHEETS)
    assert list(read(tmp_path, content, format).texts or ()) == ["a"]
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content, format, sheet="Other")
    (fault,) = refused.value.report
    assert fault.row == 2
    more = "cell A2 has a formula without a value (1 more cell down to row 4 too): open the workbook"
    assert fault.detail.startswith(more)


@every_format
@pytest.mark.parametrize(
    "options", [{"ignore_columns": ("sum",)}, {"text_columns": ("text",), "other_columns": "ignore"}]
)
def test_formulas_of_columns_that_are_not_read_need_no_values(
    tmp_path: Path, format: str, options: dict[str, Any]
) -> None:
    content = WRITERS[format](s=[[None, "text", "sum", "label"], [None, "one", "=1+1", "a"]])
    assert list(read(tmp_path, content, format, **options).texts or ()) == ["one"]
    with pytest.raises(FormatError, match=r"cell C2 has a formula .* name columns that are not needed in ignore_col"):
        read(tmp_path, content, format, infer_columns=True)


def test_types_and_texts_are_values_of_formulas(tmp_path: Path) -> None:
    content = xlsx(**TWO_SHEETS)
    cells = '<c r="A2" t="str"><f>A1</f><v></v></c><c r="B2"><f>1+1</f><v>2</v></c><c r="C2"><f>A1</f></c>'
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(stream, "w") as archive:
        for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels"):
            archive.writestr(name, source.read(name))
        archive.writestr("xl/worksheets/sheet2.xml", f'<worksheet><row r="2">{cells}</row></worksheet>')
        assert formulas_without_values(archive, "First") == []
    with zipfile.ZipFile(stream) as archive:
        assert formulas_without_values(archive, "Other") == [("C2", 2)]
    formula, rest = '<table:table-cell table:formula="of:=A1"', 'table:number-columns-repeated="26"'
    cells = f'{formula} office:value-type="string" office:string-value=""/>{formula} {rest}/>{formula}/>'
    row = (
        f'<table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row><table:table-row>{cells}'
    )
    with zipfile.ZipFile(io.BytesIO(ods_of(s=f"{row}</table:table-row>"))) as archive:
        assert formulas_without_values(archive, "s") == [("B3", 3), ("AB3", 3)]


def cells_of_xlsx(rows: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{rows}</sheetData></worksheet>")
    return stream.getvalue()


FAR = [
    cells_of_xlsx('<row r="1"><c r="A1"><v>1</v></c><c r="XFD1048576"><v>1</v></c></row>'),
    cells_of_xlsx("<row r='1048576'><c s='>' r = 'zz1048576'/></row>"),
    cells_of_xlsx('<x:row r="9999999"><x:c/><x:c/><x:c/><x:c/></x:row>'),
    ods_of(
        s='<table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="99" '
        'office:value="1"/></table:table-row>'
    ),
    ods_of(
        s='<table:table-row table:style-name=">" table:number-rows-repeated="99999999"><table:table-cell/>'
        "</table:table-row><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row>"
    ),
]


@pytest.mark.parametrize("content", FAR, ids=range(len(FAR)))
def test_cells_that_are_far_apart_are_refused_before_memory_is_reserved(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive, pytest.raises(FormatError, match="delete cells far from"):
        check_cells(archive)


def test_a_sheet_that_is_not_well_formed_is_refused_and_its_end_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "rows.ods").write_bytes(ods_of(s="<table:table-row>"))
    with pytest.raises(FormatError, match=r"damaged: content\.xml, line 1, character \d+: mismatched tag"):
        parse(tmp_path / "rows.ods", "ods", ImportOptions())


def test_empty_rows_and_cells_at_the_end_do_not_count() -> None:
    """LibreOffice writes the rest of each sheet as repeated empty cells."""
    row_of_rest = '<table:table-row table:number-rows-repeated="1048574">'
    rest = f'{row_of_rest}<table:table-cell table:number-columns-repeated="16384"/>'
    row = (
        '<table:table-row><table:table-cell office:value="1"/><table:table-cell table:number-columns-repeated="16383"/>'
    )
    content = ods_of(s=f"{row}</table:table-row>{rest}</table:table-row>")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_cells(archive, most=1)
