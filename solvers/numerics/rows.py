"""Rows of a sparse matrix against feature-major weights: layout and scores."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.row_sums import sum_rows
from solvers.numerics.simd import above_mask, lowest_bit

ALIGNMENT = 64
# of scores, for a bound on how many are high
PARTS = 64


class Rows(NamedTuple):
    """The rows of X with their features renumbered by falling document frequency, and their squared norms."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    squares: NDArray[np.float64]


def arrange(X: sp.csr_matrix, dtype: np.dtype[Any]) -> tuple[Rows, NDArray[np.int64]]:
    """Lay X out for training.

    Frequent features come first, so that their rows of W share cache lines and stay in cache; features without an
    entry are dropped. Each row is in the order of the new numbers, as products of rows need it, and as it takes to
    tell its frequent features from the others.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    dtype : dtype
        float32 or float64, of the values and of the weights to come.

    Returns
    -------
    rows : Rows
    features : int64 array, shape (n_used,)
        ``features[j]`` is the column of X that became j.
    """
    count = _count(X.indices, X.shape[1])
    features = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    starts = np.zeros(X.shape[1], np.int64)
    starts[features[1:]] = np.cumsum(count[features[:-1]])
    indptr, n_entries = X.indptr.astype(np.int64), len(X.indices)
    row, value, squares = np.empty(n_entries, np.int32), np.empty(n_entries, dtype), np.empty(X.shape[0])
    _to_columns(indptr, X.indices, X.data, starts, row, value, squares)
    indices, data = np.empty(n_entries, np.int32), np.empty(n_entries, dtype)
    _to_rows(count[features], row, value, indptr[:-1].copy(), indices, data)
    return Rows(indptr, indices, data, squares), features


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
def above(f: NDArray[Any], n_classes: int, threshold: float, found: NDArray[np.int32], most: int) -> int:
    """The classes whose score exceeds the threshold, to found: how many; f is padded to whole vectors.

    Stops looking once there are more than ``most``.
    """
    lanes = ALIGNMENT // f.itemsize
    level = f.dtype.type(threshold)
    n = 0
    for begin in range(0, n_classes, lanes):
        if n > most:
            break
        mask = above_mask(f, begin, level)
        while mask:
            c = begin + lowest_bit(mask)
            mask &= mask - np.uint32(1)
            if c < n_classes:
                found[n] = c
                n += 1
    return n


@njit(cache=True, nogil=True)
def best_of_parts(f: NDArray[Any], best: NDArray[Any]) -> None:
    """best[t] = the highest of f[t], f[t + PARTS], f[t + 2 PARTS] and so on; -inf where f is shorter."""
    best[:] = -np.inf
    for begin in range(0, f.shape[0], PARTS):
        for t in range(min(PARTS, f.shape[0] - begin)):
            best[t] = f[begin + t] if f[begin + t] > best[t] else best[t]


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


@njit(cache=True, nogil=True)
def _count(indices: NDArray[Any], n_features: int) -> NDArray[np.int64]:
    """How many entries each feature has."""
    count = np.zeros(n_features, np.int64)
    for p in range(indices.shape[0]):
        count[indices[p]] += 1
    return count


@njit(cache=True, nogil=True)
def _to_columns(
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    data: NDArray[np.float64],
    starts: NDArray[np.int64],
    row: NDArray[np.int32],
    value: NDArray[Any],
    squares: NDArray[np.float64],
) -> None:
    """The entries by feature, those of j from starts[j] on, which moves to their end; squared norms of the rows."""
    for i in range(squares.shape[0]):
        square = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            to = starts[j]
            row[to], value[to] = i, x
            starts[j] = to + 1
            square += x * x
        squares[i] = square


@njit(cache=True, nogil=True)
def _to_rows(
    count: NDArray[np.int64],
    row: NDArray[np.int32],
    value: NDArray[Any],
    free: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
) -> None:
    """The entries by row again, each row by rising feature; free[i] is the start of row i and moves to its end."""
    p = 0
    for j in range(count.shape[0]):
        for _ in range(count[j]):
            to = free[row[p]]
            indices[to], data[to] = j, value[p]
            free[row[p]] = to + 1
            p += 1
