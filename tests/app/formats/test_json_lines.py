import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reading import reading

from app.datasets.schemas import ImportOptions
from app.formats import json_lines
from app.formats.json_lines import parse_jsonl
from app.formats.table import FormatError, Parsed, RowError
from app.formats.window import NOT_UTF8, Window

parse, outcome, errors = reading(parse_jsonl)


def written(rows: list[dict[str, Any]], ascii_only: bool = True) -> str:
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)


labels = st.sampled_from(["a", "é", "3", "long label"])
finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None)
@given(st.lists(st.tuples(labels, texts, st.sampled_from(["train", "test"])), min_size=1), st.booleans())
def test_texts_that_are_written_are_read(path: Path, table: list[tuple[str, str, str]], ascii_only: bool) -> None:
    rows = [{"label": label, "text": text, "split": split, "id": 7} for label, text, split in table]
    parsed = parse(path, written(rows, ascii_only))
    assert parsed.kind == "text"
    assert parsed.texts is not None
    assert parsed.split is not None
    assert list(parsed.texts) == [text for _, text, _ in table]
    assert [parsed.labels[c] for c in parsed.y] == [label for label, _, _ in table]
    assert parsed.split.tolist() == [int(split == "test") for _, _, split in table]


@settings(deadline=None)
@given(st.lists(st.tuples(labels, st.dictionaries(st.text("abé", max_size=2), finite, max_size=5)), min_size=1))
def test_named_features_that_are_written_are_read(path: Path, table: list[tuple[str, dict[str, float]]]) -> None:
    parsed = parse(path, written([{"label": label, "features": features} for label, features in table]))
    assert parsed.X is not None
    assert parsed.feature_names == list(dict.fromkeys(name for _, features in table for name in features))
    dense = [[features.get(name, 0.0) for name in parsed.feature_names] for _, features in table]
    np.testing.assert_array_equal(parsed.X.toarray(), np.reshape(dense, (len(table), -1)))


@settings(deadline=None)
@given(st.lists(st.tuples(labels, st.dictionaries(st.integers(0, 30), finite, max_size=5)), min_size=1))
def test_indices_that_are_written_are_read_in_any_order(path: Path, table: list[tuple[str, dict[int, float]]]) -> None:
    rows = [{"label": label, "indices": [*row], "values": [*row.values()]} for label, row in table]
    parsed = parse(path, written(rows))
    assert parsed.X is not None
    assert parsed.feature_names is None
    assert parsed.X.has_sorted_indices
    dense = np.zeros(parsed.X.shape)
    for i, (_, row) in enumerate(table):
        for j, value in row.items():
            dense[i, j] = value
    np.testing.assert_array_equal(parsed.X.toarray(), dense)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["label", "text", "features", "indices", "values", "split", "x"]), inner),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=100), st.lists(json_values, max_size=4).map(lambda v: "\n".join(map(json.dumps, v)).encode())
    )
)
@example(b"[" * 3000)
@example(b'{"label": 1e999, "text": ""}')
@example(b'{"label": "a", "indices": [36893488147419103232], "values": [1]}')
@example(b'{"label": "\\ud800", "text": ""}')
def test_any_bytes_are_read_or_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = outcome(path)
    if isinstance(found, FormatError):
        assert 1 <= len(found.errors) <= 20
        assert len(found.errors) <= found.n_errors
        assert all(1 <= one.row <= content.count(b"\n") + 1 for one in found.errors)
    else:
        assert found.n_rows > 0


def test_whole_numbers_and_booleans_as_labels_become_names(path: Path) -> None:
    parsed = parse(path, '{"label": 3, "text": ""}\n{"label": 3.0, "text": ""}\n{"label": true, "text": ""}\n')
    assert [parsed.labels[c] for c in parsed.y] == ["3", "3", "true"]


def test_the_label_may_have_another_key(path: Path) -> None:
    assert parse(path, '{"kind": "a", "text": ""}', label_column="kind").labels == ["a"]


