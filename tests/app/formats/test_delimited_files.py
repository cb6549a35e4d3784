"""CSV as spreadsheets write it: other delimiters, decimal commas, encodings, and TSV."""

import codecs
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed


def read(tmp_path: Path, content: str | bytes, format: str = "csv", **options: Any) -> Parsed:
    path = tmp_path / "data"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return parse(path, format, ImportOptions(**options))


def dense(parsed: Parsed) -> list[list[float]]:
    assert parsed.X is not None
    values: list[list[float]] = parsed.X.toarray().tolist()
    return values


def texts(parsed: Parsed) -> list[str]:
    assert parsed.texts is not None
    return list(parsed.texts)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, mark: str) -> None:
    parsed = read(tmp_path, f"label{mark}x{mark}y\na{mark}1{mark}2\n".encode("utf-8-sig"))
    assert (parsed.labels, parsed.feature_names, dense(parsed)) == (["a"], ["x", "y"], [[1, 2]])


def test_the_line_by_which_excel_is_told_the_delimiter_tells_it_here(tmp_path: Path) -> None:
    assert texts(read(tmp_path, 'sep=;\r\nlabel;text\r\na;"one; two"\r\nb;six\r\n')) == ["one; two", "six"]
    with pytest.raises(FormatError, match="delimiter in the first line differs"):
        read(tmp_path, "sep=;\nlabel;x\na;1\n", delimiter="comma")


def test_a_named_delimiter_is_taken_even_where_the_header_has_others(tmp_path: Path) -> None:
    assert read(tmp_path, "label|a,b\nx|1\n", delimiter="pipe").feature_names == ["a,b"]


def test_decimal_commas_are_read_and_points_are_then_no_numbers(tmp_path: Path) -> None:
    parsed = read(tmp_path, 'label;x;y\na;1,5;-2,25e1\nb;"3";0,123456789012345678\n', decimal="comma")
    assert dense(parsed) == [[1.5, -22.5], [3, 0.123456789012345678]]
    with pytest.raises(FormatError) as refused:
        read(tmp_path, "label;x\na;1.500\nb;1.234,5\n", decimal="comma")
    assert [(one.row, one.column, one.detail) for one in refused.value.errors] == [
        (2, "x", "'1.500' is not a number"), (3, "x", "'1.234,5' is not a number"),
    ]  # fmt: skip


def test_decimal_commas_hold_for_weights(tmp_path: Path) -> None:
    parsed = read(tmp_path, "label;x;w\na;1,5;0,5\nb;2;3\n", decimal="comma", weight_column="w")
    assert parsed.weights is not None
    assert parsed.weights.tolist() == [0.5, 3]
    with pytest.raises(FormatError, match=r"the weight '1\.500' is not a number"):
        read(tmp_path, "label;x;w\na;1;1.500\n", decimal="comma", weight_column="w")


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-16-be", "mac-roman", "cp1252"])
def test_a_named_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    parsed = read(tmp_path, "label;text\nGrün;Äpfel\n".encode(encoding), encoding=encoding)
    assert (parsed.labels, texts(parsed)) == (["Grün"], ["Äpfel"])


def test_encodings_have_the_names_that_python_knows() -> None:
    for name in (
        "UTF8",
        "utf-8-sig",
        "utf_16",
        "UTF-16LE",
        "Latin1",
        "iso-8859-1",
        "l9",
        "cp1250",
        "CP1252",
        "macroman",
    ):
        given = ImportOptions.model_validate({"encoding": name}).encoding
        assert codecs.lookup(given).name == codecs.lookup(name).name.removesuffix("-sig"), name
    for name in ("cp1253", "ebcdic", "", "ütf-8", "rot13", 7, None):
        with pytest.raises(ValidationError, match="Input should be 'utf-8', 'utf-16'"):
            ImportOptions.model_validate({"encoding": name})


@pytest.mark.parametrize("order", ["le", "be"])
def test_a_text_in_utf16_needs_a_byte_order_mark_or_the_order(tmp_path: Path, order: str) -> None:
    content = "label;text\na;b c\n".encode(f"utf-16-{order}")
    way = f"no byte order mark: pass encoding=utf-16-{order}, or save it as UTF-8"
    for encoding, said in (("utf-8", way), ("utf-16", f"mark of UTF-16: .* pass encoding=utf-16-{order}")):
        with pytest.raises(FormatError, match=said):
            read(tmp_path, content, encoding=encoding)
        with pytest.raises(FormatError, match=said):
            declared_format(tmp_path / "data", ImportOptions(encoding=encoding))
    marked = "\ufeff".encode(f"utf-16-{order}") + content
    for each in (content, marked):
        options = ImportOptions(encoding=f"utf-16-{order}")
        assert texts(read(tmp_path, each, encoding=options.encoding)) == ["b c"]
        assert declared_format(tmp_path / "data", options) == "csv"


def test_another_encoding_is_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, "label;text\na;b\nGrün;c\n".encode("latin-1"))
    assert refused.value.errors[0].row == 3
    assert "set encoding, for example to windows-1252" in refused.value.errors[0].detail
    with pytest.raises(FormatError, match="encoding=utf-16"):
        read(tmp_path, "label;text\na;b\n".encode("utf-16"))


def test_lines_that_end_in_carriage_returns_alone_are_said_to_do_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="carriage return"):
        read(tmp_path, "label,text\ra,b\rb,c\r")
    assert texts(read(tmp_path, "label,text\r\na,b\r\n")) == ["b"]


def test_tsv_is_read_with_quotes_or_without(tmp_path: Path) -> None:
    assert texts(read(tmp_path, 'label\ttext\na\t"one\ttwo"\n', "tsv")) == ["one\ttwo"]
    plain = 'label\ttext\na\t"quoted" at the beginning\nb\tno "end\n'
    assert texts(read(tmp_path, plain, "tsv", quotes=False)) == ['"quoted" at the beginning', 'no "end']
    with pytest.raises(FormatError, match="text after a closing quote"):
        read(tmp_path, plain, "tsv")


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", 'label,title,date,body\na,"One, ""1""",2020,first\nb,,2021,second\n'),
        ("jsonl", '{"label": "a", "title": "One, \\"1\\"", "date": 2020, "body": "first"}\n'
                  '{"label": "b", "title": null, "date": 2021, "body": "second"}\n'),
    ],
)  # fmt: skip
def test_several_texts_are_joined_and_named_columns_left_out(tmp_path: Path, format: str, content: str) -> None:
    parsed = read(tmp_path, content, format, text_columns=("title", "body"), ignore_columns=("date",))
    assert texts(parsed) == ['One, "1"\nfirst', "second"]


def test_a_part_for_validation_is_kept_apart(tmp_path: Path) -> None:
    parsed = read(tmp_path, "label,x,split\na,1,train\na,1,valid\nb,1,validation\nb,2,test\n")
    assert parsed.split is not None
    assert parsed.split.tolist() == [0, 2, 2, 1]
