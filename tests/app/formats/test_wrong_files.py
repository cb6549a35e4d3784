"""Files with faults of every day: the message names the place, the reason and the way out."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.detection import check_format, declared_format
from app.formats.parsing import parse
from app.formats.plain_file import head_of, plain_file
from app.formats.table import FormatError


def packed(members: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def workbook(**sheets: list[list[Any]]) -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    del book["Sheet"]
    book.save(stream)
    return stream.getvalue()


def marc(title: str) -> bytes:
    field = b"10\x1fa" + title.encode() + b"\x1e"
    directory = b"245%04d00000\x1e" % len(field)
    size = 24 + len(directory) + len(field) + 1
    return b"%05dnam a22%05d a 4500" % (size, 24 + len(directory)) + directory + field + b"\x1d"


TABLE = b"category,description\nfruit,red apple\nwater,deep sea\n"
ARFF = b"@attribute x numeric\n@attribute class {a,b}\n@data\n1,a\n2,c\n"

# content, format (None: detected), options, line, what is said of the reason, and of the way out
WRONG: dict[str, tuple[bytes, str | None, dict[str, Any], int, str, str]] = {
    "the delimiter of another file": (
        TABLE.replace(b",", b"|"),
        "csv",
        {"delimiter": "semicolon", "label_column": "category"},
        1,
        "the delimiter is semicolon",
        "did you mean delimiter=pipe?",
    ),
    "a label column that is misspelt": (
        TABLE,
        "csv",
        {"label_column": "catagory"},
        1,
        "no column 'catagory' among the 2 columns",
        "did you mean 'category'?",
    ),
    "Latin-1": (
        "label,text\na,grün\n".encode("latin-1"),
        "csv",
        {},
        2,
        "not valid UTF-8",
        "set encoding, for example to windows-1252",
    ),
    "UTF-16": ("label,text\na,b\n".encode("utf-16"), "csv", {}, 1, "byte order mark of UTF-16", "pass encoding=utf-16"),
    "bytes that are no text": (bytes(range(256)), "csv", {}, 1, "the file is not a text", "save the table as CSV"),
    "a gzip file that is cut": (
        gzip.compress(bytes(range(256)) * 99)[:200],
        None,
        {},
        1,
        "gzip data are damaged or end too early",
        "download the file again",
    ),
    "a comma within a cell": (
        b"label,text\na,red, round\n",
        "csv",
        {},
        2,
        "3 cells, expected 2",
        "double quotes around them",
    ),
    "a quote that stays open": (
        b'label,text\na,5" disk\nb,"x\n',
        "csv",
        {},
        3,
        "a quote is never closed",
        "quotes=false",
    ),
    "separators of thousands": (
        b'label,x\na,"1,234.5"\n',
        "csv",
        {},
        2,
        "'1,234.5' is not a number",
        "write numbers without separators of thousands",
    ),
    "a column of dates in a workbook": (
        workbook(rows=[["label", "text", "when"], ["a", "x", "2024-01-31"]]),
        None,
        {},
        1,
        "there is 1 more column: 'when'",
        "leave columns out with ignore_columns",
    ),
    "a sheet that is not there": (
        workbook(Data=[["label", "text"], ["a", "x"]], Notes=[["n"]]),
        None,
        {"sheet": "data"},
        1,
        "no sheet 'data' among the 2 sheets",
        "('Data', 'Notes')",
    ),
    "a Word document": (
        packed({"[Content_Types].xml": "<T/>", "word/document.xml": "<w/>"}),
        None,
        {},
        1,
        "the file is a Word document",
        "save its table as .xlsx or CSV",
    ),
    "fewer rows than declared": (
        b"3 4 2\n0 0:1\n1 2:1\n",
        "xmc",
        {},
        1,
        "declares 3 rows; the file has 2",
        "may have been cut short, or the count is wrong",
    ),
    "fewer features than there are": (
        b"2 2 2\n0 0:1\n1 1:1 5:1\n",
        "xmc",
        {},
        1,
        "the largest index is 5, in row 2",
        "indices begin at 0",
    ),
    "a nominal value that is not declared": (
        ARFF,
        "arff",
        {},
        5,
        "'c' is not one of the attribute's 2 values (a, b)",
        "declare it on line 2, or correct the row",
    ),
    "MARC records that are cut": (
        marc("Cooking") + marc("Oceans")[:-9],
        "marc",
        {"unlabelled": True},
        2,
        "the file ends within a record",
        "export it again",
    ),
    "an array without its end": (
        b'[{"text": "x", "label": "a"},\n',
        "jsonl",
        {},
        2,
        "the JSON array has no end",
        "lacks the last bracket",
    ),
    "JSON without a comma": (
        b'{"text": "x", "label": "a"}\n{"text": "y" "label": "b"}\n',
        "jsonl",
        {},
        2,
        "not valid JSON at character",
        "expecting ',' delimiter",
    ),
    "JSON with NaN": (
        b'{"x": NaN, "label": "a"}\n',
        "jsonl",
        {},
        1,
        "not valid JSON at character",
        "NaN and Infinity are not valid",
    ),
    "labels that are lists at times": (
        b'{"text": "x", "label": "a"}\n{"text": "y", "label": ["b"]}\n',
        "jsonl",
        {},
        2,
        "rows before it have one label each",
        "write a list in every row",
    ),
    "JSON of something else": (
        b'{"type": "FeatureCollection", "features": []}\n',
        "jsonl",
        {},
        1,
        "the key is missing",
        "the row has 'type', 'features'",
    ),
    "indices in any order": (
        b"a 3:1 1:2\n",
        "svmlight",
        {},
        1,
        "is not greater than the one before it",
        "sort each row's features by index",
    ),
    "indices from zero": (b"a 0:1\n", "svmlight", {}, 1, "the index of '0:1' is 0", "zero_based=true"),
    "an archive with paths upward": (
        packed({"../1.txt": "x"}),
        "archive",
        {},
        1,
        "leads out of the archive",
        "pack the folder again",
    ),
    "a text without subjects beside it": (
        packed({"c/1.txt": "x", "c/1.key": "a", "c/2.txt": "y"}),
        None,
        {},
        2,
        "'c/2.txt' has no .tsv or .key",
        "without_label=leave_out",
    ),
}


def read(path: Path, format: str | None, options: ImportOptions) -> None:
    with plain_file(path, encoding=options.encoding) as plain:
        if format is not None:
            check_format(head_of(plain, 1 << 16), format, options)
        parse(plain, format or declared_format(plain, options), options)


@pytest.mark.parametrize("case", WRONG)
def test_the_message_names_the_place_the_reason_and_the_way_out(tmp_path: Path, case: str) -> None:
    content, format, given, line, reason, way = WRONG[case]
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read(path, format, ImportOptions.model_validate(given))
    first = caught.value.errors[0]
    assert first.row == line
    assert reason in first.detail
    assert way in first.detail
