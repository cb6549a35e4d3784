"""Features and labels in two files of an archive: the arrays that were written, and files that do not fit together."""

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed

X = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]])
Y = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]])
RAW = b"""{"uid": "u1", "title": "T", "content": "C", "target_ind": [0, 1], "target_rel": [1.0, 1.0]}
{"uid": "u2", "title": "V", "content": "D", "target_ind": [1], "target_rel": [1.0]}
"""
NAMES = b'{"uid": "A1", "title": "Apple"}\n{"uid": "B2", "title": "Pear"}\n'


def npz(matrix: Any) -> bytes:
    stream = io.BytesIO()
    save_npz(stream, csr_matrix(matrix))
    return stream.getvalue()


def as_text(matrix: Any) -> bytes:
    rows = [" ".join(f"{at}:{row[at]}" for at in np.flatnonzero(row)) for row in matrix]
    return "\n".join([f"{matrix.shape[0]} {matrix.shape[1]}", *rows, ""]).encode()


def read(folder: Path, members: dict[str, bytes], **options: Any) -> Parsed:
    path, given = folder / "pair.tar", ImportOptions(**options)
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return parse(path, declared_format(path, given), given)


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    ends = parsed.label_indptr.tolist()
    return [[parsed.labels[at] for at in parsed.y[ends[k] : ends[k + 1]]] for k in range(parsed.n_rows)]


@pytest.mark.parametrize(
    ("members", "labels"),
    [
        ({"X.trn.npz": npz(X), "Y.trn.npz": npz(Y)}, [["0", "3"], ["1"], []]),
        ({"d/trn_X_Xf.txt": as_text(X), "d/trn_X_Y.txt": as_text(Y)}, [["0", "3"], ["1"], []]),
        ({"trn_ft_mat.txt.gz": gzip.compress(as_text(X)), "trn_lbl_mat.txt": as_text(Y)}, [["0", "3"], ["1"], []]),
        ({"X.npz": npz(X), "Y.npz": npz(Y), "output-items.txt": b"a\nb\nc\nd\n"}, [["a", "d"], ["b"], []]),
        ({"features/a.npz": npz(X), "labels/b": b"p q\nr\n\n"}, [["p", "q"], ["r"], []]),
    ],
)
def test_matrices_have_the_labels_of_the_other_file(
    tmp_path: Path, members: dict[str, bytes], labels: list[list[str]]
) -> None:
    parsed = read(tmp_path, members)
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), X)
    assert sets(parsed) == labels


def test_texts_have_the_labels_of_the_other_file(tmp_path: Path) -> None:
    lines = read(tmp_path, {"texts.txt": b"one\n\nthree\n", "labels.txt": b"a b;c\nd\n\n"}, label_separator=";")
    assert lines.texts is not None
    assert list(lines.texts) == ["one", "", "three"]
    assert sets(lines) == [["a b", "c"], ["d"], []]
    numbered = {"texts.txt": b"one\ntwo\nthree\n", "labels.txt": b"0 1\n1\n\n"}
    assert sets(read(tmp_path, numbered)) == [["0", "1"], ["1"], []]
    assert sets(read(tmp_path, numbered | {"output-items.txt": b"Fish\nSoup\n"})) == [["Fish", "Soup"], ["Soup"], []]
    raw = read(tmp_path, {"trn.json.gz": gzip.compress(RAW), "lbl.json": NAMES})
    assert raw.texts is not None
    assert list(raw.texts) == ["T\nC", "V\nD"]
    assert sets(raw) == [["A1", "B2"], ["B2"]]


@pytest.mark.parametrize(
    ("members", "detail"),
    [
        ({"X.npz": npz(X), "Y.npz": npz(Y[:2])}, "'Y.npz': the features have 3 rows, and the labels 2: are both files"),
        ({"X.npz": npz(X), "Y.txt": b"3 4\n0:1\n9:1\n\n"}, "'Y.txt': the first line declares 4 columns; the largest"),
        ({"X.npz": npz(X), "Y.txt": b"4 4\n0:1\n\n\n"}, "'Y.txt': the first line declares 4 rows; the file has 3"),
        ({"X.npz": npz(X), "lbl.json": NAMES}, "'X.npz': the rows have no numbers of labels: add the file of labels"),
        ({"X.npz": npz(X), "Y.npz": npz(Y), "output-items.txt": b"a\n"}, "have 4 columns, and their file of names 1"),
        (
            {"X.npz": npz(X), "Y.npz": npz(Y), "output-items.txt": b"a\nb\na\nd\n"},
            "the file has 'a' on several of its 4",
        ),
        (
            {"X.npz": npz(X), "Y.npz": npz(Y), "names/n": npz(Y)},
            "'names/n': expected names of labels, a different one on",
        ),
        (
            {"X.npz": npz(X), "Y.npz": npz(Y), "names/n": npz(Y)},
            "the file is of the format npz: labels of rows belong in",
        ),
        ({"X.npz": npz(X), "Y.npz": npz(Y), "names/n": as_text(Y)}, "the file is a matrix: labels of rows belong in"),
        ({"X.npz": npz(X), "Y.npz": npz(Y), "names/n": b""}, "the file is empty"),
        (
            {"texts.txt": b"one\ntwo\n", "labels.txt": b"0\n2\n", "output-items.txt": b"a\nb\n"},
            "'labels.txt': the label '2' is not a number from 0 to 1",
        ),
        ({"trn.json": RAW, "lbl.json": NAMES[:31]}, "the label '1' is not a number from 0 to 0"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path: Path, members: dict[str, bytes], detail: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, members)
    assert detail in refused.value.errors[0].detail


LABELLED = {
    "a.csv": (b"label,text\na,x\nb,y\n", "in the column 'label'"),
    "a.jsonl": (b'{"label": "a", "text": "x"}\n{"label": "b", "text": "y"}\n', "in the column 'label'"),
    "a.svm": (b"a 1:1\nb 2:1\n", "such as 'a'"),
    "sets.svm": (b"a,c 1:1\nb 2:1\n", "such as 'a'"),
    "a.txt": (b"__label__a x\n__label__b y\n", "as files of the format fasttext always have"),
    "counts.txt": (b"2 3 2\n0 1:1\n1 2:1\n", "as files of the format xmc always have"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_rows_with_labels_of_their_own_are_refused_once(tmp_path: Path, name: str) -> None:
    content, where = LABELLED[name]
    with pytest.raises(FormatError) as refused:
        read(tmp_path, {f"features/{name}": content, "labels/l.txt": b"a\nb\n"})
    assert len(refused.value.report) == 1
    assert f"'features/{name}': the rows have labels of their own, {where}" in refused.value.errors[0].detail


def test_arrays_with_labels_of_their_own_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.savez(stream, X=X, y=["a", "b", "c"])
    with pytest.raises(FormatError, match="in the array 'y'; a file of labels \\(--labels\\) is for rows without"):
        read(tmp_path, {"X.npz": stream.getvalue(), "Y.npz": npz(Y)})


def test_names_of_labels_may_be_json_lines(tmp_path: Path) -> None:
    members = {"texts.txt": b"one\ntwo\n", "labels.txt": b"0\n0 1\n", "names/n.json": NAMES}
    assert sets(read(tmp_path, members)) == [["A1"], ["A1", "B2"]]
