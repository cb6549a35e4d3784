import csv
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reading import reading

from app.datasets.schemas import ImportOptions
from app.formats import csv_table
from app.formats.csv_table import parse_csv
from app.formats.table import FormatError, Parsed, RowError
from app.formats.window import NOT_UTF8, Window

IN_HEADER = "as in the header (cells that contain the delimiter need double quotes around them)"


parse, outcome, errors = reading(parse_csv)


def written(rows: Sequence[Sequence[object]], newline: str = "\r\n") -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator=newline).writerows(rows)
    return stream.getvalue()


finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.one_of(st.sampled_from('",\n\r;# é'), st.characters(exclude_categories=["Cs"])), max_size=20)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abé"), finite, finite), min_size=1), st.sampled_from(["\n", "\r\n"]))
def test_numbers_that_are_written_are_read(path: Path, table: list[tuple[str, float, float]], newline: str) -> None:
    parsed = parse(path, written([["x", "label", "y, z"], *([x, label, z] for label, x, z in table)], newline))
    assert parsed.kind == "sparse"
    assert parsed.feature_names == ["x", "y, z"]
    assert parsed.X is not None
    assert parsed.X.has_canonical_format
    np.testing.assert_array_equal(parsed.X.toarray(), [[x, z] for _, x, z in table])
    assert [parsed.labels[c] for c in parsed.y] == [label for label, _, _ in table]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a,", 'b"']), texts, st.sampled_from(["train", "test"])), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(3, 50),
)
def test_texts_that_are_written_are_read_whatever_the_size_of_a_block(
    path: Path, table: list[tuple[str, str, str]], newline: str, block_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "Window", partial(Window, block_bytes=block_bytes))
        parsed = parse(path, written([["label", "text", "split"], *table], newline))
    assert parsed.kind == "text"
    assert parsed.texts is not None
    assert parsed.split is not None
    assert list(parsed.texts) == [text for _, text, _ in table]
    assert [parsed.labels[c] for c in parsed.y] == [label for label, _, _ in table]
    assert parsed.split.tolist() == [int(split == "test") for _, _, split in table]


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(st.binary(max_size=100), st.text('0123456789.,,,\n\n"-e ax\r', max_size=200).map(str.encode)),
    st.sampled_from([b"label,x\n", b"label,x,y\r\n", b"label,text\n", b""]),
)
@example(b'"', b"label,x\n")
@example(b'a,1\n"', b"label,x\n")
@example(b'"label\n,x', b"")
def test_any_bytes_are_read_or_refused(path: Path, content: bytes, header: bytes) -> None:
    path.write_bytes(header + content)
    found = outcome(path)
    if isinstance(found, FormatError):
        assert 1 <= len(found.errors) <= 20
        assert len(found.errors) <= found.n_errors
        assert all(1 <= one.row <= (header + content).count(b"\n") + 1 for one in found.errors)
    else:
        assert found.n_rows > 0
        assert found.X is not None or found.texts is not None


def test_quotes_newlines_blank_lines_and_a_byte_order_mark_are_read(path: Path) -> None:
    parsed = parse(path, '\ufefflabel,text\r\na,"one ""1""\r\ntwo, 2"\r\n\r\nb,\n"c",pla"in')
    assert parsed.texts is not None
    assert list(parsed.texts) == ['one "1"\r\ntwo, 2', "", 'pla"in']
    assert parsed.labels == ["a", "b", "c"]


def test_rows_of_delimiters_alone_are_blank_rows(path: Path) -> None:
    parsed = parse(path, 'label,text,id\r\na,one,1\r\n,,\r\n"",,""\r\n,\r\nb,,\r\n,,')
    assert (parsed.labels, list(parsed.texts or ()), list(parsed.ids or ())) == (["a", "b"], ["one", ""], ["1", ""])


def test_the_label_column_may_have_another_name_and_id_is_ignored(path: Path) -> None:
    parsed = parse(path, "id,kind,label\nrow one, b ,1\nrow two,a,2\n", label_column="kind")
    assert parsed.labels == ["a", "b"]
    assert parsed.feature_names == ["label"]


def test_labels_are_taken_as_they_are_written(path: Path) -> None:
    assert parse(path, "label,x\n3,1\n3.0,1\n03,1\n").labels == ["03", "3", "3.0"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("a,1,x", RowError(4, "y", "'x' is not a number", "text")),
        ("a,,1", RowError(4, "x", "the cell is empty, expected a number", "empty")),
        ("a,1,nan", RowError(4, "y", "'nan' is not a finite number")),
        ("a,1,-Infinity", RowError(4, "y", "'-Infinity' is not a finite number")),
        ("a,1,1e999", RowError(4, "y", "'1e999' is too large for a 64-bit number")),
        (",1,2", RowError(4, "label", "the label is empty", "no_label")),
        ("  ,1,2", RowError(4, "label", "the label is empty", "no_label")),
        ("a\tb,1,2", RowError(4, "label", "the label 'a\N{REPLACEMENT CHARACTER}b' has control characters")),
        (
            "a,1",
            RowError(
                4,
                None,
                f"2 cells, expected 3 {IN_HEADER}",
            ),
        ),
        (
            "a,1,2,",
            RowError(
                4,
                None,
                f"4 cells, expected 3 {IN_HEADER}",
            ),
        ),
        ('a,"1"2,3', RowError(4, None, "text after a closing quote (a quote inside a quoted cell is written twice)")),
        ('a,"1,3', RowError(4, None, "a quote is never closed (pass quotes=false if quotes are ordinary characters)")),
        ("a,1," + "z" * 99, RowError(4, "y", f"'{'z' * 37}...' is not a number", "text")),
        ("a,1_0,2", RowError(4, "x", "'1_0' is not a number", "text")),
    ],
)
def test_an_error_names_its_line_and_column(path: Path, row: str, error: RowError) -> None:
    assert errors(path, f"label,x,y\na,1,2\n\n{row}\nb,3,4\n") == [error]


