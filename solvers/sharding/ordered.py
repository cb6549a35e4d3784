"""Exact block steps on the examples of a batch one after another, though all of them were scored beforehand.

What an earlier example of the batch, or of the batch before, has added to the weights of class c changes the score of
this one by its inner product with that example; so the scores of the candidates are exact when their turn comes, and
every step raises the dual, whatever the size of the batch. Only the choice of candidates is as old as the scores.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.coefficients import Coefficients, put
from solvers.kernels.joint import NEGLIGIBLE
from solvers.kernels.rows import Rows
from solvers.sharding.batch import Batch, Shard
from solvers.sharding.subproblem import solve


class Moves(NamedTuple):
    """``w_c += value x_e``: what the examples of one batch have done.

    Those of example e lie from ``first[e]`` to ``first[e + 1]``; those of class c are chained from ``head[c]`` through
    ``link``, -1 at the end.
    """

    first: NDArray[np.int64]
    head: NDArray[np.int64]
    link: NDArray[np.int64]
    example: NDArray[np.int32]
    classes: NDArray[np.int32]
    values: NDArray[np.float64]


def empty_moves(size: int, n_classes: int) -> Moves:
    """Moves of a batch of up to ``size`` examples, none yet."""
    return Moves(
        np.zeros(size + 1, np.int64),
        np.full(n_classes, -1, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0),
    )


def with_entries(moves: Moves, n: int) -> Moves:
    """The same without moves, with room for n of them."""
    moves.head[:] = -1
    moves.first[:] = 0
    if n <= len(moves.link):
        return moves
    n *= 2
    return moves._replace(
        link=np.empty(n, np.int64), example=np.empty(n, np.int32), classes=np.empty(n, np.int32), values=np.empty(n)
    )


@njit(cache=True, nogil=True)
def ascend(
    kind: int,
    squares: NDArray[np.float64],
    y: NDArray[np.int32],
    bounds: NDArray[np.float64],
    before: Batch,
    past: Moves,
    batch: Batch,
    moves: Moves,
    pool: Coefficients,
    seen: NDArray[np.float64],
    rest: NDArray[np.uint8],
    full: bool,
    tally: NDArray[np.float64],
    gained: NDArray[np.float64],
) -> None:
    """Steps on all examples of the batch; moves, pool, seen, rest and tally change, the weights do not.

    ``gained`` follows the dual objective and the sum of the dual variables.
    """
    n_past, room, used = before.examples.shape[0], 0, 0
    for e in range(batch.examples.shape[0]):
        room = max(room, batch.first[e + 1] - batch.first[e] + batch.counts[e])
    classes, listed = np.empty(room + 1, np.int32), np.empty(room + 1, np.int32)
    b, old, new, values = np.empty(room), np.empty(room), np.empty(room), np.empty(room + 1)
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        own, bound, K = y[i], bounds[i], squares[i]
        near = batch.gram[e]
        f_y = batch.f_y[e] + _since(own, near, n_past, past, moves)
        seen[i] = f_y
        m, start, S0 = batch.first[e + 1] - batch.first[e], pool.start[i] + 1, 0.0
        for t in range(m):
            classes[t], old[t] = pool.classes[start + t], -pool.values[start + t]
            b[t] = batch.held[batch.first[e] + t]
            S0 += old[t]
        n = m + batch.counts[e]
        for t in range(m, n):
            classes[t], b[t], old[t] = batch.classes[e, t - m], batch.scores[e, t - m], 0.0
        for t in range(n):
            f_c = b[t] + _since(classes[t], near, n_past, past, moves)
            b[t] = (1.0 - f_y + f_c) / K + old[t] + S0
        solve(kind, b, old, new, n, bound, S0, K, tally)

        begun, kept, gain, total, linear, square = used, 0, 0.0, 0.0, 0.0, 0.0
        for t in range(n):
            change = new[t] - old[t]
            if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
                _add(moves, used, e, classes[t], -change)
                used += 1
                gain += change
                linear += change * (b[t] - old[t] - S0) * K
                square += change * change
            else:
                new[t] = old[t]
            if new[t] > 0.0:
                kept += 1
                listed[kept], values[kept] = classes[t], -new[t]
                total += new[t]
        if used > begun:
            _add(moves, used, e, own, gain)
            used += 1
            listed[0], values[0] = own, total
            put(pool, i, listed, values, kept + 1 if kept else 0)
            rest[i] = 0
            gained[0] += linear - 0.5 * K * (square + gain * gain)
            gained[1] += gain
        elif full:
            rest[i] = min(rest[i] + 1, 255)
        moves.first[e + 1] = used


@njit(cache=True, nogil=True)
def apply(rows: Rows, shard: Shard, batch: Batch, moves: Moves, begin: int, end: int) -> None:
    """Add the moves of the shard's classes to the rows begin to end of its weights."""
    W = shard.W
    columns, values = np.empty(shard.own.shape[0], np.int32), np.empty(shard.own.shape[0])
    for e in range(batch.examples.shape[0]):
        n = 0
        for t in range(moves.first[e], moves.first[e + 1]):
            c = shard.local[moves.classes[t]]
            if c >= 0:
                columns[n], values[n] = c, moves.values[t]
                n += 1
        if n > 0:
            i = batch.examples[e]
            p, last = rows.indptr[i], rows.indptr[i + 1]
            if begin > 0:
                p += np.searchsorted(rows.indices[p:last], begin)
            while p < last and rows.indices[p] < end:
                w, x = W[rows.indices[p]], rows.data[p]
                for t in range(n):
                    w[columns[t]] += values[t] * x
                p += 1


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, shard: Shard, pool: Coefficients, begin: int, end: int) -> None:
    """Rows begin to end of the shard's weights afresh from the coefficients."""
    W = shard.W
    W[begin:end] = 0
    for i in range(pool.start.shape[0]):
        start, stop = pool.start[i], pool.start[i] + pool.length[i]
        if start == stop:
            continue
        p, last = rows.indptr[i], rows.indptr[i + 1]
        if begin > 0:
            p += np.searchsorted(rows.indices[p:last], begin)
        while p < last and rows.indices[p] < end:
            w, x = W[rows.indices[p]], rows.data[p]
            for t in range(start, stop):
                c = shard.local[pool.classes[t]]
                if c >= 0:
                    w[c] += pool.values[t] * x
            p += 1


@njit(cache=True, nogil=True)
def _since(c: int, near: NDArray[np.float64], n_past: int, past: Moves, moves: Moves) -> float:
    """What the moves of both batches have added to the score of class c since it was taken."""
    total = 0.0
    at = past.head[c]
    while at >= 0:
        total += past.values[at] * near[past.example[at]]
        at = past.link[at]
    at = moves.head[c]
    while at >= 0:
        total += moves.values[at] * near[n_past + moves.example[at]]
        at = moves.link[at]
    return total


@njit(cache=True, nogil=True)
def _add(moves: Moves, at: int, e: int, c: int, value: float) -> None:
    """Enter one move of example e."""
    moves.example[at], moves.classes[at], moves.values[at] = e, c, value
    moves.link[at] = moves.head[c]
    moves.head[c] = at
