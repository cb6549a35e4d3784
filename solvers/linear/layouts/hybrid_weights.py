"""Feature-major weights that may be sparse: dense rows for frequent features, sorted lists of classes for all others.

Sums over the entries of an example run in the order of its features here as in the dense rows, and a missing entry adds
nothing, so that no bit of a result depends on which features are dense.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.linear.layouts.class_lists import LANES, Lists, capacity, directory, end_at, index
from solvers.linear.layouts.list_visits import AHEAD, add_scores
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows
from solvers.numerics.simd import lowest_bit, prefetch

BATCH = 1 << 22


class Weights(NamedTuple):
    """Weights of features in the order of :func:`solvers.numerics.rows.arrange`.

    Compiled loops take the two apart, so that they are compiled without a trace of lists where there are none.

    Attributes
    ----------
    hot : float array, shape (n_hot, padded)
        The first features' rows, as :func:`solvers.numerics.rows.weights` makes them.
    lists : Lists, optional
        Those of all other features, where there are any.
    """

    hot: Array
    lists: Lists | None


def to_csr(W: Weights, features: Ints, n_features: int, n_classes: int, class_of: Ints32) -> sp.csr_matrix:
    """The weights that are not zero, shape (n_features, n_classes): row j stands for ``features[j]``, c for a class."""
    assert W.lists is not None
    number = np.full(n_features, -1)
    number[features] = np.arange(len(features))
    indptr = np.zeros(n_features + 1, np.int64)
    _count_nonzeros(W.hot, W.lists, number, n_classes, indptr)
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], W.hot.dtype)
    _copy_nonzeros(W.hot, W.lists, number, n_classes, class_of, indptr, indices, data)
    return sp.csr_matrix((data, indices, indptr), shape=(n_features, n_classes))


@njit(cache=True, nogil=True)
def score(rows: Rows, i: int, hot: Array, lists: Lists | None, f: Array) -> None:
    """f = W' x_i, the padding included."""
    low, high = rows.indptr[i], rows.indptr[i + 1]
    if lists is None:
        sum_rows(hot, rows.indices, rows.data, low, high, f)
    else:
        mid = lists.middle[i]
        sum_rows(hot, rows.indices, rows.data, low, mid, f)
        add_scores(rows.indices, rows.data, mid, high, hot.shape[0], lists.start, lists.length, lists.cells, f)


@njit(cache=True, nogil=True)
def sum_by_row(indptr: Ints, indices: Ints32, costs: Floats, total: Floats) -> None:
    """total[i] = sum of the costs of the features of row i."""
    for i in range(total.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            total[i] += costs[indices[p]]


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, pool: Coefficients, hot: Array, lists: Lists) -> bool:
    """W = sum_i v_i x_i' afresh, free of rounding and of entries that no dual variable stands for; False without room.

    Lists are made in the order of their features, from a batch of columns of X at a time.
    """
    n, n_hot, n_cold = pool.start.shape[0], hot.shape[0], lists.start.shape[0]
    hot[:] = 0
    for i in range(n):
        begin, m = pool.start[i], pool.length[i]
        if m > 0:
            for at in range(rows.indptr[i], lists.middle[i]):
                w, x = hot[rows.indices[at]], rows.data[at]
                for t in range(begin, begin + m):
                    w[pool.classes[t]] += pool.values[t] * x
    count, position = np.zeros(n_cold, np.int64), lists.middle.copy()
    for i in range(n):
        if pool.length[i] == 0:
            position[i] = rows.indptr[i + 1]
        for at in range(position[i], rows.indptr[i + 1]):
            count[rows.indices[at] - n_hot] += 1
    size = min(max(BATCH, count.max()), count.sum())
    row, value = np.empty(size, np.int32), np.empty(size, lists.cells.dtype)
    w = np.zeros(hot.shape[1], lists.cells.dtype)
    words = np.zeros((w.shape[0] >> 5) + 1, np.uint32)
    groups = np.zeros((words.shape[0] >> 5) + 1, np.uint32)
    following = np.zeros(n_cold, np.int64)
    end = first = 0
    while first < n_cold:
        last, total = first, 0
        while last < n_cold and total + count[last] <= size:
            following[last] = total
            total += count[last]
            last += 1
        for i in range(n):
            at, high = position[i], rows.indptr[i + 1]
            while at < high and rows.indices[at] - n_hot < last:
                j = rows.indices[at] - n_hot
                row[following[j]], value[following[j]] = i, rows.data[at]
                following[j] += 1
                at += 1
            position[i] = at
        for j in range(first, last):
            m = 0
            for p in range(following[j] - count[j], following[j]):
                if p + AHEAD < total:
                    prefetch(pool.classes, pool.start[row[p + AHEAD]])
                    prefetch(pool.values, pool.start[row[p + AHEAD]])
                begin, x = pool.start[row[p]], value[p]
                for t in range(begin, begin + pool.length[row[p]]):
                    c = pool.classes[t]
                    w[c] += pool.values[t] * x
                    m += _mark(c, words, groups)
            begin = end + directory(m, lists.cells.itemsize)
            end = begin + capacity(m)
            if end > lists.cells.shape[0] // 2 - LANES:
                return False
            lists.start[j], lists.length[j] = begin, m
            _gather(w, words, groups, lists.cells, begin)
            index(lists.cells, begin, m, lists.counters[0].bits)
        first = last
    end_at(lists.cells, lists.counters, end)
    lists.counters[0].limit = max(lists.counters[0].limit, end)
    return True


