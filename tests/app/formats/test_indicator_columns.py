import itertools
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed


def read(folder: Path, content: str, columns: Sequence[str], **options: object) -> Parsed:
    path = folder / "data.csv"
    path.write_text(content)
    return parse(path, "csv", ImportOptions.model_validate({"label_columns": tuple(columns), **options}))


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    bounds = parsed.label_indptr.tolist()
    return [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(bounds)]


def test_columns_of_zeros_and_ones_beside_a_text_are_labels(tmp_path: Path) -> None:
    parsed = read(tmp_path, "text,sweet,red,never\napple,1,1,0\nsky,0,0,0\nhoney,1,0,0\n", ["red", "sweet", "never"])
    assert (parsed.kind, parsed.X, parsed.columns) == ("text", None, None)
    assert sets(parsed) == [["red", "sweet"], [], ["sweet"]]


def test_a_name_with_an_asterisk_stands_for_all_columns_that_begin_so(tmp_path: Path) -> None:
    parsed = read(tmp_path, "x,y,label_a,label_b\n1,2,0,1\n3,0,1,1\n", ["label_*"])
    assert (parsed.kind, parsed.feature_names) == ("sparse", ["x", "y"])
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[1, 2], [3, 0]]
    assert sets(parsed) == [["label_b"], ["label_a", "label_b"]]


def test_other_columns_may_be_inferred(tmp_path: Path) -> None:
    rows = "".join(f"a text of {n} words or more,{n % 7},c{n % 2},{n % 2},1\n" for n in range(40))
    parsed = read(tmp_path, "body,size,colour,odd,all\n" + rows, ["odd", "all"], infer_columns=True)
    assert parsed.kind == "table"
    assert parsed.columns is not None
    assert (parsed.columns.texts, parsed.columns.numbers, parsed.columns.categories) == (
        ("body",),
        ("size",),
        ("colour",),
    )
    assert parsed.labels == ["all", "odd"]
    assert parsed.feature_names == ["size", "colour=c0", "colour=c1"]


def test_parquet_has_them_too(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "p": [True, False], "q": [1, 1]}), path)
    assert sets(parse(path, "parquet", ImportOptions(label_columns=("p", "q")))) == [["p", "q"], ["q"]]


@pytest.mark.parametrize(
    ("content", "columns", "detail"),
    [
        ("text,a\nx,1\ny,2\n", ["a"], "2, expected 0 or 1"),
        ("text,a\nx,1\ny,0.5\n", ["a"], "0.5, expected 0 or 1"),
        ("text,a\nx,1\n", ["b"], "no column 'b'"),
        ("text,a\nx,1\n", ["b*"], "no column begins with 'b'"),
        ("a,b\n0,1\n", ["a", "b"], "found neither a text column nor numeric columns"),
    ],
)
def test_what_is_no_indicator_is_refused(tmp_path: Path, content: str, columns: list[str], detail: str) -> None:
    with pytest.raises(FormatError, match=detail):
        read(tmp_path, content, columns)
