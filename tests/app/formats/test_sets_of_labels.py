"""Rows with sets of labels, in every format."""

import json
from pathlib import Path

import numpy as np
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.label_sets import LabelSets
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed, Problems, RowError

SETS = [["b", "a"], [], ["c"], ["a", "c"]]
FILES = {
    "svmlight": "b,a 1:1 2:2\n 1:3\nc # one\na, c 2:1 cost:2\n",
    "csv": 'label,x,y\n"b, a",1,2\n,3,0\nc,0,0\n"c,a,c",0,1\n',
    "jsonl": "".join(
        json.dumps({"label": names, "indices": indices, "values": values}) + "\n"
        for names, indices, values in zip(SETS, [[0, 1], [0], [], [1]], [[1, 2], [3], [], [1]], strict=True)
    ),
}


def read(tmp_path: Path, format: str, content: str | bytes, separator: str | None = ",") -> Parsed:
    path = tmp_path / "data"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return parse(path, format, ImportOptions(label_separator=None if format == "jsonl" else separator))


def faults(tmp_path: Path, format: str, content: str | bytes) -> list[RowError]:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, format, content)
    return caught.value.errors


@pytest.mark.parametrize("format", FILES)
def test_every_format_reads_the_same_sets(tmp_path: Path, format: str) -> None:
    parsed = read(tmp_path, format, FILES[format])
    assert parsed.labels == ["a", "b", "c"]
    assert parsed.label_indptr is not None
    assert (parsed.n_rows, parsed.y.dtype, parsed.label_indptr.dtype) == (4, np.int32, np.int64)
    assert (parsed.y.tolist(), parsed.label_indptr.tolist()) == ([0, 1, 2, 0, 2], [0, 2, 2, 3, 5])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[1, 2], [3, 0], [0, 0], [0, 1]]


def test_numbers_in_svmlight_sets_are_written_as_integers(tmp_path: Path) -> None:
    parsed = read(tmp_path, "svmlight", "03,1.0 1:1\n1,3,1 1:1\n")
    assert (parsed.labels, parsed.y.tolist()) == (["1", "3"], [0, 1, 0, 1])


def test_another_separator_cuts_a_csv_cell(tmp_path: Path) -> None:
    parsed = read(tmp_path, "csv", "text,label\nhello,a b;c\nbye,\n", ";")
    assert (parsed.labels, parsed.y.tolist()) == (["a b", "c"], [0, 1])
    assert parsed.label_indptr is not None
    assert parsed.label_indptr.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("format", "content", "row", "detail"),
    [
        ("csv", 'label,x\na,1\n"a,,b",2\n', 3, "the label is empty"),
        ("svmlight", "a 1:1\na,\tb, 1:1\n", 2, "the label is empty"),
        ("svmlight", b"a 1:1\nb,\xff 1:1\n", 2, "the label is not valid UTF-8"),
        ("jsonl", '{"label": ["a"], "text": "x"}\n{"label": "b", "text": "y"}\n', 2, "a list in some rows but not in"),
        ("jsonl", '{"label": ["a", null], "text": "x"}\n', 1, "null, expected a string, an integer or a boolean"),
        ("jsonl", '{"label": ["a", " "], "text": "x"}\n', 1, "the label is empty"),
    ],
)
def test_a_faulty_set_is_reported_by_its_row(
    tmp_path: Path, format: str, content: str | bytes, row: int, detail: str
) -> None:
    fault = faults(tmp_path, format, content)[0]
    assert fault.row == row
    assert detail in fault.detail


def test_a_list_of_numbers_without_a_separator_says_how_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="label_separator"):
        read(tmp_path, "svmlight", "3,5 1:1\n", None)


def test_blocks_share_their_names_and_a_name_that_is_given_twice_counts_once() -> None:
    sets, problems = LabelSets(";"), Problems()
    sets.add(np.array([1, 0, 1]), [b"", b" b ; a;b"], np.array([1, 2, 3]), problems)
    sets.add(np.array([0]), ["c;a"], np.array([4]), problems)
    labels, y, indptr = sets.build()
    assert not problems
    assert (labels, y.tolist(), indptr.tolist()) == (["a", "b", "c"], [0, 1, 0, 1, 0, 2], [0, 2, 2, 4, 6])
