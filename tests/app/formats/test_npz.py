"""NPZ files: dense, sparse, texts and sets of labels; nothing is unpickled, and no header is believed."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, Parsed


def read(tmp_path: Path, arrays: dict[str, Any], **options: Any) -> Parsed:
    np.savez_compressed(tmp_path / "data.npz", **arrays)
    return parse(tmp_path / "data.npz", "npz", ImportOptions(**options))


def as_saved(X: Any) -> dict[str, Any]:
    """What scipy.sparse.save_npz writes."""
    stream = io.BytesIO()
    sp.save_npz(stream, X)
    stream.seek(0)
    return dict(np.load(stream))


X = sp.csr_matrix(np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 0], [0, 3, 4]]))


@pytest.mark.parametrize(
    "arrays",
    [{"X": X.toarray()}, {"X": np.asfortranarray(X.toarray())}, *map(as_saved, (X, X.tocsc(), sp.csr_array(X)))],
    ids=["dense", "fortran", "csr", "csc", "array"],
)
def test_matrices_are_read_as_numpy_and_scipy_save_them(tmp_path: Path, arrays: dict[str, Any]) -> None:
    parsed = read(tmp_path, {**arrays, "y": [7, 3, 7, 3], "weights": [1, 2, 3, 4], "split": [0, 1, 2, 0]})
    assert parsed.X is not None
    assert parsed.weights is not None
    assert parsed.split is not None
    np.testing.assert_array_equal(parsed.X.toarray(), X.toarray())
    assert parsed.X.has_canonical_format
    assert (parsed.labels, parsed.y.tolist()) == (["3", "7"], [1, 0, 1, 0])
    assert (parsed.weights.tolist(), parsed.split.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 0])


def test_integers_stand_for_names_and_sets_may_be_lists_or_a_matrix(tmp_path: Path) -> None:
    names = np.array(["b", "a", "c"])
    assert read(tmp_path, {"X": X.toarray(), "y": [0, 1, 0, 1], "label_names": names}).labels == ["a", "b"]
    lists = {"labels": [0, 1, 2], "label_indptr": [0, 2, 2, 3, 3], "names": names}
    matrix = {"y": np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]), "label_names": names}
    for given_ in (lists, matrix):
        parsed = read(tmp_path, {"X": X.toarray(), **given_})
        assert parsed.label_indptr is not None
        assert (parsed.labels, parsed.y.tolist()) == (["a", "b", "c"], [0, 1, 2])
        assert parsed.label_indptr.tolist() == [0, 2, 2, 3, 3]


def test_labels_in_one_column_are_one_label_a_row(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"X": X.toarray(), "y": np.array([[0], [1], [1], [0]])})
    assert (parsed.labels, parsed.y.tolist(), parsed.label_indptr) == (["0", "1"], [0, 1, 1, 0], None)
    assert read(tmp_path, {"X": X.toarray(), "y": np.array([[7], [3], [7], [3]])}).labels == ["3", "7"]


@pytest.mark.parametrize(
    ("arrays", "detail"),
    [
        ({"y": [0, 1, 2, 0], "label_names": np.array(["a", "b", " a"])}, "two labels are named 'a'"),
        ({"y": np.array([b"caf\xe9", b"caf\xe8", b"a", b"a"])}, "is not valid UTF-8"),
        ({"y": [0, 1, 0, 1], "label_names": np.array([b"caf\xe9", b"a"])}, "is not valid UTF-8"),
        ({"y": [0, 1, 0, 1], "feature_names": np.array([b"\xff", b"a", b"b"])}, "is not valid UTF-8"),
    ],
)
def test_names_that_would_become_one_are_refused(tmp_path: Path, arrays: dict[str, Any], detail: str) -> None:
    with pytest.raises(FormatError, match=detail):
        read(tmp_path, {"X": X.toarray(), **arrays})


def test_texts_are_read(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"texts": ["ein", "zwölf"], "label": ["a", "b"]})
    assert parsed.texts is not None
    assert list(parsed.texts) == ["ein", "zwölf"]


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(2), label=np.array([print, "b"], dtype=object))
    with pytest.raises(FormatError, match="which are pickled"):
        parse(path, "npz")


def test_a_header_that_promises_more_than_there_is_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path, header = tmp_path / "data.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 1 << 20)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(100))
        archive.writestr("y.npy", b"")
    with pytest.raises(FormatError, match="but the file has fewer"):
        parse(path, "npz")


def test_arrays_that_come_to_too_much_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)), y=np.zeros(1000, int))
    with pytest.raises(FormatError, match="at most 1,000,000 are allowed"):
        parse(path, "npz", most_unpacked=MostUnpacked(n_bytes=1_000_000))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_offsets_whose_differences_come_round_are_refused(tmp_path: Path, format: str) -> None:
    """As 64-bit numbers all differences of these are positive, and scipy would write where they point."""
    far = 2**63
    indptr = np.array([0, far - 1, -far, -1, 4], np.int64)
    arrays = {"data": np.ones(4), "indices": [0, 1, 2, 3], "indptr": indptr, "shape": [4, 4], "format": format}
    with pytest.raises(FormatError, match="expected 5 increasing offsets from 0"):
        read(tmp_path, {**arrays, "y": [0, 1, 0, 1]})
    with pytest.raises(FormatError, match="expected increasing offsets from 0"):
        read(tmp_path, {"X": np.eye(4), "label": [0, 1, 0, 1], "label_indptr": indptr})


def test_rows_that_take_no_bytes_are_bounded(tmp_path: Path) -> None:
    path, header = tmp_path / "data.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 0)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    with pytest.raises(FormatError, match=r"expected \(n, n_features\) of numbers"):
        parse(path, "npz")
    empty = {"data": np.empty(0), "indices": np.empty(0, int), "indptr": [0, 0], "shape": [2**31 - 1, 1]}
    with pytest.raises(FormatError, match="decompresses to more than 250 times its size"):
        read(tmp_path, {**empty, "format": "csc", "y": [0, 1]})


@pytest.mark.parametrize("name", ["texts", "label", "names", "feature_names", "split"])
def test_characters_that_unicode_does_not_have_are_refused(tmp_path: Path, name: str) -> None:
    broken = np.array([0x61, 0x110000], np.uint32).view("U1")
    given_ = {"label": ["a", "b"]} | ({} if name == "texts" else {"X": np.eye(2)}) | {name: broken}
    with pytest.raises(FormatError, match="invalid Unicode"):
        read(tmp_path, given_)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    np.savez(path, **as_saved(X), y=["a", "b", "a", "b"])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(8, len(content)))]))
    with suppress(FormatError):
        assert parse(path, "npz").n_rows > 0
