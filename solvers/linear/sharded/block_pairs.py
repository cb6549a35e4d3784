"""A match of two half-shards: the examples of either against the classes of the other, on the weights of both."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.linear.sharded.subproblem import BOX, solve
from solvers.linear.steps.block_step import NEGLIGIBLE
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows, above
from solvers.numerics.simd import largest
from solvers.sharding.exchange import Arrays


class Halves(NamedTuple):
    """Of every class the half-shard and its column there, how many classes each half has, and who plays whom where.

    ``host[a, b]`` is the shard that plays halves a and b.
    """

    of: NDArray[np.int32]
    column: NDArray[np.int32]
    sizes: NDArray[np.int64]
    host: NDArray[np.int32]


@njit(cache=True, nogil=True)
def play(
    rows: Rows,
    y: NDArray[np.int32],
    bounds: NDArray[np.float64],
    halves: Halves,
    first: int,
    second: int,
    W_first: NDArray[Any],
    W_second: NDArray[Any],
    pool: Coefficients,
    order: NDArray[np.int32],
    begin: int,
    changed: NDArray[np.uint8],
    tally: NDArray[np.float64],
) -> int:
    """Exact block steps of order[begin:] on the classes of the other half; returns where the pool had no more room.

    Both halves may be one: its examples then move by its own classes. Lists keep what they hold of other halves; the
    variables of one example have bounds each of their own, so that any part of them is a problem by itself.
    """
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    start, length, listed, values = pool.start, pool.length, pool.classes, pool.values
    k = max(halves.sizes[first], halves.sizes[second])
    k_all = halves.of.shape[0]
    b, old, new, found = np.empty(k), np.empty(k), np.empty(k), np.empty(k, np.int32)
    columns = np.empty(k, np.int32)
    kept, kept_values = np.empty(k_all + 1, np.int32), np.empty(k_all + 1)
    f_first, f_second = np.zeros(W_first.shape[1], W_first.dtype), np.zeros(W_second.shape[1], W_second.dtype)
    # the classes of both halves by column
    names = np.empty((2, k), np.int32)
    for c in range(k_all):
        if halves.of[c] == first:
            names[0, halves.column[c]] = c
        if halves.of[c] == second:
            names[1, halves.column[c]] = c
    for at in range(begin, order.shape[0]):
        i = order[at]
        if pool.used[0] + length[i] + k + 1 > listed.shape[0]:
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
        f[n_other:] = -np.inf
        if first == second:
            f[own] = -np.inf
        m, n_kept, S0, total = 0, 1, 0.0, 0.0
        for t in range(start[i] + 1, start[i] + length[i]):
            c = listed[t]
            if halves.of[c] == other:
                columns[m], old[m] = halves.column[c], -values[t]
                S0 += old[m]
                m += 1
            else:
                kept[n_kept], kept_values[n_kept] = c, values[t]
                total -= values[t]
                n_kept += 1
        for t in range(m):
            b[t] = (1.0 - f_y + np.float64(f[columns[t]])) / K + old[t] + S0
            f[columns[t]] = -np.inf
        # of a class without a variable, b has to exceed half the largest one, or the bound, to come to hold one
        b_top = (1.0 - f_y + np.float64(largest(f))) / K + S0
        floor = max(0.0, min(0.5 * b_top, bound))
        n = m
        if b_top > floor:
            n_found = above(f, n_other, f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y), found, n_other)
            for t in range(n_found):
                c = found[t]
                columns[n], old[n] = c, 0.0
                b[n] = (1.0 - f_y + np.float64(f[c])) / K + S0
                n += 1
        solve(BOX, b, old, new, n, bound, S0, K, tally)
        moved = 0.0
        for t in range(n):
            change = new[t] - old[t]
            if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
                changed[i] = 1
                moved += change
                c = columns[t]
                for p in range(low, high):
                    W[indices[p], c] -= change * data[p]
            else:
                new[t] = old[t]
            if new[t] > 0.0:
                kept[n_kept], kept_values[n_kept] = names[1 if home else 0, columns[t]], -new[t]
                total += new[t]
                n_kept += 1
        if moved != 0.0:
            for p in range(low, high):
                W_own[indices[p], own] += moved * data[p]
        kept[0], kept_values[0] = y[i], total
        put(pool, i, kept, kept_values, n_kept if n_kept > 1 else 0)
    return len(order)


@njit(cache=True, nogil=True)
def take(
    pool: Coefficients, y: NDArray[np.int32], halves: Halves, rank: int, examples: NDArray[np.int32], own: Coefficients
) -> None:
    """Copy of the examples' lists what the shard plays; own has room for it."""
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


def told(own: Coefficients, examples: NDArray[np.int32], changed: NDArray[np.uint8]) -> Arrays:
    """What the other shards have to know of the examples' lists, for :func:`enter`."""
    lengths = np.maximum(own.length[examples] - 1, 0)
    starts = np.repeat(own.start[examples] + 1 - np.cumsum(lengths) + lengths, lengths)
    places = starts + np.arange(len(starts))
    return [lengths.astype(np.int32), own.classes[places], own.values[places], changed[examples]]


def enter(pool: Coefficients, y: NDArray[np.int32], examples: NDArray[np.int32], parts: list[Arrays]) -> Coefficients:
    """The pool with the examples' lists as all shards have told them."""
    lengths = np.stack([part[0] for part in parts])
    starts = np.cumsum([0, *(len(part[1]) for part in parts[:-1])])
    classes, values = (np.concatenate([part[t] for part in parts]) for t in (1, 2))
    pool = coefficients.with_room(pool, len(classes) + len(examples))
    _enter(pool, y, examples, lengths, starts, classes, values)
    return pool


@njit(cache=True, nogil=True)
def _enter(
    pool: Coefficients,
    y: NDArray[np.int32],
    examples: NDArray[np.int32],
    lengths: NDArray[np.int32],
    starts: NDArray[np.int64],
    classes: NDArray[np.int32],
    values: NDArray[np.float64],
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
