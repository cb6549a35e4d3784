"""Sparse coefficients of the examples in the weights: one growable list of (class, value) an example, in one pool."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.rows import Rows


class Coefficients(NamedTuple):
    """``w_c = sum_i v_ic x_i``: example i holds the entries ``start[i]`` to ``start[i] + length[i]`` of the pool.

    ``used[0]`` is the end of the pool's used part; lists that outgrow their capacity move there.
    """

    start: Ints
    length: Ints32
    capacity: Ints32
    classes: Ints32
    values: Floats
    used: Ints


def empty(n_samples: int, n_entries: int) -> Coefficients:
    """A pool for ``n_samples`` examples with room for ``n_entries`` entries."""
    return Coefficients(
        np.zeros(n_samples, np.int64),
        np.zeros(n_samples, np.int32),
        np.zeros(n_samples, np.int32),
        np.zeros(n_entries, np.int32),
        np.zeros(n_entries),
        np.zeros(1, np.int64),
    )


def with_capacity(pool: Coefficients, room: int) -> Coefficients:
    """The pool itself if ``room`` entries are free at its end, else a copy without holes and with more room."""
    if pool.used[0] + room <= len(pool.classes):
        return pool
    fresh = empty(len(pool.start), size_of_copy(pool, room))
    _move(pool, fresh)
    return fresh


def size_of_copy(pool: Coefficients, room: int) -> int:
    """Entries of a pool with those in use, the room asked for, and as much again or a quarter before the next copy."""
    live = int(pool.length.sum())
    return live + room + max(room, live // 4)


def shares(pool: Coefficients, bounds: Floats, n_classes: int) -> sp.csr_matrix:
    """The dual variables by their bounds, float32, shape (n_samples, n_classes); the own class has none."""
    indptr, at = _listed(pool)
    data = -pool.values[at] / np.repeat(bounds, np.diff(indptr))
    return sp.csr_matrix((data.astype(np.float32), pool.classes[at], indptr), shape=(len(bounds), n_classes))


def duals(pool: Coefficients, n_classes: int) -> Floats:
    """The dual variables, shape (n_samples, n_classes), zero at the own classes."""
    indptr, at = _listed(pool)
    alpha = np.zeros((len(pool.start), n_classes))
    alpha[np.repeat(np.arange(len(alpha)), np.diff(indptr)), pool.classes[at]] = -pool.values[at]
    return alpha


def of_shares(
    given: sp.csr_matrix, y: Ints32, bounds: Floats, largest: bool, most: Floats | None = None
) -> Coefficients:
    """Dual variables from their shares of the bounds: with ``largest`` the sum of an example is bounded, else each.

    ``most`` are the largest shares of the given ones, 1 by default; sums are of parts of these.
    """
    n, m = len(y), np.diff(given.indptr).astype(np.int64)
    most = np.ones(given.nnz) if most is None else most
    alpha = np.clip(given.data.astype(np.float64), 0.0, most)
    row = np.repeat(np.arange(n), m)
    if largest:
        parts = np.divide(alpha, most, out=np.zeros(given.nnz), where=most > 0.0)
        alpha /= np.maximum(np.bincount(row, parts, n), 1.0)[row]
    alpha *= bounds[row]
    length = np.where(m > 0, m + 1, 0)
    start = np.concatenate(([0], np.cumsum(length)))
    pool = empty(n, int(start[-1]))
    own = start[:-1][m > 0]
    pool.classes[own], pool.values[own] = y[m > 0], np.bincount(row, alpha, n)[m > 0]
    others = start[row] + 1 + np.arange(len(row)) - given.indptr[row]
    pool.classes[others], pool.values[others] = given.indices, -alpha
    pool.start[:], pool.length[:], pool.capacity[:], pool.used[0] = start[:-1], length, length, start[-1]
    return pool


def _listed(pool: Coefficients) -> tuple[Ints, Ints]:
    """Where each example's classes but its own begin, one end more, and the places of all of them in the pool."""
    length = np.maximum(pool.length.astype(np.int64) - 1, 0)
    indptr = np.concatenate(([0], np.cumsum(length)))
    return indptr, np.repeat(pool.start + 1 - indptr[:-1], length) + np.arange(indptr[-1])


@njit(cache=True, nogil=True)
def sums(pool: Coefficients, n_classes: int) -> Floats:
    """The coefficients of each class, summed over the examples."""
    total = np.zeros(n_classes)
    for i in range(pool.start.shape[0]):
        for at in range(pool.start[i], pool.start[i] + pool.length[i]):
            total[pool.classes[at]] += pool.values[at]
    return total


@njit(cache=True, nogil=True)
def put(pool: Coefficients, i: int, classes: Ints32, values: Floats, n: int) -> None:
    """Make the first n given entries those of example i; the caller has made sure of room for n."""
    if n > pool.capacity[i]:
        pool.start[i] = pool.used[0]
        pool.capacity[i] = n
        pool.used[0] += n
    at = pool.start[i]
    for t in range(n):
        pool.classes[at + t] = classes[t]
        pool.values[at + t] = values[t]
    pool.length[i] = n


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, pool: Coefficients, W: Array) -> None:
    """W = sum_i v_i x_i' afresh, free of the rounding that many small updates have left."""
    W[:] = 0
    for i in range(pool.start.shape[0]):
        begin, n = pool.start[i], pool.length[i]
        if n > 0:
            for at in range(rows.indptr[i], rows.indptr[i + 1]):
                w, x = W[rows.indices[at]], rows.data[at]
                for t in range(begin, begin + n):
                    w[pool.classes[t]] += pool.values[t] * x


@njit(cache=True, nogil=True)
def _move(pool: Coefficients, fresh: Coefficients) -> None:
    """Copy every list of pool to fresh, end to end."""
    at = 0
    for i in range(pool.start.shape[0]):
        n = pool.length[i]
        begin = pool.start[i]
        fresh.start[i], fresh.length[i], fresh.capacity[i] = at, n, n
        for t in range(n):
            fresh.classes[at + t] = pool.classes[begin + t]
            fresh.values[at + t] = pool.values[begin + t]
        at += n
    fresh.used[0] = at
