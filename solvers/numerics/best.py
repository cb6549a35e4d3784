"""The best of many scores, row by row, and the k-th smallest of many values."""

from typing import Any

import numpy as np
from numba import njit

from solvers.numerics.array_types import AnyFloats, Array, Ints

_FEW = 32


def best(scores: AnyFloats, k: int) -> tuple[Ints, AnyFloats]:
    """The k largest of every row by falling score, equal ones by their column.

    Parameters
    ----------
    scores : float array, shape (n, n_columns)
        Where a row has a nan, that comes first.
    k : int
        At least 1; the columns, at most.

    Returns
    -------
    columns : int64 array, shape (n, min(k, n_columns))
    values : float array of the same shape
    """
    k = min(k, scores.shape[1])
    columns, values = np.empty((len(scores), k), np.int64), np.empty((len(scores), k), scores.dtype)
    if k <= _FEW:
        _insert(np.ascontiguousarray(scores), columns, values)
        return columns, values
    for row, found, worth in zip(scores, columns, values, strict=True):
        cut = np.partition(row, len(row) - k)[len(row) - k]
        above = np.flatnonzero(~(row < cut))
        order = np.argsort(-row[above], kind="stable")
        found[:] = above[np.roll(order, np.isnan(row).sum())[:k]]
        worth[:] = row[found]
    return columns, values


@njit(cache=True, nogil=True)
def _insert(scores: Array, columns: Ints, values: Array) -> None:
    """For few: each goes to its place among the best so far."""
    k = columns.shape[1]
    for i in range(scores.shape[0]):
        row, found, worth = scores[i], columns[i], values[i]
        n = 0
        for c in range(len(row)):
            score = row[c]
            if n == k and score <= worth[k - 1]:
                continue
            if score != score:
                found[:] = c
                worth[:] = score
                break
            n = min(n + 1, k)
            place = n - 1
            while place > 0 and score > worth[place - 1]:
                worth[place], found[place] = worth[place - 1], found[place - 1]
                place -= 1
            worth[place], found[place] = score, c


@njit(cache=True, nogil=True)
def kth_smallest(values: Array, k: int) -> Any:
    """The value that would be at place k if the values were sorted (quickselect, Hoare 1961).

    In place of ``np.partition``, which takes five seconds to compile.

    Parameters
    ----------
    values : float array, shape (n,)
        Without NaN; changes its order.
    k : int
        From 0 to n - 1.
    """
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot = _median(values[first], values[(first + last) // 2], values[last])
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return values[k]


@njit(inline="always")
def _median(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))
