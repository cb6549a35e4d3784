"""Sparse rows, and weights of which only the rows of frequent features are dense; for how many, time decides.

Where classes are few, a dense row is read as fast as the list of a rare feature is found. Where they are many thousands
it costs microseconds, and most of it is zero. Which features are dense never changes a bit of the result, so it may
depend on the memory at hand.

Feature-major weights that may be sparse: dense rows for frequent features, sorted lists of classes for all others.

Sums over the entries of an example run in the order of its features here as in the dense rows, and a missing entry adds
nothing, so that no bit of a result depends on which features are dense.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.core.memory import limit_bytes, refuse
from solvers.linear.layouts import class_lists
from solvers.linear.layouts.class_lists import AHEAD, LANES, Lists, add_scores, capacity, directory, end_at, index
from solvers.linear.layouts.layouts import SparseLayout
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, Rows, arrange, weights
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
    """The weights that are not zero, shape (n_features, n_classes): row j is that of ``features[j]``, c a class."""
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
    """W = sum_i v_i x_i' afresh, free of rounding and of entries without a dual variable; False without room.

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


DENSE_CLASSES = 8192
FREQUENT = 0.01
DENSE_SHARE, HOT_SHARE = 0.75, 0.25
FIND, OPEN = 12.0, 10.0
ENTRIES_EACH = 24
ROOM = 1 << 16


class Change(NamedTuple):
    """A change of the weights: of the dense rows, and of the value of every entry of the lists."""

    hot: Array
    values: Array


