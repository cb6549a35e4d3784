"""Rows of a sparse matrix against feature-major weights: layout and scores."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.lanes import above_mask, lowest_bit, sum_rows

ALIGNMENT = 64


class Rows(NamedTuple):
    """The rows of X with their features renumbered by falling document frequency, and their squared norms."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    squares: NDArray[np.float64]


def arrange(X: sp.csr_matrix, dtype: np.dtype[Any], *, ordered: bool = False) -> tuple[Rows, NDArray[np.int64]]:
    """Lay X out for training.

    Frequent features come first, so that their rows of W share cache lines and stay in cache; features without an
    entry are dropped.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    dtype : dtype
        float32 or float64, of the values and of the weights to come.
    ordered : bool
        Order the entries of each row by their new number, as products of rows need it.

    Returns
    -------
    rows : Rows
    features : int64 array, shape (n_used,)
        ``features[j]`` is the column of X that became j.
    """
    count = np.bincount(X.indices, minlength=X.shape[1])
    features = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    number = np.empty(X.shape[1], np.int32)
    number[features] = np.arange(len(features), dtype=np.int32)
    squares = np.bincount(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data**2, X.shape[0]).astype(np.float64)
    indices, data = number[X.indices], X.data.astype(dtype)
    if ordered:
        moved = sp.csr_matrix((data, indices, X.indptr), shape=(X.shape[0], max(len(features), 1)))
        moved.sort_indices()
        indices, data = moved.indices.astype(np.int32), moved.data
    return Rows(X.indptr.astype(np.int64), indices, data, squares), features


def weights(n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zero weights, shape (n_rows, n_classes) padded to whole cache lines and aligned to one."""
    width = ALIGNMENT // dtype.itemsize
    padded = -(-n_classes // width) * width
    raw = np.zeros(n_rows * padded + width, dtype)
    shift = (-raw.ctypes.data % ALIGNMENT) // dtype.itemsize
    return raw[shift : shift + n_rows * padded].reshape(n_rows, padded)


@njit(cache=True, nogil=True)
def score(rows: Rows, i: int, W: NDArray[Any], f: NDArray[Any]) -> None:
    """f = W' x_i, the padding included."""
    sum_rows(W, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], f)


@njit(cache=True, nogil=True)
def above(f: NDArray[Any], n_classes: int, threshold: float, found: NDArray[np.int32], n: int) -> int:
    """Append to found the classes whose score exceeds the threshold; f is padded to whole vectors."""
    lanes = ALIGNMENT // f.itemsize
    level = f.dtype.type(threshold)
    for begin in range(0, n_classes, lanes):
        mask = above_mask(f, begin, level)
        while mask:
            c = begin + lowest_bit(mask)
            mask &= mask - np.uint32(1)
            if c < n_classes:
                found[n] = c
                n += 1
    return n


@njit(cache=True, nogil=True)
def square_norm(W: NDArray[Any], n_classes: int) -> float:
    """Sum of squares of W in float64."""
    total = 0.0
    for j in range(W.shape[0]):
        part = 0.0
        for c in range(n_classes):
            part += np.float64(W[j, c]) * np.float64(W[j, c])
        total += part
    return total
