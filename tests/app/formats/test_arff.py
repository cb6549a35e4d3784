"""ARFF: the same arrays as scipy's reader, sparse and dense rows alike, Meka's labels, and Clus's hierarchies."""

import io
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import arff as scipy_arff

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed

WEATHER = """% a comment
@relation weather

@attribute outlook {sunny, overcast, 'rain, heavy'}
@attribute temperature REAL
@attribute windy {0,1}
@attribute class {yes,no}

@data
sunny,85,0,no
% between rows
overcast,-3.5e1,1,yes
'rain, heavy', 0 ,0,yes
"""
CLUS = """@RELATION hmc
@ATTRIBUTE x numeric
@ATTRIBUTE class hierarchical 01/01,01/02,02,02/05
@DATA
1.5,01/01@02
?,02/05
0,01
"""
GRAPH = CLUS.replace("01/01,01/02,02,02/05", "root/a,root/b,a/c,b/c,b/d").replace("01/01@02", "c@d")


def read(folder: Path, content: str, **options: Any) -> Parsed:
    path = folder / "data.arff"
    path.write_text(content, encoding="utf-8")
    assert declared_format(path, ImportOptions()) == "arff"
    return parse(path, "arff", ImportOptions(**options))


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    bounds = parsed.label_indptr.tolist()
    return [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(bounds)]


def dense(parsed: Parsed) -> list[list[float]]:
    assert parsed.X is not None
    values: list[list[float]] = parsed.X.toarray().tolist()
    return values


def test_the_types_of_attributes_are_those_of_columns(tmp_path: Path) -> None:
    parsed = read(tmp_path, WEATHER)
    names = ["temperature", "windy", "outlook=overcast", "outlook=rain, heavy", "outlook=sunny"]
    assert (parsed.kind, parsed.feature_names, parsed.labels) == ("table", names, ["no", "yes"])
    assert dense(parsed) == [[85, 0, 0, 0, 1], [-35, 1, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert parsed.y.tolist() == [0, 1, 1]


def test_numbers_and_labels_are_those_that_scipy_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [",".join([*map(repr, rng.normal(size=4).tolist()), str(rng.choice(["a", "b"]))]) for _ in range(50)]
    names = "".join(f"@attribute x{at} numeric\n" for at in range(4))
    content = f"@relation r\n{names}@attribute class {{a,b}}\n@data\n" + "\n".join(rows) + "\n"
    data, meta = scipy_arff.loadarff(io.StringIO(content))
    parsed = read(tmp_path, content)
    assert parsed.feature_names == meta.names()[:-1]
    assert dense(parsed) == [list(row)[:-1] for row in data.tolist()]
    assert [parsed.labels[at] for at in parsed.y] == [row[-1].decode() for row in data.tolist()]


def test_sparse_rows_have_the_values_of_dense_ones(tmp_path: Path) -> None:
    begin = WEATHER[: WEATHER.index("sunny,85")]
    sparse = read(tmp_path, f"{begin}{{1 85, 3 no}}\n{{0 overcast, 1 -35, 2 1}}\n{{0 'rain, heavy'}}\n")
    assert (dense(sparse), sparse.y.tolist()) == (dense(read(tmp_path, WEATHER)), [0, 1, 1])


def test_missing_values_are_kept_where_the_options_say_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, CLUS)
    assert (refused.value.errors[0].row, refused.value.errors[0].column) == (6, "x")
    assert "missing=keep" in refused.value.errors[0].detail
    assert np.isnan(dense(read(tmp_path, CLUS, missing="keep"))[1][0])


def test_classes_of_a_hierarchy_are_sets_of_paths_and_the_header_is_their_tree(tmp_path: Path) -> None:
    parsed = read(tmp_path, CLUS, missing="keep")
    assert sets(parsed) == [["01/01", "02"], ["02/05"], ["01"]]
    tree = parse_hierarchy(tmp_path / "data.arff", "arff").tree
    assert set(parsed.labels) <= set(tree.names)
    assert sorted(tree.names) == ["01", "01/01", "01/02", "02", "02/05"]


def test_edges_in_a_header_make_a_graph_of_classes(tmp_path: Path) -> None:
    content = GRAPH.replace("02/05", "d").replace("0,01", "0,a")
    assert sets(read(tmp_path, content, missing="keep")) == [["c", "d"], ["d"], ["a"]]
    with pytest.raises(FormatError, match="'c' has two parents"):
        parse_hierarchy(tmp_path / "data.arff", "arff")


def test_a_class_that_the_hierarchy_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 7: the class '03' is not in the hierarchy of the header"):
        read(tmp_path, CLUS.replace("0,01\n", "0,03\n").replace("?", "1"))


@pytest.mark.parametrize(("n", "labels"), [(2, ["l1", "l2"]), (-1, ["x"])])
def test_the_name_of_a_relation_says_what_meka_learns(tmp_path: Path, n: int, labels: list[str]) -> None:
    attributes = "@attribute l1 {0,1}\n@attribute l2 {0,1}\n@attribute x {0,1}\n"
    content = f"@relation 'music: -C {n} -split-number 5'\n{attributes}@data\n1,1,1\n{{0 1,1 1,2 1}}\n"
    assert sets(read(tmp_path, content)) == [labels, labels]


def test_columns_of_labels_texts_and_ids(tmp_path: Path) -> None:
    content = (
        "@relation r\n@attribute id key\n@attribute body string\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n@data\n"
        "r1,'it\\'s one, or',1,0\nr2,\"two\",1,1,{2.5}\n"
    )
    parsed = read(tmp_path, content, label_columns=("l*",))
    assert sets(parsed) == [["l1"], ["l1", "l2"]]
    assert parsed.texts is not None
    assert parsed.ids is not None
    assert parsed.weights is not None
    assert (list(parsed.texts), list(parsed.ids)) == (["it's one, or", "two"], ["r1", "r2"])
    assert parsed.weights.tolist() == [1, 2.5]


def test_a_label_that_is_not_known_is_asked_for(tmp_path: Path) -> None:
    content = WEATHER.replace("class {", "play {")
    with pytest.raises(FormatError, match=re.escape("pass label_column (the last attribute is 'play')")):
        read(tmp_path, content)
    assert read(tmp_path, content, label_column="play").labels == ["no", "yes"]
