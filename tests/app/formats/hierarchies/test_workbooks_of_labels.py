"""Vocabularies that an office keeps as a spreadsheet: sheets by name, titles above the header, errors by row."""

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from app.formats.hierarchies.apart import read_hierarchy
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.formats import format_by_name
from app.hierarchies.schemas import HierarchyOptions

EDGES = [
    ["Subjects of the office"],
    [],
    ["code", "title", "parent"],
    ["01", "Law", None],
    ["01.1", "Civil\nlaw", "01"],
    [],
    ["007", "Agents", "01"],
    [8, "Numbers", None],
]
NACE = [["NACE Rev. 2", None], ["Code", "Heading"], ["A", "AGRICULTURE"], ["01", "Crops"], ["01.1", "Cereals"]]


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    path.write_bytes(stream.getvalue())
    return path


def read(path: Path, format: str = "csv", **options: str) -> Vocabulary:
    return read_hierarchy(path, format, HierarchyOptions.model_validate(options), Bounds(), lambda: None)


def parsed(path: Path, format: str = "csv", **options: str) -> Vocabulary:
    """As ``read``, without a process of its own, which takes most of a second."""
    return parse_hierarchy(path, format, HierarchyOptions.model_validate(options), Bounds())


def test_codes_keep_their_zeros_below_titles_and_blank_rows(tmp_path: Path) -> None:
    found = read(workbook(tmp_path / "subjects.xlsx", Subjects=EDGES), language="en")
    assert set(found.tree.edges) == {("root", "01"), ("01", "01.1"), ("01", "007"), ("root", "8")}
    assert found.labels["01.1"].names == {"en": "Civil law"}
    assert found.read_as == {"sheet": "Subjects", "label": "code", "parent": "parent", "header": "3", "names": "title"}


def test_a_sheet_is_named_and_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = workbook(tmp_path / "upload", Notes=[["read me"]], Codes=NACE)
    found = parsed(path, "codes", sheet="Codes")
    assert set(found.tree.edges) == {("root", "A"), ("A", "01"), ("01", "01.1")}
    assert found.read_as["sheet"] == "Codes"
    with pytest.raises(FormatError, match=r"no sheet 'Nace' among the 2 sheets of the workbook \('Notes', 'Codes'\)"):
        parsed(path, "codes", sheet="Nace")


def test_faults_have_the_rows_of_the_sheet(tmp_path: Path) -> None:
    path = workbook(tmp_path / "subjects.xlsx", Subjects=[*EDGES, [None, "Nobody", "01"]])
    with pytest.raises(FormatError) as refused:
        read(path)
    assert [error.row for error in refused.value.errors] == [9]


def test_libreoffice_s_files_are_read() -> None:
    ods = Path(__file__).parents[3] / "corpus" / "datasets" / "good.ods"
    with pytest.raises(FormatError, match="it needs the columns parent and child"):
        read(ods)
    with pytest.raises(FormatError, match=r"line 2: the top, 'root', has no children; '1.5', '2' have no parent"):
        read(ods, parent_field="x", id_field="label")


@pytest.mark.parametrize(
    ("content", "format", "options", "detail"),
    [
        (b"PK\x03\x04 and no more", "csv", {}, "the workbook is damaged"),
        (b"parent,child\nroot,a\n", "csv", {"sheet": "Codes"}, "sheet is an option of workbooks"),
        (b"PK\x03\x04 and no more", "paths", {}, "which formats csv and codes read"),
    ],
)
def test_what_is_no_workbook_is_refused(
    content: bytes, format: str, options: dict[str, str], detail: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=detail):
        parsed(path, format, **options)


def test_an_empty_sheet_names_the_others(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"sheet 'Empty' of the workbook is empty: pass sheet .*'Codes'"):
        parsed(workbook(tmp_path / "two.xlsx", Empty=[], Codes=NACE))


def test_the_file_s_ending_says_that_it_is_a_table() -> None:
    assert format_by_name("Subjects.XLSX") == format_by_name("subjects.ods") == ("csv", None)
