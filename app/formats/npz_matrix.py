"""The matrix of an NPZ file: dense, or sparse as scipy saves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from app.formats.matrix import MAX_INDEX, Rows
from app.formats.table import FormatError, row_error, shorten

# where a row begins, and which row an entry is of
_ROW_BYTES = 16
SPARSE = ("data", "indices", "indptr", "shape")

Array = npt.NDArray[Any]


def dense_matrix(array: Array) -> csr_matrix[np.float64]:
    # without columns a header may promise any number of rows, which take no bytes
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "biuf":
        raise shape_error("X", array, "(n, n_features) of numbers")
    rows = Rows()
    for begin in range(0, len(array), 4096):
        block = np.asarray(array[begin : begin + 4096], np.float64)
        row, column = np.nonzero(block)
        lengths = np.bincount(row, minlength=len(block)).astype(np.int64)
        rows.add(lengths, column.astype(np.int32), block[row, column])
    return rows.build(array.shape[1])


def sparse_matrix(arrays: Mapping[str, Array], check: Callable[[int], None]) -> csr_matrix[np.float64]:
    """The matrix of scipy's arrays; every index is checked before anything is looked up by it.

    ``check`` raises FormatError where so many bytes are more than the file may come to.
    """
    missing = [name for name in SPARSE if name not in arrays]
    if missing:
        raise row_error(1, f"the sparse matrix lacks {', '.join(missing)}")
    kind = _word(arrays.get("format"))
    if kind not in ("csr", "csc"):
        raise row_error(1, f"the sparse matrix has the format '{shorten(kind)}': save it with .tocsr()", "format")
    data, indices, indptr, shape = (arrays[name] for name in SPARSE)
    for name, array, kinds in (("data", data, "biuf"), ("indices", indices, "iu"), ("indptr", indptr, "iu")):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise shape_error(name, array, "a list of numbers" if name == "data" else "a list of integers")
    if (
        shape.shape != (2,)
        or shape.dtype.kind not in "iu"
        or not all(0 <= size <= MAX_INDEX for size in shape.tolist())
    ):
        raise row_error(1, "expected two lengths: rows and features", "shape")
    n, d = (int(length) for length in shape.tolist())
    outer, inner = (n, d) if kind == "csr" else (d, n)
    if (
        len(indptr) != outer + 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or (indptr[1:] < indptr[:-1]).any()  # compared: differences of large numbers come round to small ones
    ):
        raise row_error(1, f"expected {outer + 1:,} increasing offsets from 0 to the number of indices", "indptr")
    if kind == "csc":
        check(_ROW_BYTES * n)  # by columns any number of rows takes no bytes
    if len(data) != len(indices):
        raise row_error(1, f"{len(data):,} values for {len(indices):,} indices", "data")
    if len(indices) and not (indices.min() >= 0 and indices.max() < inner):
        at = int(np.flatnonzero((indices < 0) | (indices >= inner))[0])
        row = int(np.searchsorted(indptr, at, "right"))
        raise row_error(row, f"an index is not between 0 and {inner - 1}", "indices")
    parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int64))
    matrix = csr_matrix(parts, shape=(n, d)) if kind == "csr" else csc_matrix(parts, shape=(n, d)).tocsr()
    matrix.has_canonical_format = matrix.has_sorted_indices = False
    matrix.sort_indices()
    of = np.repeat(np.arange(n), np.diff(matrix.indptr))
    twice = np.flatnonzero((np.diff(matrix.indices) == 0) & (np.diff(of) == 0))
    if len(twice):
        raise row_error(int(of[twice[0]]) + 1, "an index is given twice", "indices")
    matrix.eliminate_zeros()
    matrix.has_canonical_format = True
    return matrix


def text_of(value: object, name: str) -> str:
    """A string of the array of that name, which may be bytes; raises FormatError where it is not valid UTF-8."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
        text.encode()
    except UnicodeError as error:
        raise row_error(1, f"{shorten(ascii(value))} is not valid UTF-8", name) from error
    return text


def _word(array: Array | None) -> str:
    return "csr" if array is None else text_of(array.item() if array.size == 1 else "?", "format")


def shape_error(name: str, array: Array, expected: str) -> FormatError:
    """The error of an array that is of another shape or type than it should be."""
    return row_error(1, f"the array has the shape {array.shape} and type {array.dtype}, expected {expected}", name)
