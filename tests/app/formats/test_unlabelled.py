"""Rows without labels, in every format that may have them."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from app.datasets.import_options import check_options
from app.datasets.schemas import ImportOptions
from app.errors import InvalidInput
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed

X = [[9.0, 1.0], [0.0, 2.0]]
OPTIONS = ImportOptions(unlabelled=True)


def arrow(format: str) -> bytes:
    table, file = pa.table({"a": [9.0, 0.0], "b": [1.0, 2.0], "id": ["p", "q"]}), io.BytesIO()
    if format == "parquet":
        pq.write_table(table, file)
    else:
        feather.write_feather(table, file)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, X=np.array(X))
    return file.getvalue()


FILES = {
    "svmlight": b"1:9 2:1\n2:2 # one\n",
    "csv": b"a,b,id\n9,1,p\n0,2,q\n",
    "tsv": b"a\tb\tid\n9\t1\tp\n0\t2\tq\n",
    "jsonl": b'{"features": {"a": 9, "b": 1}, "id": "p"}\n{"features": {"b": 2}, "id": "q"}\n',
    "parquet": arrow("parquet"),
    "arrow": arrow("arrow"),
    "npz": npz(),
}


def read(tmp_path: Path, format: str, content: bytes, options: ImportOptions = OPTIONS) -> Parsed:
    path = tmp_path / "data"
    path.write_bytes(content)
    return parse(path, format, options)


@pytest.mark.parametrize("format", FILES)
def test_every_format_reads_rows_without_labels(tmp_path: Path, format: str) -> None:
    check_options(OPTIONS, format)
    parsed = read(tmp_path, format, FILES[format])
    assert parsed.labels == []
    assert parsed.label_indptr is not None
    assert (parsed.y.tolist(), parsed.label_indptr.tolist()) == ([], [0, 0, 0])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == X
    assert parsed.ids is None or list(parsed.ids) == ["p", "q"]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "npz"])
def test_a_file_without_labels_is_refused_where_nothing_says_so(tmp_path: Path, format: str) -> None:
    with pytest.raises(FormatError):
        read(tmp_path, format, FILES[format], ImportOptions())


def test_the_delimiter_is_found_without_a_column_of_labels(tmp_path: Path) -> None:
    assert read(tmp_path, "csv", b"text;id\na leek;7\nsea, blue;8\n").n_rows == 2


def test_columns_of_tables_need_no_labels(tmp_path: Path) -> None:
    options = ImportOptions(unlabelled=True, number_columns=("a",), category_columns=("kind",))
    for format, content in (
        ("csv", b"a,kind\n1,x\n2,y\n"),
        ("jsonl", b'{"a": 1, "kind": "x"}\n{"a": 2, "kind": "y"}\n'),
    ):
        parsed = read(tmp_path, format, content, options)
        assert (parsed.kind, parsed.n_rows, parsed.labels) == ("table", 2, [])


def test_labels_that_are_there_are_not_taken_for_something_else(tmp_path: Path) -> None:
    content = b"label,a,b\nx,9,1\ny,0,2\n"
    with pytest.raises(FormatError, match="ignore_columns"):
        read(tmp_path, "csv", content)
    ignoring = OPTIONS.model_copy(update={"ignore_columns": ("label",)})
    assert read(tmp_path, "csv", content, ignoring).n_rows == 2


def test_lines_of_svmlight_that_begin_with_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, "svmlight", b"# made today\n1:9 2:1\n7 2:2\n\n8 2:2\n")
    assert [fault.row for fault in caught.value.errors] == [3, 5]


def test_annifs_files_have_labels() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_options(OPTIONS, "annif")
    assert caught.value.errors[0].pointer == "/unlabelled"


def test_labels_of_an_npz_file_are_refused_beside_unlabelled_unless_they_are_ignored(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.savez(file, X=np.array(X), y=np.array(["a", "b"]))
    with pytest.raises(FormatError) as raised:
        read(tmp_path, "npz", file.getvalue())
    assert "unlabelled is set, but the file has labels" in str(raised.value)
    assert raised.value.errors[0].column == "y"
    for more in ({"ignore_columns": ("y",)}, {"other_columns": "ignore"}):
        parsed = read(tmp_path, "npz", file.getvalue(), OPTIONS.model_copy(update=more))
        assert (parsed.labels, parsed.n_rows) == ([], 2)