@njit(inline="always")
def _gather(w: Array, words: NDArray[np.uint32], groups: NDArray[np.uint32], cells: Array, to: int) -> None:
    """Write the marked numbers of w as entries from ``to`` on, by rising class, and clear them and their marks."""
    raw, step = cells.view(np.int32), cells.itemsize // 2
    for group in range(groups.shape[0]):
        while groups[group]:
            word = 32 * group + lowest_bit(groups[group])
            groups[group] &= groups[group] - np.uint32(1)
            while words[word]:
                c = 32 * word + lowest_bit(words[word])
                words[word] &= words[word] - np.uint32(1)
                raw[step * to], cells[2 * to + 1] = c, w[c]
                w[c] = 0
                to += 1


@njit(cache=True, nogil=True)
def _count_nonzeros(hot: Array, lists: Lists, number: Ints, n_classes: int, count: Ints) -> None:
    """count[j + 1] is how many weights of feature j are not zero; number[j] is the feature's place in W, or -1."""
    n_hot = hot.shape[0]
    for j in range(number.shape[0]):
        row, n = number[j], 0
        if row >= n_hot:
            begin = lists.start[row - n_hot]
            for at in range(begin, begin + lists.length[row - n_hot]):
                n += lists.cells[2 * at + 1] != 0
        elif row >= 0:
            for c in range(n_classes):
                n += hot[row, c] != 0
        count[j + 1] = n


@njit(cache=True, nogil=True)
def _copy_nonzeros(
    hot: Array, lists: Lists, number: Ints, n_classes: int, class_of: Ints32, indptr: Ints, indices: Ints32, data: Array
) -> None:
    """The weights that are not zero, by feature and class."""
    n_hot, raw, step = hot.shape[0], lists.cells.view(np.int32), lists.cells.itemsize // 2
    w = np.zeros(n_classes, data.dtype)
    words = np.zeros((n_classes >> 5) + 1, np.uint32)
    groups = np.zeros((words.shape[0] >> 5) + 1, np.uint32)
    for j in range(number.shape[0]):
        row, to = number[j], indptr[j]
        if row >= n_hot:
            begin = lists.start[row - n_hot]
            for at in range(begin, begin + lists.length[row - n_hot]):
                c = class_of[raw[step * at]]
                w[c] = lists.cells[2 * at + 1]
                _mark(c, words, groups)
        elif row >= 0:
            for c in range(n_classes):
                if hot[row, c] != 0:
                    w[class_of[c]] = hot[row, c]
                    _mark(class_of[c], words, groups)
        for group in range(groups.shape[0]):
            while groups[group]:
                word = 32 * group + lowest_bit(groups[group])
                groups[group] &= groups[group] - np.uint32(1)
                while words[word]:
                    c = 32 * word + lowest_bit(words[word])
                    words[word] &= words[word] - np.uint32(1)
                    if w[c] != 0:
                        indices[to], data[to] = c, w[c]
                        to += 1


@njit(inline="always")
def _mark(c: int, words: NDArray[np.uint32], groups: NDArray[np.uint32]) -> bool:
    """Set the bit of class c, and of its word; whether that is news."""
    word, bit = c >> 5, np.uint32(1) << np.uint32(c & 31)
    if words[word] & bit:
        return False
    words[word] |= bit
    groups[word >> 5] |= np.uint32(1) << np.uint32(word & 31)
    return True