@pytest.mark.parametrize(
    ("row", "column", "detail"),
    [
        ('{"text": "b"}', "label", "the key is missing"),
        ('{"label": null, "text": "b"}', "label", "null, expected a string, an integer or a boolean"),
        ('{"label": 2.5, "text": "b"}', "label", "2.5 is not a whole number; a label is a string, an integer or"),
        ('{"label": ["a"], "text": "b"}', "label", "labels are a list in some rows but not in others"),
        ('{"label": "", "text": "b"}', "label", "the label is empty"),
        ('{"label": "a", "text": 3}', "text", "a number, expected a string"),
        ('{"label": "a"}', None, "expected text, or features, or indices with values"),
        ('{"label": "a", "features": {"x": 1}}', None, "the row has features; rows before it have text"),
        (
            '{"label": "a", "text": "", "features": {}}',
            None,
            "the row has features and text, expected text, or features",
        ),
        ('{"label": "a", "text": "", "size": 3, "x": 1}', "size", "2 unknown keys: 'size', 'x'"),
        ('{"label": "a", "text": "", "split": "test"}', "split", "split is given in some rows but not in others"),
        ('{"label": "a", "text": "b"', None, "not valid JSON at character"),
        ("[1]", None, "a list, expected an object"),
        (
            '{"label": "a", "text": "' + "x" * 50 + '", "' + "k" * 50 + '": 1}',
            "k" * 37 + "...",
            "1 unknown key: 'kkk",
        ),
    ],
)
def test_an_error_names_its_line(path: Path, row: str, column: str | None, detail: str) -> None:
    found = errors(path, '{"label": "a", "text": "b"}\n\n' + row + "\n")
    assert len(found) == 1
    assert (found[0].row, found[0].column) == (3, column)
    assert found[0].detail.startswith(detail)


@pytest.mark.parametrize(
    ("row", "column", "detail"),
    [
        ({"indices": [0]}, "indices", "indices and values must be given together"),
        ({"indices": [0], "values": []}, None, "1 indices and 0 values"),
        ({"indices": 0, "values": []}, "indices", "a number, expected a list"),
        ({"indices": [0], "values": {}}, "values", "an object, expected a list"),
        ({"indices": [0.5], "values": [1]}, "indices", "an index is not an integer"),
        ({"indices": [True], "values": [1]}, "indices", "an index is not an integer"),
        ({"indices": [-1], "values": [1]}, "indices", "an index is not between 0 and 2147483646"),
        ({"indices": [2**31 - 1], "values": [1]}, "indices", "an index is not between 0 and 2147483646"),
        ({"indices": [3, 3], "values": [1, 2]}, "indices", "an index is given twice"),
        ({"indices": [3], "values": ["1"]}, "values", "a value is a string, expected a number"),
        ({"features": {"x": True}}, "features", "a value is a boolean, expected a number"),
        ({"features": [1]}, "features", "a list, expected an object of names and numbers"),
    ],
)
def test_an_error_in_features_names_its_line(path: Path, row: dict[str, Any], column: str | None, detail: str) -> None:
    assert errors(path, "\n" + json.dumps({"label": "a", **row})) == [RowError(2, column, detail)]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ('{"label": "a", "label": "b", "text": "c"}', "label"),
        ('{"label": "a", "text" : "b", "text" :"c"}', "text"),
        ('{"label": "a", "features": {"x": 1, "y": 2, "x": 3}}', "x"),
        ('{"label": "a", "l\\u0061bel": "b", "text": "c"}', "label"),
    ],
)
def test_a_key_that_occurs_twice_is_refused(path: Path, row: str, key: str) -> None:
    assert errors(path, f"{row}\n") == [RowError(1, key, "the key occurs twice in one object")]


def test_texts_that_look_like_keys_are_read(path: Path) -> None:
    rows = [{"label": "a", "text": 'of "text": and "label": "b", }'}, {"label": "b", "text": "plain"}]
    assert parse(path, "".join(json.dumps(row) + "\n" for row in rows)).texts is not None
    deep = '{"label": "a", "text": ' + "[" * 900 + "]" * 900 + ', "x" : 1}\n'
    assert "expected a string" in errors(path, deep)[0].detail or "unknown key" in errors(path, deep)[0].detail


def test_bytes_that_are_not_utf8_are_named_by_their_line(path: Path) -> None:
    content = b'{"label": "a", "text": "b"}\n{"label": "a", "text": "\xff"}\n'
    assert errors(path, content) == [RowError(2, None, f"not {NOT_UTF8}")]


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_file_without_rows_is_refused(path: Path, content: str) -> None:
    assert errors(path, content) == [RowError(1, None, "the file is empty or has only blank lines")]