@dataclass(frozen=True, eq=False)
class HybridLayout(SparseLayout):
    """Rows ordered by the frequency of their features; weights as :mod:`solvers.linear.layouts.hybrid_layout` has
    them.

    Attributes
    ----------
    n_hot : int
        How many features, the most frequent ones, have a dense row.
    n_entries : int
        Entries that the pool of lists begins with; only those that come to be used cost memory.
    memory_mb : int, optional
        The megabytes that the weights may take; None: those that the machine has.
    """

    n_hot: int
    n_entries: int
    memory_mb: int | None

    @classmethod
    def within(
        cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any], memory_mb: int | None, part: float = 1.0
    ) -> "HybridLayout":
        """The layout that is the fastest of those that fit; the classes are this ``part`` of those of the examples."""
        rows, features = arrange(X, dtype)
        lines = -(-n_classes // (ALIGNMENT // dtype.itemsize))
        allowed, lengths = limit_bytes(memory_mb), np.diff(rows.indptr).astype(np.float64)
        n_hot, n_entries, full, listed = len(features), 0, lengths * (1 + lines), 1.5 * lengths
        if not fits_dense(n_hot, n_classes, dtype, memory_mb):
            # a list of these classes is by this part shorter, as if fewer examples had the feature
            counts: Floats = part * np.bincount(rows.indices).astype(np.float64)
            if n_classes > DENSE_CLASSES:
                n_hot, full, listed = _plan(rows, counts, n_classes, lines)
            if n_hot * lines * ALIGNMENT > DENSE_SHARE * allowed:
                n_hot = int(HOT_SHARE * allowed) // (lines * ALIGNMENT)
            n_entries = int(np.minimum(n_classes, ENTRIES_EACH * counts[n_hot:]).sum()) * 3 // 2 + ROOM
            n_entries = min(n_entries, allowed // (4 * dtype.itemsize))
        return cls(rows, features, full, listed, n_classes, dtype, n_hot, n_entries, memory_mb)

    @classmethod
    def takes_lists(cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any], memory_mb: int | None) -> bool:
        """Whether :meth:`within` leaves features without a dense row; of few classes it does not arrange the rows."""
        if n_classes > DENSE_CLASSES:
            layout = cls.within(X, n_classes, dtype, memory_mb)
            return layout.n_hot < len(layout.features)
        used = int(np.count_nonzero(np.bincount(X.indices, minlength=X.shape[1])))
        return not fits_dense(used, n_classes, dtype, memory_mb)

    @classmethod
    def dense(cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any]) -> "HybridLayout":
        """The layout whose rows are all dense, whatever memory they take."""
        sparse = SparseLayout.from_matrix(X, n_classes, dtype)
        rows, features = sparse.rows, sparse.features
        return cls(rows, features, sparse.full, sparse.listed, n_classes, dtype, len(features), 0, None)

    def with_constant(self, feature: int, value: float, share: float) -> Self:
        held = super().with_constant(feature, value, share)
        assert held.constant is not None
        # its row has to be dense: all examples have it
        return replace(held, n_hot=max(self.n_hot, held.constant.place + 1))

    def weights(self) -> Weights:
        return self._zeros(self.n_hot, self.n_entries)

    def no_change(self, W: Weights, former: Change | None) -> Change:
        """A change of the weights W that vanishes; the former one if it will do."""
        n_entries = 0 if W.lists is None else W.lists.n_entries
        if former is not None and len(former.values) >= n_entries:
            return former
        return Change(weights(len(W.hot), self.n_classes, self.dtype), np.zeros(n_entries, self.dtype))

    def with_capacity(self, W: Weights) -> Weights:
        """The same weights, with room for what the last visit lacked.

        Raises
        ------
        TooLargeError
            They would take more memory than allowed.
        """
        if W.lists is None or (needed := class_lists.room_needed(W.lists, ROOM)) <= W.lists.n_entries:
            return W
        cells = self._pool(W, needed + needed // 2)
        used = 2 * int(W.lists.counters["end"][0])
        cells[:used] = W.lists.cells[:used]
        return Weights(W.hot, W.lists._replace(cells=cells))

    def larger(self, W: Weights) -> Weights:
        """The same dense rows, and lists without an entry in a pool of twice the size; raises TooLargeError."""
        assert W.lists is not None
        cells = self._pool(W, 2 * W.lists.n_entries)
        lengths, counters = np.zeros_like(W.lists.length), W.lists.counters.copy()
        counters["end"] = 0
        return Weights(W.hot, W.lists._replace(length=lengths, cells=cells, counters=counters))

    def _pool(self, W: Weights, n_entries: int) -> Array:
        """An empty pool beside that of W."""
        assert W.lists is not None
        n_weights = len(W.hot) * self.n_classes + int(W.lists.length.sum())
        what = f"training with {n_weights:,} weights of {len(self.features):,} x {self.n_classes:,} so far"
        refuse(what, W.hot.nbytes + W.lists.cells.nbytes + 2 * self.dtype.itemsize * n_entries, self.memory_mb)
        return np.zeros(2 * (n_entries + class_lists.LANES), self.dtype)

    def state(self, W: Weights) -> dict[str, Array]:
        if W.lists is None:
            return {"W": W.hot}
        _, start, length, cells, counters = W.lists
        used, numbers = cells[: 2 * counters["end"][0]], counters.view(np.int64)
        return {"W": W.hot, "list_start": start, "list_length": length, "list_cells": used, "list_clock": numbers}

    def restored(self, state: Mapping[str, Array]) -> Weights:
        n_entries = max(self.n_entries, int(_counters(state)["limit"][0])) if "list_clock" in state else 0
        n_hot, k = min(len(state["W"]), len(self.features)), self.n_classes
        W = self._zeros(n_hot, n_entries)
        W.hot[:, :k] = state["W"][:n_hot, :k]
        if W.lists is not None:
            _, start, length, cells, counters = W.lists
            used = state["list_cells"]
            start[:], length[:], counters[:] = state["list_start"], state["list_length"], _counters(state)
            cells[: len(used)] = used
        return W

    def multiply(self, W: Weights, factor: float) -> None:
        super().multiply(W.hot, factor)
        if W.lists is not None:
            class_lists.multiply(W.lists, factor)

    def _held(self, W: Weights) -> Array:
        return super()._held(W.hot)

    def _square_sum(self, W: Weights) -> float:
        total = super()._square_sum(W.hot)
        return total if W.lists is None else float(class_lists.square_norm(W.lists, total))

    def csr(self, state: Mapping[str, Array], n_features: int, class_of: Ints32) -> sp.csr_matrix:
        """The weights of a state that are not zero, shape (n_features, n_classes); column c is ``class_of[c]``."""
        found = to_csr(weights_in(state), self.features, n_features, self.n_classes, class_of)
        if self.constant is not None:
            row = int(self.features[self.constant.place])
            found.data[found.indptr[row] : found.indptr[row + 1]] *= found.dtype.type(self.constant.root)
        return found

    def _zeros(self, n_hot: int, n_entries: int) -> Weights:
        hot, n_features = weights(n_hot, self.n_classes, self.dtype), len(self.features)
        if n_hot == n_features:
            return Weights(hot, None)
        return Weights(hot, class_lists.empty(self.rows, n_features, n_hot, self.n_classes, n_entries))


def fits_dense(n_features: int, n_classes: int, dtype: np.dtype[Any], memory_mb: int | None) -> bool:
    """Whether all rows are dense: classes are few enough, and the rows take no more than a share of the memory."""
    row = -(-n_classes // (ALIGNMENT // dtype.itemsize)) * ALIGNMENT
    return n_classes <= DENSE_CLASSES and n_features * row <= DENSE_SHARE * limit_bytes(memory_mb)


def expected_lengths(counts: Floats, n_classes: int) -> Floats:
    """How long lists become of features that so many examples have: ``k (1 - exp(-(n / k)^0.55 / 2))``.

    As was measured on synthetic text.
    """
    return np.asarray(n_classes * -np.expm1(-0.5 * (counts / n_classes) ** 0.55))


def weights_in(state: Mapping[str, Array]) -> Weights:
    """The weights of a state that has lists, for reading."""
    start, length, cells = (state[f"list_{name}"] for name in ("start", "length", "cells"))
    return Weights(state["W"], Lists(np.empty(0, np.int64), start, length, cells, _counters(state)))


def _counters(state: Mapping[str, Array]) -> Array:
    """Those of the lists of a state, which has them as whole numbers."""
    return np.asarray(state["list_clock"]).view(class_lists.COUNTERS)


def _plan(rows: Rows, counts: Floats, n_classes: int, lines: int) -> tuple[int, Floats, Floats]:
    """How many features to keep dense if time alone decides, and what visits of each row cost then.

    At a fifth of k examples adding up a list takes the time of a dense row; but to look up a few entries, as most
    visits do, costs several times what it does in a dense row, so dense rows pay far earlier.
    """
    n_hot = int(np.count_nonzero(counts >= FREQUENT * n_classes))
    hot = np.arange(len(counts)) < n_hot
    lengths = expected_lengths(counts, n_classes)
    full, listed = np.zeros(len(rows.squares)), np.zeros(len(rows.squares))
    sum_by_row(rows.indptr, rows.indices, np.where(hot, 1.0 + lines, OPEN + lengths), full)
    sum_by_row(rows.indptr, rows.indices, np.where(hot, 1.5, FIND), listed)
    return n_hot, full, listed
