import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.formats import FORMATS
from app.datasets.formats.format import Format
from app.datasets.schemas import DatasetFormat, ImportOptions
from app.descriptions import loaded
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError


def arrow(write: Callable[[pa.BufferOutputStream, pa.Table], None]) -> bytes:
    table = pa.table({"kind": ["a"], "x": [2]})
    stream = pa.BufferOutputStream()
    write(stream, table)
    return bytes(stream.getvalue())


def ipc(stream: pa.BufferOutputStream, table: pa.Table) -> None:
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, kind=["a"], X=[[2.0]])
    return stream.getvalue()


def xlsx(rows: list[list[Any]]) -> bytes:
    book, stream = openpyxl.Workbook(write_only=True), io.BytesIO()
    sheet = book.create_sheet()
    for row in rows:
        sheet.append(row)
    book.save(stream)
    return stream.getvalue()


CONTENTS = {
    "svmlight": b"a 1:2",
    "csv": b"kind,x\na,2",
    "tsv": b"kind\tx\na\t2",
    "jsonl": b'{"kind": "a", "features": {"x": 2}}',
    "parquet": arrow(lambda stream, table: pq.write_table(table, stream)),
    "arrow": arrow(ipc),
    "npz": npz(),
    "xlsx": xlsx([["kind", "x"], ["a", 2]]),
}


@pytest.mark.parametrize("format", sorted(CONTENTS))
def test_every_format_reads_the_same_row_and_its_content_tells_it(tmp_path: Path, format: str) -> None:
    path, options = tmp_path / "data", ImportOptions(label_column="kind")
    path.write_bytes(CONTENTS[format])
    parsed = parse(path, format, options)
    assert (parsed.kind, parsed.labels, parsed.y.tolist()) == ("sparse", ["a"], [0])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[2.0]]
    assert declared_format(path, options) == format
    path.write_bytes(gzip.compress(CONTENTS[format]))
    assert declared_format(path, options) == format


@pytest.mark.parametrize(
    ("format", "content", "labels"),
    [
        ("annif", b"a text\t<http://example.org/1>\n", ["http://example.org/1"]),
        ("fasttext", b"__label__a __label__b a text\n", ["a", "b"]),
        ("xmc", b"1 3 2\n0,1 2:0.5\n", ["0", "1"]),
        ("jsonl", b'[\n  {"label": "a", "text": "b"}\n]', ["a"]),
    ],
)
def test_a_format_is_recognised_by_its_content(tmp_path: Path, format: str, content: bytes, labels: list[str]) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    assert declared_format(path, ImportOptions()) == format
    assert parse(path, format).labels == labels


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_a_description_is_whole(format: Format) -> None:
    assert format.name in get_args(DatasetFormat)
    assert (format.recognises is None) != (format.begins is None)
    columns = [] if format.columns is None else [format.columns.first_values, format.columns.blocks]
    for reference in (format.parser, *columns):
        assert callable(loaded(reference))
    assert format.options <= set(ImportOptions.model_fields)
    assert format.options >= set(format.fixed)
    assert ("infer_columns" in format.options) == (format.columns is not None)
    assert {shape.file.rpartition(".")[2] for shape in format.shapes} == {format.name}


def test_rows_of_tables_have_the_same_columns_and_those_of_json_lines_need_not() -> None:
    tables = {name for name, format in FORMATS.items() if format.is_table}
    assert tables == {"csv", "tsv", "xlsx", "ods", "parquet", "arrow"}


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"just some words\nand others", "the format cannot be detected"),
        (b"label\t1:x\na\t2\n", "svmlight or tsv"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 20, "save it as .xlsx or CSV"),
        (b"<?xml version='1.0'?>\n<html/>", "without MARC or Dublin Core records"),
        (b"\x80\x04\x95" + b"\0" * 20, "a pickle, which is never loaded"),
        ("label\ttext\n".encode("utf-16"), "encoding=utf-16"),
        ("label\ttext\n".encode("utf-16-le"), "no byte order mark"),
        (b"  \n\n", "blank lines"),
    ],
)
def test_content_that_tells_no_format_is_refused_with_what_to_do(tmp_path: Path, content: bytes, detail: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(detail)):
        declared_format(path, ImportOptions())


def test_a_file_of_another_format_than_the_named_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(CONTENTS["parquet"])
    with pytest.raises(FormatError, match="begins like parquet, not like csv"):
        parse(path, "csv")
    path.write_bytes(CONTENTS["csv"])
    with pytest.raises(FormatError, match="does not begin like npz"):
        parse(path, "npz")
