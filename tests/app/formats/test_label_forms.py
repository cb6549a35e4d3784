"""Labels are kept in one form, whatever format and type the file has; what cannot be read safely is refused."""

import json
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.likeness import key, merged, similar_labels
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed


def files(folder: Path, labels: list[Any]) -> dict[str, Path]:
    """The same rows as CSV, JSON lines and Parquet, as pandas writes them."""
    table = pa.table({"label": labels, "text": [f"t{k}" for k in range(len(labels))]})
    paths = {name: folder / f"data.{name}" for name in ("csv", "jsonl", "parquet")}
    cells = ["" if label is None else str(label) for label in labels]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    paths["csv"].write_text("label,text\n" + "".join(f"{cell},t{k}\n" for k, cell in enumerate(quoted)), "utf-8")
    rows = [json.dumps({"label": label, "text": f"t{k}"}) for k, label in enumerate(labels)]
    paths["jsonl"].write_text("\n".join(rows), "utf-8")
    pq.write_table(table, paths["parquet"])
    return paths


def read(path: Path, format: str, **options: Any) -> Parsed:
    return parse(path, format, ImportOptions(**options))


def of_rows(parsed: Parsed) -> list[Any]:
    if parsed.label_indptr is None:
        return [parsed.labels[at] for at in parsed.y.tolist()]
    ends = parsed.label_indptr.tolist()
    return [[parsed.labels[at] for at in parsed.y[a:b].tolist()] for a, b in pairwise(ends)]


@pytest.mark.parametrize(
    ("labels", "forms"),
    [
        ([True, False, True], ["true", "false", "true"]),
        ([7.0, 11.0, 7.0], ["7", "11", "7"]),
        ([7, 11], ["7", "11"]),
        (["007", "11"], ["007", "11"]),
        (["1.0", "1"], ["1", "1"]),
        (["cafe\u0301", "caf\u00e9"], ["caf\u00e9", "caf\u00e9"]),
        (["True", "no"], ["True", "no"]),
    ],
)
def test_all_formats_read_the_same_labels(tmp_path: Path, labels: list[Any], forms: list[str]) -> None:
    for format, path in files(tmp_path, labels).items():
        assert of_rows(read(path, format)) == forms, format


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_number_that_is_not_whole_is_no_label_and_the_cast_is_named(tmp_path: Path, format: str) -> None:
    with pytest.raises(FormatError, match=r"2\.5 is not a whole number; a label is a string"):
        read(files(tmp_path, [1.0, 2.5])[format], format)


