"""A pair of half-shards: block steps of the examples of either on the classes of the other, on the weights of both.

A dual variable alpha_ic touches the weights of class y_i and of class c alone, so that disjoint pairs of class blocks
can be visited at the same time (Alber et al. 2017, Algorithm 4).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.linear.sharded.batches.updates import solve
from solvers.linear.sharded.task import Examples
from solvers.linear.steps import block_step
from solvers.numerics import coefficients
from solvers.numerics.array_types import Array, Bytes, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import PARTS
from solvers.sharding.exchange import Arrays


class Halves(NamedTuple):
    """Of every class the half-shard and its column there; how many classes each half has; which shard visits a pair.

    ``host[a, b]`` is the shard that visits halves a and b.
    """

    of: Ints32
    column: Ints32
    sizes: Ints
    host: Ints32


class Pair(NamedTuple):
    """Two half-shards and their weights; they may be one: its examples are then visited on its own classes."""

    first: int
    second: int
    W_first: Array
    W_second: Array


@njit(nogil=True)
def visit(
    examples: Examples,
    halves: Halves,
    pair: Pair,
    pool: Coefficients,
    order: Ints32,
    begin: int,
    changed: Bytes,
    statistics: Array,
) -> int:
    """Exact block steps of order[begin:] on the classes of the other half; returns where the pool had no more room.

    Lists keep what they hold of other halves; the variables of one example have bounds each of their own, so that any
    part of them is a problem by itself.
    """
    rows, y, bounds, _ = examples
    first, second, W_first, W_second = pair
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    k, k_all = max(halves.sizes[first], halves.sizes[second]), halves.of.shape[0]
    size = k + 2
    b, old, new, steps = np.empty(size + PARTS), np.empty(size), np.empty(size), np.empty(size)
    columns, moved, places = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    kept, kept_values = np.empty(k_all + 1, np.int32), np.empty(k_all + 1)
    f_first, f_second = np.zeros(W_first.shape[1], W_first.dtype), np.zeros(W_second.shape[1], W_second.dtype)
    names = _names(halves, first, second, k)
    for at in range(begin, order.shape[0]):
        i = order[at]
        if pool.used[0] + pool.length[i] + k + 1 > pool.classes.shape[0]:
            return at
        home = halves.of[y[i]] == first
        other = second if home else first
        own, bound, K, n_other = halves.column[y[i]], bounds[i], rows.squares[i], halves.sizes[other]
        W_own, W, f = (W_first, W_second, f_second) if home else (W_second, W_first, f_first)
        low, high = indptr[i], indptr[i + 1]
        sum_rows(W, indices, data, low, high, f)
        f_y = 0.0
        for p in range(low, high):
            f_y += np.float64(data[p]) * np.float64(W_own[indices[p], own])
        if first == second:
            f[own] = -np.inf
        m, n_kept, S0, total = _split_list(pool, halves, i, other, columns, old, kept, kept_values)
        n, _, _ = block_step.candidates(f, f_y, bound, K, S0, m, n_other, n_other, False, columns, b, old)
        solve(b, old, new, n, bound, S0, K, False, statistics, None)
        count, own_step, _, n_positive, _ = block_step.changes(old, new, n, columns, moved, steps, places)
        for t in range(count):
            c, step = moved[t], steps[t]
            for p in range(low, high):
                W[indices[p], c] += step * data[p]
        if count > 0:
            changed[i] = 1
        if own_step != 0.0:
            for p in range(low, high):
                W_own[indices[p], own] += own_step * data[p]
        for t in range(n_positive):
            kept[n_kept], kept_values[n_kept] = names[1 if home else 0, columns[t]], -new[t]
            total += new[t]
            n_kept += 1
        kept[0], kept_values[0] = y[i], total
        put(pool, i, kept, kept_values, n_kept if n_kept > 1 else 0)
    return len(order)


@njit(nogil=True)
def _names(halves: Halves, first: int, second: int, k: int) -> Ints32:
    """The classes of both halves by column."""
    names = np.empty((2, k), np.int32)
    for c in range(halves.of.shape[0]):
        if halves.of[c] == first:
            names[0, halves.column[c]] = c
        if halves.of[c] == second:
            names[1, halves.column[c]] = c
    return names


@njit(inline="always")
def _split_list(
    pool: Coefficients,
    halves: Halves,
    i: int,
    other: int,
    columns: Ints32,
    old: Floats,
    kept: Ints32,
    kept_values: Floats,
) -> tuple[int, int, float, float]:
    """Of example i's list the variables of the other half, by column, and behind a place left free all that are kept.

    Returns how many there are of either, the free place among the latter, and the sums of both.
    """
    m, n_kept, S0, total = 0, 1, 0.0, 0.0
    for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
        c = pool.classes[t]
        if halves.of[c] == other:
            columns[m], old[m] = halves.column[c], -pool.values[t]
            S0 += old[m]
            m += 1
        else:
            kept[n_kept], kept_values[n_kept] = c, pool.values[t]
            total -= pool.values[t]
            n_kept += 1
    return m, n_kept, S0, total


@njit(nogil=True)
def take(pool: Coefficients, y: Ints32, halves: Halves, rank: int, examples: Ints32, own: Coefficients) -> None:
    """Copy of the examples' lists what the shard visits; own has room for it."""
    for e in range(examples.shape[0]):
        i = examples[e]
        at, n, total = own.used[0], 1, 0.0
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            c = pool.classes[t]
            if halves.host[halves.of[y[i]], halves.of[c]] == rank:
                own.classes[at + n], own.values[at + n] = c, pool.values[t]
                total -= pool.values[t]
                n += 1
        if n > 1:
            own.classes[at], own.values[at] = y[i], total
            own.start[i], own.length[i], own.capacity[i] = at, n, n
            own.used[0] += n


def report(own: Coefficients, examples: Ints32, changed: Bytes) -> Arrays:
    """What the other shards have to know of the examples' lists, for :func:`enter`."""
    lengths = np.maximum(own.length[examples] - 1, 0)
    starts = np.repeat(own.start[examples] + 1 - np.cumsum(lengths) + lengths, lengths)
    places = starts + np.arange(len(starts))
    return [lengths.astype(np.int32), own.classes[places], own.values[places], changed[examples]]


def enter(pool: Coefficients, y: Ints32, examples: Ints32, parts: list[Arrays]) -> Coefficients:
    """The pool with the examples' lists as all shards have reported them."""
    lengths = np.stack([part[0] for part in parts])
    starts = np.cumsum([0, *(len(part[1]) for part in parts[:-1])])
    classes, values = (np.concatenate([part[t] for part in parts]) for t in (1, 2))
    pool = coefficients.with_capacity(pool, len(classes) + len(examples))
    _enter(pool, y, examples, lengths, starts, classes, values)
    return pool


@njit(nogil=True)
def _enter(
    pool: Coefficients, y: Ints32, examples: Ints32, lengths: Ints32, starts: Ints, classes: Ints32, values: Floats
) -> None:
    room = 1
    for e in range(examples.shape[0]):
        room = max(room, 1 + lengths[:, e].sum())
    found, found_values = np.empty(room, np.int32), np.empty(room)
    for e in range(examples.shape[0]):
        n, total = 1, 0.0
        for rank in range(lengths.shape[0]):
            for t in range(starts[rank], starts[rank] + lengths[rank, e]):
                found[n], found_values[n] = classes[t], values[t]
                total -= values[t]
                n += 1
            starts[rank] += lengths[rank, e]
        found[0], found_values[0] = y[examples[e]], total
        put(pool, examples[e], found, found_values, n if n > 1 else 0)
