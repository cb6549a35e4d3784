"""Parquet and Arrow files: what they say is what is read, from Hugging Face's exports, too."""

import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.datasets.schemas import ImportOptions
from app.formats import plain_file
from app.formats.parsing import parse
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, Parsed

BOTH = pytest.mark.parametrize("format", ["parquet", "arrow"])


def write(path: Path, table: pa.Table, format: str) -> None:
    if format == "parquet":
        pq.write_table(table, path, row_group_size=2)
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def read(tmp_path: Path, columns: dict[str, Any] | pa.Table, format: str = "parquet", **options: Any) -> Parsed:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    write(tmp_path / "data", table, format)
    return parse(tmp_path / "data", format, ImportOptions(**options))


def hugging_face(table: pa.Table, **features: Any) -> pa.Table:
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


@BOTH
def test_texts_labels_and_splits_are_read(tmp_path: Path, format: str) -> None:
    columns = {"text": ["one", None, "drei ä"], "label": ["b", "a", "b"], "split": ["train", "test", "validation"]}
    parsed = read(tmp_path, columns, format)
    assert parsed.texts is not None
    assert parsed.split is not None
    assert list(parsed.texts) == ["one", "", "drei ä"]
    assert (parsed.labels, parsed.y.tolist(), parsed.split.tolist()) == (["a", "b"], [1, 0, 1], [0, 1, 2])


@BOTH
def test_columns_of_numbers_lists_and_booleans_become_one_matrix(tmp_path: Path, format: str) -> None:
    vectors = pa.array([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]], pa.list_(pa.float32(), 2))
    columns = {"label": pa.array([3, 1, 3]), "x": [1, 0, 7], "v": vectors, "b": [True, False, True], "w": [1.0, 2, 3]}
    parsed = read(tmp_path, columns, format, weight_column="w")
    assert parsed.X is not None
    assert parsed.weights is not None
    assert parsed.feature_names == ["x", "v.0", "v.1", "b"]
    assert parsed.X.toarray().tolist() == [[1, 1, 2, 1], [0, 0, 3, 0], [7, 4, 0, 1]]
    assert (parsed.labels, parsed.weights.tolist()) == (["1", "3"], [1, 2, 3])


@BOTH
@pytest.mark.parametrize("inferred", [False, True])
def test_decimals_are_numbers_as_floats_are(tmp_path: Path, format: str, inferred: bool) -> None:
    prices = [Decimal("1.25"), Decimal("-1234567.89"), None, Decimal("0.10")]
    columns = {
        "label": ["a", "b", "a", "b"],
        "price": pa.array(prices, pa.decimal128(12, 2)),
        "weight": pa.array([Decimal("0.5")] * 4, pa.decimal256(40, 1)),
    }
    parsed = read(tmp_path, columns, format, infer_columns=inferred, missing="keep", weight_column="weight")
    assert parsed.feature_names == ["price"]
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray()[:, 0], [1.25, -1234567.89, np.nan, 0.1])
    assert parsed.weights is not None
    assert parsed.weights.tolist() == [0.5] * 4


def test_indices_with_values_are_sparse_rows_and_lists_of_labels_sets(tmp_path: Path) -> None:
    columns = {"labels": [["a", "b"], [], ["b", "a"]], "indices": [[3, 0], [], [1]], "values": [[2.0, 1], [], [5]]}
    parsed = read(tmp_path, columns, label_column="labels")
    assert parsed.X is not None
    assert parsed.label_indptr is not None
    assert parsed.X.toarray().tolist() == [[1, 0, 0, 2], [0, 0, 0, 0], [0, 5, 0, 0]]
    assert (parsed.y.tolist(), parsed.label_indptr.tolist()) == ([0, 1, 0, 1], [0, 2, 2, 4])


@pytest.mark.parametrize(
    ("columns", "row", "detail"),
    [
        ({"label": [["a"], None], "x": [1, 2]}, 2, "the list of labels is missing"),
        ({"label": [["a"], ["b", None]], "x": [1, 2]}, 2, "the label is empty"),
        ({"label": ["a", "b"], "indices": [None, [1]], "values": [None, [2.0]]}, 1, "the list is missing"),
        ({"label": ["a", "b"], "indices": [[0], [1]], "values": [[1.0], [None]]}, 2, "the number is missing"),
        ({"label": ["a", "b"], "indices": [[0], [None]], "values": [[1.0], [1.0]]}, 2, "an index is not"),
    ],
)
def test_what_is_missing_in_lists_is_told_by_its_row(
    tmp_path: Path, columns: dict[str, Any], row: int, detail: str
) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, columns)
    assert {error.row for error in caught.value.errors} == {row}
    assert detail in caught.value.errors[0].detail


