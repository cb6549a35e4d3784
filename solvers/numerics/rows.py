"""Rows of a sparse matrix against feature-major weights: layout and scores."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.row_sums import sum_rows

ALIGNMENT = 64
# of scores, for a bound on how many are high
PARTS = 64
# what may be rounded beside the products of a score, as weights that are scaled and biases are; and what of the
# smallest normal number the products of scaled weights may lose
ROUNDINGS, TINY = 8, 1e5


class Rows(NamedTuple):
    """The rows of X with their features renumbered by falling document frequency, and their squared norms."""

    indptr: Ints
    indices: Ints32
    data: Array
    squares: Floats


def arrange(X: sp.csr_matrix, dtype: np.dtype[Any]) -> tuple[Rows, Ints]:
    """Lay X out for training.

    Frequent features come first, so that their rows of W share cache lines and stay in cache; features without an
    entry are dropped. Each row is in the order of the new numbers, as products of rows need it, and as needed to
    separate its frequent features from the others.

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
    count, features = _by_frequency(X)
    starts = np.zeros(X.shape[1], np.int64)
    starts[features[1:]] = np.cumsum(count[features[:-1]])
    indptr, n_entries = X.indptr.astype(np.int64), len(X.indices)
    row, value, squares = np.empty(n_entries, np.int32), np.empty(n_entries, dtype), np.empty(X.shape[0])
    _to_columns(indptr, X.indices, X.data, starts, row, value, squares)
    indices, data = np.empty(n_entries, np.int32), np.empty(n_entries, dtype)
    _to_rows(count[features], row, value, indptr[:-1].copy(), indices, data)
    return Rows(indptr, indices, data, squares), features


def features_by_frequency(X: sp.csr_matrix) -> Ints:
    """The features of :func:`arrange`, int64, shape (n_used,), without the rows."""
    return _by_frequency(X)[1]


def _by_frequency(X: sp.csr_matrix) -> tuple[Ints, Ints]:
    """How many entries each feature has, and those that have any, by falling count."""
    count = _count(X.indices, X.shape[1])
    used = np.flatnonzero(count)
    return count, used[np.argsort(-count[used], kind="stable")]


def weights(n_rows: int, n_classes: int, dtype: np.dtype[Any]) -> Array:
    """Zero weights, shape (n_rows, n_classes) padded to whole cache lines and aligned to one."""
    width = ALIGNMENT // dtype.itemsize
    padded = -(-n_classes // width) * width
    raw = np.zeros(n_rows * padded + width, dtype)
    shift = (-raw.ctypes.data % ALIGNMENT) // dtype.itemsize
    return raw[shift : shift + n_rows * padded].reshape(n_rows, padded)


@njit(cache=True, nogil=True)
def score(rows: Rows, i: int, W: Array, f: Array) -> None:
    """f = W' x_i, the padding included."""
    sum_rows(W, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], f)


@njit(cache=True, nogil=True)
def above(f: Array, n_classes: int, threshold: float, found: Ints32, most: int) -> int:
    """The classes whose score exceeds the threshold, to found: how many.

    Stops looking once there are more than ``most``.
    """
    level = f.dtype.type(threshold)
    n = 0
    for c in range(n_classes):
        if f[c] > level:
            found[n] = c
            n += 1
            if n > most:
                break
    return n


@njit(cache=True, nogil=True)
def best_of_parts(f: Array, best: Array) -> None:
    """best[t] = the highest of f[t], f[t + PARTS], f[t + 2 PARTS] and so on; -inf where f is shorter."""
    best[:] = -np.inf
    for begin in range(0, f.shape[0], PARTS):
        for t in range(min(PARTS, f.shape[0] - begin)):
            best[t] = f[begin + t] if f[begin + t] > best[t] else best[t]


def sure_leads(
    leads: Floats, n_terms: Floats | Ints, squares: Floats, square_sum: float, dtype: np.dtype[Any]
) -> Bools:
    """Which leads of a score over all others are positive in whatever order the scores are summed.

    A sum of m products is off by ``m u |x| |w|`` at most, u the unit roundoff (Higham 2002, section 3.1): two sums of a
    difference of two scores are apart by four times that at most. ``|w|`` is bounded by the norm of all weights.

    Parameters
    ----------
    leads : float64 array, shape (n_samples,)
    n_terms : array, shape (n_samples,)
        The products that a score of each example sums.
    squares : float64 array, shape (n_samples,)
        The squared norms of the examples.
    square_sum : float
        The sum of the squares of all weights.
    dtype : dtype
        Of weights and scores.

    Returns
    -------
    bool array, shape (n_samples,)
    """
    limits, reach = np.finfo(dtype), np.sqrt(squares) * np.sqrt(square_sum)
    one = float(limits.eps) * reach + TINY * float(limits.tiny)
    return np.asarray(leads > 2.0 * (n_terms + ROUNDINGS) * one)


@njit(cache=True, nogil=True)
def square_norm(W: Array, n_classes: int) -> float:
    """Sum of squares of W in float64, one by one: zeros in between change no bit."""
    total = 0.0
    for j in range(W.shape[0]):
        part = 0.0
        for c in range(n_classes):
            part += np.float64(W[j, c]) * np.float64(W[j, c])
        total += part
    return total


@njit(cache=True, nogil=True)
def _count(indices: Array, n_features: int) -> Ints:
    count = np.zeros(n_features, np.int64)
    for p in range(indices.shape[0]):
        count[indices[p]] += 1
    return count


@njit(cache=True, nogil=True)
def _to_columns(
    indptr: Ints, indices: Array, data: Floats, starts: Ints, row: Ints32, value: Array, squares: Floats
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
def _to_rows(count: Ints, row: Ints32, value: Array, free: Ints, indices: Ints32, data: Array) -> None:
    """The entries by row again, each row by rising feature; free[i] is the start of row i and moves to its end."""
    p = 0
    for j in range(count.shape[0]):
        for _ in range(count[j]):
            to = free[row[p]]
            indices[to], data[to] = j, value[p]
            free[row[p]] = to + 1
            p += 1
