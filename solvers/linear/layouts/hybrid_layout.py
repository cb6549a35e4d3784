"""Sparse rows, and weights of which only the rows of frequent features are dense; for how many, time decides.

Where classes are few, a dense row is read as fast as the list of a rare feature is found. Where they are many thousands
it costs microseconds, and most of it is zero. Which features are dense never changes a bit of the result, so it may
depend on the memory at hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from solvers.core.memory import limit_bytes, refuse
from solvers.linear.layouts import class_lists, hybrid_weights
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.layouts.hybrid_weights import Weights
from solvers.linear.layouts.layouts import SparseLayout
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.rows import ALIGNMENT, Rows, arrange, weights

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
    """Rows ordered by the frequency of their features; weights as :mod:`solvers.linear.layouts.hybrid_weights` has
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
        """Whether :meth:`within` leaves features without a dense row; of few classes told without arranging rows."""
        if n_classes > DENSE_CLASSES:
            layout = cls.within(X, n_classes, dtype, memory_mb)
            return layout.n_hot < len(layout.features)
        used = int(np.count_nonzero(np.bincount(X.indices, minlength=X.shape[1])))
        return not fits_dense(used, n_classes, dtype, memory_mb)

    @classmethod
    def dense(cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any]) -> "HybridLayout":
        """The layout whose rows are all dense, whatever memory they take."""
        sparse = SparseLayout.of(X, n_classes, dtype)
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

    def with_room(self, W: Weights) -> Weights:
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
        found = hybrid_weights.to_csr(weights_in(state), self.features, n_features, self.n_classes, class_of)
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
    hybrid_weights.sum_by_row(rows.indptr, rows.indices, np.where(hot, 1.0 + lines, OPEN + lengths), full)
    hybrid_weights.sum_by_row(rows.indptr, rows.indices, np.where(hot, 1.5, FIND), listed)
    return n_hot, full, listed