def test_errors_are_listed_in_the_order_of_lines_and_counted(path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        parse(path, '{"label": "", "text": ""}\n' + "x\n" * 30)
    assert [error.row for error in caught.value.errors] == list(range(1, 21))
    assert caught.value.n_errors == 31


def test_blocks_do_not_show_in_what_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"label": f"c{i % 3}", "features": {f"f{i % 11}": i / 7, "g": i}} for i in range(200)]
    whole = parse(path, written(rows))
    monkeypatch.setattr(json_lines, "Window", partial(Window, block_bytes=16))
    pieces = parse(path, written(rows))
    assert whole.X is not None
    assert pieces.X is not None
    np.testing.assert_array_equal(whole.X.toarray(), pieces.X.toarray())
    np.testing.assert_array_equal(whole.y, pieces.y)
    assert errors(path, written(rows) + "x\n")[0].row == 201


def weighed(path: Path, weights: list[Any], **options: Any) -> Parsed:
    key = options.get("weight_column") or "weight"
    rows = [{"label": "ab"[i % 2], "text": "x", key: weight} for i, weight in enumerate(weights)]
    path.write_text(written(rows))
    return parse_jsonl(path, ImportOptions(**options))


@pytest.mark.parametrize("options", [{}, {"weight_column": "importance"}])
def test_weights_are_read_under_their_key(path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "Window", partial(Window, block_bytes=64))
    given = [0.5, 3, 1e-300, 7.25] * 10
    weights = weighed(path, given, **options).weights
    assert weights is not None
    assert weights.tolist() == given
    assert parse(path, written([{"label": "a", "text": "x"}])).weights is None


@pytest.mark.parametrize(
    ("weight", "detail"),
    [
        (0, "the weight is not positive"),
        (-0.5, "the weight is not positive"),
        ("2", "a string, expected a positive number"),
        (True, "a boolean, expected a positive number"),
        (None, "null, expected a positive number"),
    ],
)
def test_a_wrong_weight_is_reported_with_its_line(path: Path, weight: Any, detail: str) -> None:
    with pytest.raises(FormatError) as caught:
        weighed(path, [1, 2, weight])
    assert caught.value.errors == [RowError(3, "weight", detail)]


def test_a_weight_stands_in_all_rows_or_in_none(path: Path) -> None:
    content = written([{"label": "a", "text": "x", "weight": 1}, {"label": "b", "text": "x"}])
    assert errors(path, content) == [RowError(2, "weight", "the weight is given in some rows but not in others")]
    path.write_text(written([{"label": "a", "text": "x"}]))
    with pytest.raises(FormatError, match="the key is missing"):
        parse_jsonl(path, ImportOptions(weight_column="weight"))


def _refused(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> list[tuple[int, str | None, str]]:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(FormatError) as refused:
        parse_jsonl(tmp_path / "rows.jsonl", ImportOptions(**options))
    return [(error.row, error.column, error.detail) for error in refused.value.errors]


@pytest.mark.parametrize("option", ["number_columns", "category_columns"])
@pytest.mark.parametrize("missing", ["refuse", "keep"])
def test_a_misspelt_column_is_one_error_that_names_similar_keys(tmp_path: Path, option: str, missing: str) -> None:
    rows = [{"label": "a", "width": 1, "depth": 2}, {"label": "b", "width": 3, "depth": 4}]
    found = _refused(tmp_path, rows, **{option: ["widht"], "missing": missing})
    said = "no row has the key 'widht'; the first row has 'width', 'depth'; did you mean 'width'?"
    assert found == [(1, "widht", said)]


def test_a_key_that_some_rows_have_is_missing_in_the_others(tmp_path: Path) -> None:
    found = _refused(tmp_path, [{"label": "a", "width": 1}, {"label": "b"}], number_columns=["width"])
    assert [(row, column) for row, column, _ in found] == [(2, "width")]


def test_the_list_that_is_not_as_long_as_most_is_the_wrong_one(tmp_path: Path) -> None:
    rows = [{"label": "a", "v": [1.0, 2.0]}, *({"label": "b", "v": [1.0]} for _ in range(3))]
    found = _refused(tmp_path, rows, number_columns=["v"])
    assert found == [(1, "v", "a list of 2, expected 1 number as in most rows")]
    found = _refused(tmp_path, [*rows[1:], rows[0]], number_columns=["v"])
    assert found == [(4, "v", "a list of 2, expected a list of 1 number as in the first row")]
    found = _refused(tmp_path, rows[:2], number_columns=["v"])
    assert [row for row, _, _ in found] == [2]