def test_an_error_after_newlines_in_quotes_names_the_line_where_its_row_begins(path: Path) -> None:
    content = 'label,text\na,"1\n2\n3"\nb,"\n",x\n'
    assert errors(path, content) == [
        RowError(
            5,
            None,
            f"3 cells, expected 2 {IN_HEADER}",
        )
    ]


def test_bytes_that_are_not_utf8_are_named_by_their_line(path: Path) -> None:
    assert errors(path, b"label,text\na,b\nc,\xff\n") == [RowError(3, None, f"not {NOT_UTF8}")]


def test_an_unknown_split_is_named(path: Path) -> None:
    content = "label,x,split\na,1,train\na,1,dev\n"
    assert errors(path, content) == [RowError(3, "split", "the split is 'dev', expected train, test or validation")]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        ("", "the file is empty"),
        ("\ufeff", "the file is empty"),
        ("\nlabel,x\n", "the first line is blank"),
        ("label,x\n", "no rows"),
        ("label\na\n", "neither a text column nor numeric columns"),
        ("label,x,x\n", "two columns are named 'x'"),
        ("label,,x\n", "column 2 has no name"),
        ("class,x\na,1\n", "no column 'label' among the 2 columns"),
        ("class;x\na;1\n", "no column 'label' among the 2 columns of the header ('class', 'x'); pass label_column"),
        ("text\na\n", "name the label column, or unlabelled=true for rows without labels"),
        ("class;x,y;z\na;1,2;3\n", "no column 'label' among the 3 columns"),
        ("label,text,size,colour\n", "2 more columns: 'size', 'colour'"),
        ('label,"x\n', "the header is not a CSV record"),
    ],
)
def test_a_header_that_cannot_be_used_says_why(path: Path, content: str, detail: str) -> None:
    found = errors(path, content)
    assert found[0].row == 1
    assert detail in found[0].detail


def test_errors_of_all_kinds_come_in_the_order_of_lines_and_are_counted(path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        parse(path, "label,x,split\n" + "a,b,train\n" * 25 + ",1,train\na,1,neither\na,1\n")
    assert [error.row for error in caught.value.errors] == list(range(2, 22))
    assert caught.value.n_errors == 28


def weighed(path: Path, content: str) -> Parsed:
    path.write_text(content)
    return parse_csv(path, ImportOptions(weight_column="w"))


def test_a_file_that_is_wrong_in_fifty_thousand_ways_is_refused(path: Path) -> None:
    """In a moment; where each value looked through all rows this took a minute."""
    n = 50_000
    content = "label,text,split\n" + "".join(f"a,b,s{k // 2}\n" for k in range(2 * n))
    with pytest.raises(FormatError) as refused:
        parse(path, content)
    assert refused.value.n_errors == 2 * n
    first = [(error.row, error.detail[:17]) for error in refused.value.errors[:3]]
    assert first == [(2, "the split is 's0'"), (3, "the split is 's0'"), (4, "the split is 's1'")]


@pytest.mark.parametrize("features", ["text", "x"])
def test_a_named_column_holds_weights(path: Path, features: str) -> None:
    content = f'w,{features},label\n2.5,1,a\n" 1e-3 ",2,b\n12345678901234567890,3,a\n'
    parsed = weighed(path, content)
    assert parsed.weights is not None
    assert parsed.weights.tolist() == [2.5, 1e-3, 12345678901234567890.0]
    assert parsed.feature_names == (["x"] if features == "x" else None)


def test_a_column_called_weight_is_a_feature_unless_it_is_named(path: Path) -> None:
    parsed = parse(path, "weight,label\n2,a\n0,b\n")
    assert parsed.weights is None
    assert parsed.feature_names == ["weight"]


@pytest.mark.parametrize(
    ("cell", "detail"),
    [
        ("0", "the weight is not positive"),
        ("-2", "the weight is not positive"),
        ("", "the weight is empty, expected a number"),
        ("much", "the weight 'much' is not a number"),
        ("inf", "the weight 'inf' is not a finite number"),
        ("1e999", "the weight is too large for a 64-bit number"),
        ("1e-999", "the weight is not positive"),
    ],
)
def test_a_wrong_weight_is_reported_with_its_line(path: Path, cell: str, detail: str) -> None:
    with pytest.raises(FormatError) as caught:
        weighed(path, f"label,x,w\na,1,1\nb,2,{cell}\n")
    assert caught.value.errors == [RowError(3, "w", detail)]


def test_a_column_of_weights_that_is_not_there_or_holds_the_labels_is_refused(path: Path) -> None:
    with pytest.raises(FormatError, match="no column 'w' among the 2 columns"):
        weighed(path, "label,x\na,1\n")
    path.write_text("label,x\na,1\n")
    with pytest.raises(FormatError, match="cannot hold both labels and weights"):
        parse_csv(path, ImportOptions(weight_column="label"))
