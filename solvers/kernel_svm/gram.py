"""Columns of the Gram matrix on demand, the latest kept within a budget of bytes."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.kernel_svm.kernel_function import KernelFunction, square_lengths
from solvers.numerics.array_types import Floats, Ints, Ints32

# eight doubles are a cache line: a feature's values in eight picked examples come with one access
PANEL_WIDTH = 8
AT_ONCE = 64


class CachedColumns(NamedTuple):
    """The columns at hand, as compiled loops take them.

    Attributes
    ----------
    store : float64 array, shape (n_slots, n_samples)
        The columns.
    slot : int64 array, shape (n_samples,)
        Where each example's column is; -1 where it is not at hand.
    last_use : int64 array, shape (n_slots,)
        The number of the last use of each slot.
    uses : int64 array, shape (1,)
        How many uses there were.
    """

    store: Floats
    slot: Ints
    last_use: Ints
    uses: Ints


class Gram:
    """K(x_i, x_j) over the rows of X, column by column.

    A column has the same bits whichever columns it is computed with, so that what the cache holds changes no result.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        The Gram matrix itself, symmetric, if the kernel is ``precomputed``.
    cache_bytes : int
        What the kept columns may take.
    at_least : int
        So many columns are kept in any case: as many as :meth:`columns` will be asked for at once.
    offset : float
        Added to every kernel value, as a constant in the space of the kernel does.

    Attributes
    ----------
    diagonal : float64 array, shape (n_samples,)
    cached : CachedColumns
    store : float64 array, shape (n_slots, n_samples)
        The columns, each in the slot that :meth:`columns` names.
    computed : int
        Columns computed so far, those computed again included.
    """

    def __init__(
        self, X: sp.csr_matrix, kernel: KernelFunction, cache_bytes: int, at_least: int, offset: float = 0.0
    ) -> None:
        n = X.shape[0]
        self.kernel = kernel
        self._offset = offset
        self._squares = square_lengths(X)
        given = kernel.name == "precomputed"
        self.diagonal = (X.diagonal() if given else kernel.self_values(self._squares)) + offset
        self._X = X if given else _compact(X)
        self._panel = np.zeros((self._X.shape[1], PANEL_WIDTH))
        self.store = np.empty((min(n, max(at_least, cache_bytes // (8 * n))), n))
        n_slots = len(self.store)
        none = np.full(n, -1, np.int64)
        self.cached = CachedColumns(self.store, none, np.zeros(n_slots, np.int64), np.zeros(1, np.int64))
        self._owner = np.full(n_slots, -1, np.int64)
        self.computed = 0

    def columns(self, picks: Ints) -> Ints:
        """The slots of the columns of ``picks`` (distinct), shape (n_picks,); they stay until the next call."""
        _, slot, last_use, uses = self.cached
        uses += 1
        at = slot[picks]
        last_use[at[at >= 0]] = uses
        missing = picks[at < 0]
        if len(missing):
            slots = np.argsort(last_use, kind="stable")[: len(missing)]
            evicted = self._owner[slots]
            slot[evicted[evicted >= 0]] = -1
            slot[missing], self._owner[slots], last_use[slots] = slots, missing, uses
            for begin in range(0, len(missing), AT_ONCE):
                part = missing[begin : begin + AT_ONCE]
                self.store[slots[begin : begin + AT_ONCE]] = self._compute(part) + self._offset
        return np.asarray(slot[picks])

    def _compute(self, picks: Ints) -> Floats:
        self.computed += len(picks)
        X = self._X
        if self.kernel.name == "precomputed":
            return np.asarray(X[picks].toarray())
        products = np.empty((-(-len(picks) // PANEL_WIDTH) * PANEL_WIDTH, X.shape[0]))
        _products(X.indptr, X.indices, X.data, picks, self._panel, products)
        return self.kernel.of_products(products[: len(picks)], self._squares[picks], self._squares)


def _compact(X: sp.csr_matrix) -> sp.csr_matrix:
    """X without its empty columns."""
    used = np.unique(X.indices)
    if len(used) == X.shape[1]:
        return X
    number = np.empty(X.shape[1], X.indices.dtype)
    number[used] = np.arange(len(used))
    return sp.csr_matrix((X.data, number[X.indices], X.indptr), shape=(X.shape[0], max(len(used), 1)))


@njit(cache=True, nogil=True)
def _products(indptr: Ints32, indices: Ints32, data: Floats, picks: Ints, panel: Floats, products: Floats) -> None:
    """products[t, i] = x_i . x_picks[t], always summed in the order of the features; the panel stays 0."""
    for begin in range(0, picks.shape[0], PANEL_WIDTH):
        part = picks[begin : begin + PANEL_WIDTH]
        for p in range(part.shape[0]):
            for at in range(indptr[part[p]], indptr[part[p] + 1]):
                panel[indices[at], p] = data[at]
        _of_panel(indptr, indices, data, panel, products[begin : begin + PANEL_WIDTH])
        for p in range(part.shape[0]):
            for at in range(indptr[part[p]], indptr[part[p] + 1]):
                panel[indices[at], p] = 0.0


@njit(cache=True, nogil=True)
def _of_panel(indptr: Ints32, indices: Ints32, data: Floats, panel: Floats, products: Floats) -> None:
    """products[p, i] = x_i . panel[:, p]."""
    for i in range(products.shape[1]):
        s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for at in range(indptr[i], indptr[i + 1]):
            x, row = data[at], panel[indices[at]]
            s0 += x * row[0]
            s1 += x * row[1]
            s2 += x * row[2]
            s3 += x * row[3]
            s4 += x * row[4]
            s5 += x * row[5]
            s6 += x * row[6]
            s7 += x * row[7]
        products[0, i], products[1, i], products[2, i], products[3, i] = s0, s1, s2, s3
        products[4, i], products[5, i], products[6, i], products[7, i] = s4, s5, s6, s7