def test_a_column_with_the_name_of_a_lists_element_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"two features are named 'a\.0'"):
        read(tmp_path, {"label": ["x", "y"], "a": [[1.0, 2.0], [2.0, 3.0]], "a.0": [1.0, 2.0]})


def test_booleans_are_called_the_same_in_columns_lists_and_arrays(tmp_path: Path) -> None:
    column = read(tmp_path, {"label": [True, False], "x": [1, 2]})
    lists = read(tmp_path, {"label": [[True], [False]], "x": [1, 2]})
    np.savez(tmp_path / "data", X=[[1], [2]], y=[True, False])
    array = parse(tmp_path / "data.npz", "npz", ImportOptions())
    assert column.labels == lists.labels == array.labels == ["false", "true"]


def test_two_labels_of_one_name_are_refused(tmp_path: Path) -> None:
    table = hugging_face(
        pa.table({"text": ["a", "b"], "label": [0, 1]}), label={"names": ["x", "x"], "_type": "ClassLabel"}
    )
    with pytest.raises(FormatError, match="two labels are named 'x'"):
        read(tmp_path, table)


def test_class_labels_of_hugging_face_get_their_names(tmp_path: Path) -> None:
    label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    table = hugging_face(pa.table({"text": ["x", "y"], "label": [1, 0]}), text={"_type": "Value"}, label=label)
    assert read(tmp_path, table).labels == ["neg", "pos"]
    table = pa.table({"text": ["x", "y"], "tags": [[1, 0], [1]]})
    for feature in ({"feature": label, "_type": "List"}, [label]):
        parsed = read(tmp_path, hugging_face(table, tags=feature), label_column="tags")
        assert (parsed.labels, parsed.y.tolist()) == (["neg", "pos"], [0, 1, 1])


def test_a_class_label_without_a_name_is_refused_by_its_row(tmp_path: Path) -> None:
    label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    table = hugging_face(pa.table({"text": ["x", "y"], "label": [1, -1]}), label=label)
    with pytest.raises(FormatError) as refused:
        read(tmp_path, table)
    (error,) = refused.value.errors
    assert (error.row, error.column) == (2, "label")
    assert error.detail == "-1 is not the number of any of the 2 labels that the file names"


def test_columns_that_repeat_one_value_forever_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"text": ["a long text " * 100] * 20_000, "label": ["a"] * 20_000}), tmp_path / "data")
    assert (tmp_path / "data").stat().st_size < 10_000
    with pytest.raises(FormatError, match="decompresses to more than 1,000,000 bytes"):
        parse(tmp_path / "data", "parquet", most_unpacked=MostUnpacked(n_bytes=1_000_000))
    monkeypatch.setattr(plain_file, "_RATIO_FROM", 1_000_000)
    with pytest.raises(FormatError, match="decompresses to more than 20 times its size"):
        parse(tmp_path / "data", "parquet", most_unpacked=MostUnpacked(ratio=20))


