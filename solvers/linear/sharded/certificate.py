"""Primal, dual and violations over all shards, by sums whose order depends on neither shards nor threads.

Sums over examples are kept a class, in a fixed number of parts of the data; the classes are added up at the end, in
their global order. Over classes, an example takes maxima and minima alone, which no order can change.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.linear.sharded.task import Examples, Shard
from solvers.numerics import scaling_search
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows, above, score
from solvers.numerics.scaling_search import note
from solvers.numerics.simd import largest
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Exchange, gather

PARTS = 16


class Bounds(NamedTuple):
    """Objective and dual value, the multiple of W that the objective is of, and an example's f_y and violation."""

    primal: float
    dual: float
    scale: float
    f_y: Array
    violation: Floats


def certify(
    largest_loss: bool,
    examples: Examples,
    shard: Shard,
    pool: Coefficients,
    thread_pool: ThreadPool,
    exchange: Exchange,
) -> Bounds:
    """Rebuild the shard's weights from the dual variables and measure them with all others; two rounds.

    Raises
    ------
    ExchangeError
        A peer is lost.
    """
    rows, y, bounds, owner = examples
    n, stops, features = len(y), pieces(len(y), PARTS), pieces(shard.W.shape[0], PARTS)
    thread_pool.run(partial(_rebuild, rows, shard, pool, a, b) for a, b in features)
    f_y = np.zeros(n, shard.W.dtype)
    thread_pool.run(partial(_own_scores, rows, y, shard, f_y, a, b) for a, b in stops)
    rank_of = owner[y]
    for rank, (part,) in enumerate(gather(exchange, [f_y[rank_of == exchange.rank]])):
        f_y[rank_of == rank] = part

    losses, norms = (np.zeros((len(parts), shard.W.shape[1])) for parts in (stops, features))
    terms = scaling_search.blank(len(stops))
    up, low = np.full(n, -np.inf), np.full(n, np.inf)
    args = (largest_loss, examples, shard, pool, f_y)
    thread_pool.run(
        [partial(_margins, *args, losses[p], terms[p], up, low, a, b) for p, (a, b) in enumerate(stops)]
        + [partial(_norms, shard.W, norms[p], a, b) for p, (a, b) in enumerate(features)]
    )
    sums = [part.sum(axis=0)[: len(shard.own)] for part in (losses, norms)]
    # what is below 1 is empty
    noted = terms.sum(axis=0)[:, scaling_search.ONE :]
    loss, norm, terms = np.zeros(len(owner)), np.zeros(len(owner)), scaling_search.blank()
    message = [shard.own, *sums, up.astype(f_y.dtype), low.astype(f_y.dtype), noted]
    for classes, loss_of_part, norm_of_part, up_of_part, low_of_part, noted_of_part in gather(exchange, message):
        loss[classes], norm[classes] = loss_of_part, norm_of_part
        terms[:, scaling_search.ONE :] += noted_of_part
        np.maximum(up, up_of_part, out=up)
        np.minimum(low, low_of_part, out=low)
    violation, weighted = _violations(largest_loss, examples, _sums(pool), 1.0 - f_y + up, 1.0 - f_y + low)
    if largest_loss:
        _note_worst(1.0 - f_y + up, np.where(rows.squares > 0, bounds, 0.0), terms)
    else:
        weighted = float(loss.sum())
    half = 0.5 * float(norm.sum())
    primal, scale = scaling_search.best_point(half, weighted, terms, scaling_search.ONE)
    return Bounds(primal, float(_sums(pool).sum()) - half, scale, f_y, violation)


def _violations(
    largest_loss: bool, examples: Examples, sums: Floats, above: Floats, below: Floats
) -> tuple[Floats, float]:
    """How far each example is from its optimality conditions, and the sum of the weighted largest losses.

    ``above`` is the largest gradient of a variable that may grow, ``below`` the least of one that may fall.
    """
    seen, worst = examples.rows.squares > 0, np.maximum(above, 0.0)
    if largest_loss:
        # the slack bound - sum alpha is a variable of gradient 0; sums of alpha below the bound leave it free
        slack = sums < examples.bounds * (1.0 - 1e-9)
        violation = np.maximum(worst - np.minimum(below, np.where(slack, 0.0, np.inf)), 0.0)
    else:
        violation = np.maximum(worst, -below)
    violation[~seen] = 0.0
    return violation, float((examples.bounds * worst)[seen].sum())


@njit(cache=True, nogil=True)
def _rebuild(rows: Rows, shard: Shard, pool: Coefficients, begin: int, end: int) -> None:
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
def _own_scores(rows: Rows, y: Ints32, shard: Shard, f_y: Array, begin: int, end: int) -> None:
    """f_y of the examples begin to end whose class the shard owns."""
    for i in range(begin, end):
        own = shard.local[y[i]]
        if own >= 0:
            total = 0.0
            for p in range(rows.indptr[i], rows.indptr[i + 1]):
                total += np.float64(rows.data[p]) * np.float64(shard.W[rows.indices[p], own])
            f_y[i] = total


@njit(cache=True, nogil=True)
def _margins(
    largest_loss: bool,
    examples: Examples,
    shard: Shard,
    pool: Coefficients,
    f_y: Array,
    losses: Floats,
    terms: Floats,
    up: Floats,
    low: Floats,
    begin: int,
    end: int,
) -> None:
    """Losses a class, also at multiples of W; the highest score that could still gain; the lowest of those held."""
    rows, y, bounds, _ = examples
    k = shard.own.shape[0]
    f, found = np.empty(shard.W.shape[1], shard.W.dtype), np.empty(k, np.int32)
    for i in range(begin, end):
        if rows.squares[i] == 0.0:
            continue
        score(rows, i, shard.W, f)
        own, bound = shard.local[y[i]], bounds[i]
        if own >= 0:
            f[own] = -np.inf
        f[k:] = -np.inf
        base = 1.0 - np.float64(f_y[i])
        if not largest_loss:
            # a little below the margin, as the level is rounded
            for t in range(above(f, k, -base - 1e-6 * (1.0 + abs(base)), found, k)):
                c = found[t]
                g = base + np.float64(f[c])
                if g > 0.0:
                    losses[c] += bound * g
                    note(1.0, g - 1.0, bound, terms)
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            c = shard.local[pool.classes[t]]
            if c >= 0:
                low[i] = min(low[i], np.float64(f[c]))
                if not largest_loss and -pool.values[t] >= bound:
                    f[c] = -np.inf
        up[i] = largest(f)


@njit(cache=True, nogil=True)
def _note_worst(worst: Floats, bounds: Floats, terms: Floats) -> None:
    """Note the largest violations of all examples."""
    for i in range(worst.shape[0]):
        if worst[i] > 0.0:
            note(1.0, worst[i] - 1.0, bounds[i], terms)


@njit(cache=True, nogil=True)
def _norms(W: Array, norms: Floats, begin: int, end: int) -> None:
    """Sums of squares a class over the rows begin to end."""
    for j in range(begin, end):
        for c in range(W.shape[1]):
            norms[c] += np.float64(W[j, c]) * np.float64(W[j, c])


@njit(cache=True, nogil=True)
def _sums(pool: Coefficients) -> Floats:
    """Each example's sum of dual variables."""
    sums = np.zeros(pool.start.shape[0])
    for i in range(pool.start.shape[0]):
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            sums[i] -= pool.values[t]
    return sums
