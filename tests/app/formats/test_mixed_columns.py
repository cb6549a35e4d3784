"""Texts, numbers and categories side by side, in every format with columns."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.inference import DISTINCT, column_role
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed

COLOURS, WORDS = ("red", "green", "blue"), ("apples and pears", "a dark old wood", "three small birds sing")
ROWS: list[dict[str, Any]] = [
    {
        "id": f"row {k}",
        "label": "ab"[k % 2],
        "title": f"{WORDS[k % 3]} number {k}",
        "price": None if k % 5 == 0 else k / 4,
        "size": k % 3,
        "colour": None if k == 7 else COLOURS[k % 3],
        "zip": ("01234", "00567")[k % 2],
        "day": f"2024-02-{k + 1:02}",
        "serial": f"x{k}",
    }
    for k in range(24)
]
DECLARED = ImportOptions(
    text_columns=("title",),
    number_columns=("price", "size"),
    category_columns=("colour", "zip"),
    ignore_columns=("day", "serial"),
    missing="keep",
)
INFERRED = ImportOptions(infer_columns=True, missing="keep")


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(
        json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows
    ).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())


def as_arrow(rows: list[dict[str, Any]]) -> bytes:
    table, sink = pa.Table.from_pylist(rows), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


WRITERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "parquet": as_parquet,
    "arrow": as_arrow,
}


def read(tmp_path: Path, content: bytes, format: str, options: ImportOptions) -> Parsed:
    path = tmp_path / "file"
    path.write_bytes(content)
    return parse(path, format, options)


def refusal(tmp_path: Path, content: bytes, format: str, options: ImportOptions) -> tuple[int, str | None, str]:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, content, format, options)
    first = caught.value.errors[0]
    return first.row, first.column, first.detail


@pytest.mark.parametrize("options", [DECLARED, INFERRED], ids=["declared", "inferred"])
@pytest.mark.parametrize("format", WRITERS)
def test_every_format_gives_the_same_table(tmp_path: Path, format: str, options: ImportOptions) -> None:
    parsed = read(tmp_path, WRITERS[format](ROWS), format, options)
    assert parsed.kind == "table"
    assert parsed.X is not None
    assert parsed.texts is not None
    assert parsed.ids is not None
    names = ["price", "size", "colour=", "colour=blue", "colour=green", "colour=red", "zip=00567", "zip=01234"]
    assert parsed.feature_names == names
    expected = np.zeros((len(ROWS), len(names)))
    for k, row in enumerate(ROWS):
        expected[k, :2] = np.nan if row["price"] is None else row["price"], row["size"]
        expected[k, names.index(f"colour={row['colour'] or ''}")] = 1
        expected[k, names.index(f"zip={row['zip']}")] = 1
    np.testing.assert_array_equal(parsed.X.toarray(), expected)
    assert list(parsed.texts) == [row["title"] for row in ROWS]
    assert list(parsed.ids) == [row["id"] for row in ROWS]
    columns = parsed.columns
    assert columns is not None
    assert (columns.texts, columns.numbers, columns.categories) == (("title",), ("price", "size"), ("colour", "zip"))
    reported = options.infer_columns
    why = {"day": "dates", "serial": "a value of its own in each row"}
    assert columns.left_out == (why if reported else dict.fromkeys(why, "ignored"))
    assert (columns.missing, columns.inferred) == (True, reported)


@pytest.mark.parametrize("format", WRITERS)
def test_a_missing_number_is_refused_unless_it_may_be_missing(tmp_path: Path, format: str) -> None:
    options = DECLARED.model_copy(update={"missing": "refuse"})
    row, column, detail = refusal(tmp_path, WRITERS[format](ROWS), format, options)
    assert (row, column) == (2 if format == "csv" else 1, "price")
    assert "is empty" in detail or "is missing" in detail


def test_numbers_alone_with_missing_ones_are_a_table(tmp_path: Path) -> None:
    options = ImportOptions(missing="keep", missing_values=("NA",))
    parsed = read(tmp_path, b"label,x,y\na,1,NA\nb,,2\n", "csv", options)
    assert parsed.kind == "table"
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), [[1, np.nan], [np.nan, 2]])


def test_numbers_of_flat_json_need_no_features_key(tmp_path: Path) -> None:
    lines = b'{"label": "a", "x": 1, "y": 0}\n{"label": "b", "x": 2.5, "y": true}\n'
    parsed = read(tmp_path, lines, "jsonl", ImportOptions(number_columns=("x", "y")))
    assert (parsed.kind, parsed.feature_names) == ("sparse", ["x", "y"])
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), [[1, 0], [2.5, 1]])


def test_a_misspelt_key_of_features_is_one_error(tmp_path: Path) -> None:
    rows = (
        b'{"label": "a", "features": {"width": 2}}\n' + b'{"label": "b", "features": {"heigth": 1, "width": 2}}\n' * 3
    )
    given = {"number_columns": ("height", "width")}
    with pytest.raises(FormatError) as refused:
        read(tmp_path, rows, "jsonl", ImportOptions.model_validate(given))
    (error,) = refused.value.report
    assert (error.row, error.column, error.cause) == (2, "heigth", "unknown_key")
    assert error.detail == "features of 3 rows have the key 'heigth', which no option names; did you mean 'height'?"
    X = read(tmp_path, rows, "jsonl", ImportOptions.model_validate(given | {"ignore_columns": ("heigth",)})).X
    assert X is not None
    assert X.toarray().tolist() == [[0, 2]] * 4


def test_a_table_may_have_lists_of_numbers(tmp_path: Path) -> None:
    rows = [{"label": "a", "v": [1.0, 2.0], "c": "x"}, {"label": "b", "v": [0.0, 3.0], "c": "y"}]
    options = ImportOptions(number_columns=("v",), category_columns=("c",))
    parsed = read(tmp_path, as_parquet(rows), "parquet", options)
    assert parsed.feature_names == ["v.0", "v.1", "c=x", "c=y"]
    assert parsed.columns is not None
    assert parsed.columns.numbers == ("v.0", "v.1")


def test_rows_that_say_what_they_are_need_no_inference(tmp_path: Path) -> None:
    parsed = read(tmp_path, b'{"label": "a", "features": {"x": 1}}\n', "jsonl", INFERRED)
    assert parsed.kind == "sparse"


@pytest.mark.parametrize(
    ("values", "role"),
    [
        (["1", "2.5", "-3e2"], "number"),
        (["01234", "12345", "01234"], "category"),
        (["2024-01-31T10:00:00Z", "2024-02-01", ""], "dates"),
        (["31.12.2023", "01.01.2024", "02.01.2024"], "dates"),
        (["", " ", ""], "no values"),
        (["a few words of text here", "others are in this row", "more"], "text"),
        (["red", "red", "blue"], "category"),
        (["k1", "k2", "k3"], "a value of its own in each row"),
        (["New York", "Old Town", "San Jose"], "text"),
    ],
)
def test_values_tell_what_a_column_is(tmp_path: Path, values: list[str], role: str) -> None:
    content = as_csv([{"label": "ab"[k % 2], "c": value, "z": k} for k, value in enumerate(values)])
    columns = read(tmp_path, content, "csv", INFERRED).columns
    assert columns is not None
    found = dict.fromkeys(columns.texts, "text") | dict.fromkeys(columns.numbers, "number")
    found |= dict.fromkeys(columns.categories, "category") | columns.left_out
    assert found["c"] == role


def test_numbers_with_commas_are_taken_for_nothing_else_unless_that_is_said(tmp_path: Path) -> None:
    content = b"label;x;c\na;1,5;r\nb;NA;s\na;2;r\n"
    said = INFERRED.model_copy(update={"missing_values": ("NA",)})
    row, column, detail = refusal(tmp_path, content, "csv", said)
    assert (row, column) == (1, "x")
    assert "decimal=comma" in detail
    for more in ({"decimal": "comma"}, {"category_columns": ("x",)}, {"ignore_columns": ("x",)}):
        assert read(tmp_path, content, "csv", said.model_copy(update=more)).n_rows == 3


def test_numbers_beside_marks_of_missing_values_are_taken_for_nothing_else_unless_that_is_said(tmp_path: Path) -> None:
    content = b"label;x;c\na;1.5;r\nb;NA;s\na;?;r\n"
    row, column, detail = refusal(tmp_path, content, "csv", INFERRED)
    assert (row, column) == (1, "x")
    assert "numbers and '?' and 'NA'" in detail
    assert "missing_values=? and missing_values=NA, missing=keep" in detail
    said = INFERRED.model_copy(update={"missing_values": ("NA", "?")})
    columns = read(tmp_path, content, "csv", said).columns
    assert columns is not None
    assert columns.numbers == ("x",)
    assert read(tmp_path, content, "csv", INFERRED.model_copy(update={"category_columns": ("x",)})).n_rows == 3


@pytest.mark.parametrize(
    ("values", "decimal", "said"),
    [
        (("24,11", "1.305,05"), "point", "thousands separators"),
        (("24,11", "1.305,05"), "comma", "thousands separators"),
        (("2.5", "1,305.05"), "point", "thousands separators"),
        (("1,000,000", "2"), "point", "thousands separators"),
        (("24,11", "1.5"), "comma", "write all with commas"),
    ],
)
def test_numbers_that_are_not_read_are_refused_not_left_out(
    values: tuple[str, str], decimal: str, said: str, tmp_path: Path
) -> None:
    content = f"label;x;c\na;{values[0]};r\nb;{values[1]};s\n".encode()
    row, column, detail = refusal(tmp_path, content, "csv", INFERRED.model_copy(update={"decimal": decimal}))
    assert (row, column) == (1, "x")
    assert said in detail


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"label,x,c\na,1,red\n", {"category_columns": ["c"]}, (1, "x", "1 more column: 'x'")),
        (b"label,x,c\na,1,red\n", {"category_columns": ["c", "c"]}, (1, "c", "cannot be one thing and something else")),
        (b"label,x,c\na,1,red\n", {"category_columns": ["label"]}, (1, "label", "cannot be one thing")),
        (b"label,c=d,x\na,1,2\n", {"category_columns": ["c=d"], "number_columns": ["x"]}, (1, "c=d", "equals sign")),
        (b"label,c=d,c\na,1,2\n", {"category_columns": ["c"], "number_columns": ["c=d"]}, (1, "c=d", "as a level")),
        (b"label,c\na,\n", {"category_columns": ["c"]}, (2, "c", "the value is missing")),
        (b"label,c\na," + b"x" * 1001, {"category_columns": ["c"]}, (2, "c", "at most 1000")),
        (b"label,x\na,1\nb,nan\n", {"missing": "keep"}, (3, "x", "'nan' is not a finite number")),
        (b"label,x\na,1e999\n", {"missing": "keep"}, (2, "x", "not a finite number")),
        (b"label,x\na,1\n", {"id_column": "key"}, (1, None, "no column 'key'")),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, content: bytes, options: dict[str, Any], expected: tuple[int, str | None, str]
) -> None:
    row, column, detail = refusal(tmp_path, content, "csv", ImportOptions(**options))
    assert (row, column) == expected[:2]
    assert expected[2] in detail


@pytest.mark.parametrize(
    ("row", "column", "part"),
    [
        ('{"label": "a", "x": "1", "c": "r"}', "x", "a string, expected a number"),
        ('{"label": "a", "x": 1, "c": []}', "c", "a list, expected a string or a number"),
        ('{"label": "a", "x": 1, "c": "r", "d": 1}', "d", "1 unknown key: 'd'"),
        ('{"label": "a", "c": "r"}', "x", "the number is missing"),
    ],
)
def test_json_values_that_do_not_fit_are_refused(tmp_path: Path, row: str, column: str, part: str) -> None:
    options = ImportOptions(number_columns=("x",), category_columns=("c",))
    found = refusal(tmp_path, row.encode(), "jsonl", options)
    assert found[:2] == (1, column)
    assert part in found[2]


def test_numbers_that_may_be_missing_are_read_in_the_order_of_the_options(tmp_path: Path) -> None:
    long, path = "0.12345678901234567890123", tmp_path / "rows.csv"
    path.write_text(f"a,b,c,label\n1,{long},,x\n{long},NA,+{long},y\n,1e999,z,y\n")
    options = ImportOptions(number_columns=("c", "a", "b"), missing="keep", missing_values=("NA",))
    with pytest.raises(FormatError) as refused:
        parse(path, "csv", options)
    assert [(error.row, error.column) for error in refused.value.errors] == [(4, "b"), (4, "c")]
    path.write_text(path.read_text().replace("1e999,z", "0,"))
    parsed = parse(path, "csv", options)
    assert parsed.X is not None
    assert parsed.feature_names == ["c", "a", "b"]
    value, nan = float(long), np.nan
    np.testing.assert_array_equal(parsed.X.toarray(), [[nan, 1, value], [value, value, nan], [nan, nan, 0]])


def test_fifty_thousand_columns_are_told_by_their_values(tmp_path: Path) -> None:
    """In a moment; where the time grew with the square of the columns this took minutes."""
    path, n = tmp_path / "rows.csv", 50_000
    path.write_text(",".join(["label", *(f"x{k}" for k in range(n))]) + "\n" + ("a" + ",1" * n + "\n") * 2)
    parsed = parse(path, "csv", ImportOptions(infer_columns=True, missing="keep"))
    assert parsed.X is not None
    assert (parsed.X.shape, parsed.X.nnz) == ((2, n), 2 * n)


def test_different_words_in_a_column_that_is_named_as_texts_are_texts() -> None:
    trades, forms = ["baker", "miller", "driver"], ["Mr", "Mrs", "Mr"]
    assert column_role("title", trades, ImportOptions(), "csv") == "text"
    assert column_role("surname", trades, ImportOptions(), "csv") == DISTINCT
    assert column_role("title", forms, ImportOptions(), "csv") == "category"