@BOTH
@pytest.mark.parametrize("inferred", [False, True])
@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()], ids=["dictionary", "view"])
def test_values_that_many_rows_share_count_as_often_as_rows_have_them(
    tmp_path: Path, kind: pa.DataType, inferred: bool, format: str
) -> None:
    if pa.types.is_dictionary(kind):
        texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), pa.array(["words " * 30_000]))
    else:
        _, view, text = pa.array(["words " * 30_000]).cast(kind).buffers()
        texts = pa.Array.from_buffers(kind, 1000, [None, pa.py_buffer(view.to_pybytes()[:16] * 1000), text])
    table = pa.table({"text": texts, "label": ["a", "b"] * 500})
    with pa.OSFile(str(tmp_path / "data"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    if format == "parquet":
        pq.write_table(table, tmp_path / "data")
    assert (tmp_path / "data").stat().st_size < 250_000
    with pytest.raises(FormatError, match="decompresses to more than 250 times its size"):
        parse(tmp_path / "data", format, ImportOptions(infer_columns=inferred))


def test_rows_that_take_no_bytes_are_bounded(tmp_path: Path) -> None:
    rows = pa.Array.from_buffers(pa.list_(pa.int8(), 0), 1 << 30, [None], children=[pa.array([], pa.int8())])
    batch = pa.record_batch([rows], names=["x"])
    with pa.OSFile(str(tmp_path / "data"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(FormatError, match="decompresses to more than 250 times its size"):
        parse(tmp_path / "data", "arrow", ImportOptions(unlabelled=True))


def test_a_dictionary_that_many_batches_share_is_no_bomb(tmp_path: Path) -> None:
    labels = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(40_000) % 5000), pa.array([f"{k:0100}" for k in range(5000)])
    )
    table = pa.table({"x": np.random.default_rng(0).normal(size=40_000), "label": labels})
    with pa.OSFile(str(tmp_path / "data"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    read_ = parse(tmp_path / "data", "arrow", most_unpacked=MostUnpacked(n_bytes=5_000_000))
    assert (read_.n_rows, len(read_.labels)) == (40_000, 5000)


@pytest.mark.parametrize("bracket", [b"[", b'{"feature":'], ids=["lists", "objects"])
def test_metadata_that_no_parser_follows_are_left_aside(tmp_path: Path, bracket: bytes) -> None:
    metadata = b'{"info":{"features":{"label":' + bracket * 50_000
    table = pa.table({"text": ["a", "b"], "label": ["1", "0"]}).replace_schema_metadata({"huggingface": metadata})
    assert read(tmp_path, table).labels == ["0", "1"]


def test_a_class_label_of_thousands_of_digits_stands_for_none(tmp_path: Path) -> None:
    table = hugging_face(pa.table({"text": ["a", "b"], "label": ["1", "9" * 5000]}), label={"names": ["u", "v"]})
    with pytest.raises(FormatError, match="is not the number of any of the 2 labels") as refused:
        read(tmp_path, table)
    assert (refused.value.errors[0].row, refused.value.errors[0].column) == (2, "label")


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abé"), finite, finite), min_size=1, max_size=30))
def test_numbers_that_are_written_are_read(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, float, float]]
) -> None:
    labels, x, y = (list(column) for column in zip(*table, strict=True))
    parsed = read(tmp_path_factory.getbasetemp(), {"x": x, "label": labels, "y": y})
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), np.column_stack([x, y]))
    assert [parsed.labels[c] for c in parsed.y] == labels


@BOTH
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, format: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    write(path, pa.table({"text": ["one", "two", "three"], "label": ["a", "b", "a"]}), format)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(8, len(content)))]))
    with suppress(FormatError):
        assert parse(path, format).n_rows > 0


@BOTH
@pytest.mark.parametrize("type", [pa.float64(), pa.float32(), pa.float16()])
def test_floats_of_any_width_are_the_levels_that_other_files_write(
    tmp_path: Path, format: str, type: pa.DataType
) -> None:
    values = pa.array(np.array([0.1, 7.0, 0.25]).astype(type.to_pandas_dtype()))
    columns = {"label": ["a", "b", "a"], "size": values}
    parsed = read(tmp_path, columns, format, category_columns=("size",))
    assert parsed.feature_names == ["size=0.1", "size=0.25", "size=7"]


@pytest.mark.parametrize("role", ["label", "category_columns"])
def test_a_column_of_a_type_that_is_no_text_says_how_it_can_be_read(tmp_path: Path, role: str) -> None:
    columns = {"label": ["a", "b"], "text": ["x", "y"], "time": pa.array([1, 2], pa.duration("s"))}
    options: dict[str, Any] = (
        {"label_column": "time", "ignore_columns": ("label",)} if role == "label" else {role: ("time",)}
    )
    with pytest.raises(FormatError, match=r"cannot be used as .*: cast it to strings"):
        read(tmp_path, columns, **options)


def test_the_list_that_is_not_as_long_as_most_is_the_wrong_one(tmp_path: Path) -> None:
    rows = [{"label": "a", "v": [1.0, 2.0]}, *({"label": "b", "v": [1.0]} for _ in range(3))]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet", row_group_size=2)
    with pytest.raises(FormatError) as refused:
        parse(tmp_path / "rows.parquet", "parquet", ImportOptions(number_columns=("v",)))
    (error,) = refused.value.errors
    assert (error.row, error.column, error.detail) == (1, "v", "a list of 2, expected 1 number as in most rows")