@settings(max_examples=30, deadline=None)
@given(names=st.lists(st.text("abe\u0301\u00e9 01.", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=6))
def test_labels_of_any_spelling_agree_between_formats(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    found = [of_rows(read(path, format)) for format, path in files(tmp_path_factory.mktemp("f"), names).items()]
    assert found[0] == found[1] == found[2]
    assert all(unicodedata.is_normalized("NFC", label) for label in found[0])


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "cells", [["[a, b]", "[b]"], ["['a', 'b']", "['b']"], ['["a", "b"]', '["b"]'], ["['a' 'b']", "['b']"]]
)
def test_cells_that_look_like_lists_are_refused_read_or_kept(tmp_path: Path, format: str, cells: list[str]) -> None:
    path = files(tmp_path, cells)[format]
    with pytest.raises(FormatError, match="look like lists: pass label_lists=read to read them"):
        read(path, format)
    assert of_rows(read(path, format, label_lists="read")) == [["a", "b"], ["b"]]
    assert of_rows(read(path, format, label_lists="keep")) == cells


@pytest.mark.parametrize(
    "cells",
    [
        ["{'a', 'b'}", "{'b'}", "set()"],
        ["frozenset({'a', 'b'})", "frozenset({'b'})", "frozenset()"],
        ["('a', 'b')", "('b',)", "()"],
        ["{a,b}", "{b}", "{}"],
        ["array(['a', 'b'], dtype=object)", "array(['b'], dtype=object)", "array([], dtype=object)"],
        ["Index(['a', 'b'], dtype='object')", "Index(['b'], dtype='object')", "Index([], dtype='object')"],
        ['c("a", "b")', '"b", "b"', "[ ]"],
        ['{"choices": ["a", "b"]}', '{"choices": ["b"]}', '{"choices": []}'],
    ],
)
def test_lists_are_read_as_each_program_writes_them(tmp_path: Path, cells: list[str]) -> None:
    path = files(tmp_path, cells)["csv"]
    with pytest.raises(FormatError, match="look like lists: pass label_lists=read to read them"):
        read(path, "csv")
    assert of_rows(read(path, "csv", label_lists="read")) == [["a", "b"], ["b"], []]


def test_numbers_with_blanks_between_them_are_a_list(tmp_path: Path) -> None:
    path = files(tmp_path, ["[1 2]", "[2]", "[10 1]"])["csv"]
    assert of_rows(read(path, "csv", label_lists="read")) == [["1", "2"], ["2"], ["1", "10"]]


@pytest.mark.parametrize("cell", ['[["a"], ["b"]]', '{"a": 1, "b": 0}', "['a', 'b'", "['a', 'b]", "[true, null]"])
def test_a_list_without_a_safe_reading_is_refused(tmp_path: Path, cell: str) -> None:
    path = files(tmp_path, ["['a', 'b']", cell])["csv"]
    with pytest.raises(FormatError, match="cannot be read as a list of labels: write it as"):
        read(path, "csv", label_lists="read")
    assert of_rows(read(path, "csv", label_lists="keep")) == ["['a', 'b']", cell]


def test_uris_in_one_cell_are_read_as_a_set(tmp_path: Path) -> None:
    path = files(tmp_path, ["<http://a/1> <http://a/2>", "<http://a/1>"])["csv"]
    assert of_rows(read(path, "csv", label_lists="read")) == [["http://a/1", "http://a/2"], ["http://a/1"]]
    assert of_rows(read(path, "csv", label_separator=" ")) == [["http://a/1", "http://a/2"], ["http://a/1"]]


def test_lists_that_a_separator_cuts_are_refused(tmp_path: Path) -> None:
    path = files(tmp_path, ["['a', 'b']", "['b', 'a']"])["csv"]
    with pytest.raises(FormatError, match="are pieces of a list: pass label_lists=read"):
        read(path, "csv", label_separator=",")
    assert of_rows(read(path, "csv", label_separator=",", label_lists="read")) == [["a", "b"], ["a", "b"]]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_rows_without_a_label_are_refused_left_out_or_kept_alone(tmp_path: Path, format: str) -> None:
    path = files(tmp_path, ["a", None, "b", None])[format]
    with pytest.raises(FormatError) as refused:
        read(path, format)
    assert refused.value.n_errors == 2
    left = read(path, format, without_label="leave_out")
    assert (of_rows(left), list(left.texts or ()), left.n_left_out) == (["a", "b"], ["t0", "t2"], 2)
    only = read(path, format, without_label="only")
    assert (of_rows(only), list(only.texts or ()), only.labels) == ([[], []], ["t1", "t3"], [])


def test_labels_that_look_alike_are_found_with_what_they_differ_in() -> None:
    labels = ["Tools", "Tools\u200b", "tools", "\ufb01le", "file", "\u2163", "IV", "110", "0110", "<a>", "a", "b"]
    assert [(group.labels, group.kinds) for group in similar_labels(labels)] == [
        (("Tools", "Tools\u200b", "tools"), ("unicode", "case")),
        (("\ufb01le", "file"), ("unicode",)),
        (("\u2163", "IV"), ("unicode",)),
        (("110", "0110"), ("numbers",)),
        (("<a>", "a"), ("brackets",)),
    ]
    assert [group.kinds for group in similar_labels(["\u0130zmir", "izmir", "1.5", "1.50", "\u0661", "1"])] == [
        ("case",),
        ("numbers",),
        ("numbers",),
    ]


@given(st.text(min_size=1, max_size=6))
def test_a_label_is_alike_in_every_form_and_case(label: str) -> None:
    forms = {unicodedata.normalize(form, label) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert len({key(each) for each in forms | {f"{each}\u200b" for each in forms}}) == 1


def test_labels_are_merged_into_the_one_that_most_rows_have(tmp_path: Path) -> None:
    assert merged(["Tools", "tools", "b"], [1, 2, 3], ["case"]) == ["tools", "tools", "b"]
    path = files(tmp_path, ["tools", "Tools", "tools", "0110", "110", "110"])["jsonl"]
    assert of_rows(read(path, "jsonl")) == ["tools", "Tools", "tools", "0110", "110", "110"]
    assert of_rows(read(path, "jsonl", merge_labels=("case", "numbers"))) == ["tools"] * 3 + ["110"] * 3
    assert of_rows(read(path, "jsonl", label_type="integer")) == ["tools", "Tools", "tools", "110", "110", "110"]


def test_annifs_corpora_in_csv_are_read_without_the_brackets_of_their_uris(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    rows = 'document_id,text,subject_uris\n1,"one, two",<http://a/1>  <http://a/2>\n2,three,<http://a/1>\n3,four,\n'
    path.write_text(rows)
    assert declared_format(path, ImportOptions()) == "annif"
    parsed = read(path, "annif")
    assert of_rows(parsed) == [["http://a/1", "http://a/2"], ["http://a/1"], []]
    assert (list(parsed.texts or ()), list(parsed.ids or ())) == (["one, two", "three", "four"], ["1", "2", "3"])
