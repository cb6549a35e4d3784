"""Bins of features: cuts between sorted values, and the bin of every value."""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Floats, Ints, Ints32


class BinArrays(NamedTuple):
    """Binned features as compiled loops take them; :class:`solvers.boosting.weak_learners.binning.Bins` explains."""

    dense: Array
    indptr: Ints
    rows: Ints32
    codes: Array
    zero: Ints32
    n_bins: Ints32
    first: Ints


@njit(cache=True, nogil=True)
def cuts(indptr: Ints, values: Floats, n: int, limit: int, thresholds: Floats) -> Ints32:
    """Thresholds of every column, one after the other in ``thresholds``; returns how many each has.

    ``values[indptr[j] : indptr[j + 1]]`` are the entries of column j, ascending; the others of its n values are zero.
    A column of up to ``limit`` distinct values gets a cut between any two neighbours, others ``limit - 1`` cuts so
    that the bins hold about as many rows each; a value with many rows has a bin of its own.
    """
    n_columns = len(indptr) - 1
    n_cuts = np.zeros(n_columns, np.int32)
    longest = 0
    for j in range(n_columns):
        longest = max(longest, indptr[j + 1] - indptr[j])
    distinct, counts = np.empty(longest + 1), np.empty(longest + 1, np.int64)
    at = 0
    for j in range(n_columns):
        column = values[indptr[j] : indptr[j + 1]]
        m = _count_values(column, n - len(column), distinct, counts)
        if m <= limit:
            n_cuts[j] = _cut_everywhere(distinct[:m], thresholds[at:])
        else:
            n_cuts[j] = _cut_evenly(distinct[:m], counts, n, limit, thresholds[at:])
        at += n_cuts[j]
    return n_cuts


@njit(cache=True, nogil=True)
def _count_values(column: Floats, zeros: int, distinct: Floats, counts: Ints) -> int:
    """The distinct values of a column, ascending, and how often each occurs; returns how many there are.

    The column's entries are ascending, and so many zeros are not among them.
    """
    m = 0
    for v in column:
        if zeros > 0 and v >= 0.0:
            m = _count_value(0.0, zeros, m, distinct, counts)
            zeros = 0
        m = _count_value(v, 1, m, distinct, counts)
    return _count_value(0.0, zeros, m, distinct, counts) if zeros > 0 else m


@njit(inline="always")
def _count_value(v: float, times: int, m: int, distinct: Floats, counts: Ints) -> int:
    if m > 0 and distinct[m - 1] == v:
        counts[m - 1] += times
        return m
    distinct[m], counts[m] = v, times
    return m + 1


@njit(cache=True, nogil=True)
def _cut_everywhere(distinct: Floats, thresholds: Floats) -> int:
    for v in range(len(distinct) - 1):
        thresholds[v] = between(distinct[v], distinct[v + 1])
    return len(distinct) - 1


@njit(cache=True, nogil=True)
def _cut_evenly(distinct: Floats, counts: Ints, n: int, limit: int, thresholds: Floats) -> int:
    """Up to ``limit`` bins of about as many rows each; returns the number of cuts."""
    # a value as frequent as a whole bin gets one of its own; the others share the rest
    left, bins, held, at = n, limit, 0, 0
    for v in range(len(distinct)):
        if counts[v] * limit >= n:
            left -= counts[v]
            bins -= 1
    for v in range(len(distinct) - 1):
        alone = counts[v] * limit >= n
        if not alone:
            held += counts[v]
        if alone or held * bins >= left or counts[v + 1] * limit >= n:
            thresholds[at] = between(distinct[v], distinct[v + 1])
            at += 1
            if not alone:
                left -= held
                bins = max(bins - 1, 1)
                held = 0
            if at == limit - 1:
                break
    return at


@njit(cache=True, nogil=True)
def between(low: float, high: float) -> float:
    """The middle of low < high, or low where rounding would make it high."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


@njit(cache=True, nogil=True)
def bin_of(v: float, thresholds: Array, begin: int, end: int) -> int:
    """How many of the ascending ``thresholds[begin:end]`` are below v."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low - begin


@njit(cache=True, nogil=True)
def encode_dense(X: Floats, first: Ints, thresholds: Floats, out: Array) -> None:
    """out[f, i] = bin of X[f, i] among the thresholds of feature f."""
    for f in range(X.shape[0]):
        begin, end = first[f], first[f + 1]
        for i in range(X.shape[1]):
            out[f, i] = bin_of(X[f, i], thresholds, begin, end)


@njit(cache=True, nogil=True)
def encode_sparse(indptr: Ints, values: Floats, first: Ints, thresholds: Floats, out: Array) -> None:
    """out[p] = bin of values[p], whose feature f has ``indptr[f] <= p < indptr[f + 1]``."""
    for f in range(len(indptr) - 1):
        begin, end = first[f], first[f + 1]
        for p in range(indptr[f], indptr[f + 1]):
            out[p] = bin_of(values[p], thresholds, begin, end)
