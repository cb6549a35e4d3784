"""The block steps of ``joint`` for dense rows: weights one row a class, scores as inner products.

With few features a visit costs about as much as the bookkeeping around it, so the passes that refine run in here too.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.linear.layouts import dense_simd
from solvers.linear.layouts.dense_simd import DenseRows, dot, dots
from solvers.linear.steps.block_step import candidates, changes, load, solve, store, violation_of, weighted_loss
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import live
from solvers.numerics.rows import PARTS


@njit(cache=True, nogil=True)
def visit(
    rows: DenseRows,
    labels: NDArray[np.int32],
    bounds: NDArray[np.float64],
    n_classes: int,
    order: NDArray[np.int32],
    begin: int,
    end: int,
    full: bool,
    most: int,
    largest_loss: bool,
    W: NDArray[Any],
    pool: Coefficients,
    rest: NDArray[np.uint8],
    gains: NDArray[np.float32],
    tally: NDArray[np.float64],
) -> int:
    """As ``joint.visit``."""
    X, squares = rows.data, rows.squares
    start, length, capacity = pool.start, pool.length, pool.capacity
    listed, values, used = pool.classes, pool.values, pool.used
    size = n_classes + 2
    f = np.full(-(-W.shape[0] // 16) * 16, -np.inf, W.dtype)
    classes, moved, places = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    steps = np.empty(size, W.dtype)
    b, old, new = np.empty(size + PARTS), np.empty(size), np.empty(size)
    for at in range(begin, end):
        if used[0] + n_classes > listed.shape[0]:
            return at
        i = order[at]
        y, C, K = labels[i], bounds[i], squares[i]
        m, S0 = load(start, length, listed, values, i, classes, old)
        if full:
            dots(W, X, i, f)
            f_y = np.float64(f[y])
            f[y] = -np.inf
            n, loss, held = candidates(f, f_y, C, K, S0, m, n_classes, most, largest_loss, classes, b, old)
            tally[0] += C * loss - held
            tally[1] += C * loss
            tally[2] = max(tally[2], violation_of(b, old, n, S0, K, C, largest_loss))
        else:
            n = m
            f_y, inverse = dot(W, y, X, i), 1.0 / K
            for t in range(m):
                b[t] = (1.0 - f_y + dot(W, classes[t], X, i)) * inverse + old[t] + S0
        solve(b, n, C, S0, largest_loss, new)

        count, own, square, kept, total = changes(old, new, n, classes, moved, steps, places)
        for t in range(count):
            dense_simd.add(W, moved[t], steps[t], X, i)
        gains[i] = 0.0
        if count == 0:
            if full:
                rest[i] = min(rest[i] + 1, 255)
            continue
        rest[i] = 0
        gain = 0.5 * K * (square + own * own)
        gains[i] = gain
        tally[3] += gain
        if own != 0.0:
            dense_simd.add(W, y, W.dtype.type(own), X, i)
        store(start, length, capacity, listed, values, used, i, y, classes, new, kept, total)
    return end


@njit(cache=True, nogil=True)
def refine(
    rows: DenseRows,
    labels: NDArray[np.int32],
    bounds: NDArray[np.float64],
    n_classes: int,
    largest_loss: bool,
    W: NDArray[Any],
    pool: Coefficients,
    rest: NDArray[np.uint8],
    gains: NDArray[np.float32],
    tally: NDArray[np.float64],
    costs: NDArray[np.float64],
    clock: tuple[int, int, int, int],
    rule: tuple[float, float, float],
    mean_gain: float,
) -> tuple[NDArray[np.int32], float, float, int]:
    """Passes that refine, one after the other while they pay.

    Returns the order and the cost of the last one, the cost of all, and how many they were.
    """
    seed, epoch, refined, most = clock
    share, floor, budget = rule
    passes, spent = 0, 0.0
    while True:
        order, cost = live(gains, pool.length, costs, share * mean_gain, seed, epoch, refined + passes + 1)
        tally[3] = 0.0
        visit(
            rows,
            labels,
            bounds,
            n_classes,
            order,
            0,
            order.shape[0],
            False,
            0,
            largest_loss,
            W,
            pool,
            rest,
            gains,
            tally,
        )
        passes += 1
        spent += cost
        mean_gain = tally[3] / max(1, order.shape[0])
        pays = order.shape[0] > 0 and tally[3] > floor * cost
        if not pays or refined + passes >= most or spent > budget:
            return order, cost, spent, passes


@njit(cache=True, nogil=True)
def certify(
    rows: DenseRows,
    labels: NDArray[np.int32],
    bounds: NDArray[np.float64],
    n_classes: int,
    largest_loss: bool,
    W: NDArray[Any],
    pool: Coefficients,
    gaps: NDArray[np.float64],
    ray: NDArray[np.float64],
) -> tuple[float, float]:
    """As ``joint.certify``."""
    f = np.full(-(-W.shape[0] // 16) * 16, -np.inf, W.dtype)
    losses, total = 0.0, 0.0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        dots(W, rows.data, i, f)
        f_y = np.float64(f[labels[i]])
        f[labels[i]] = -np.inf
        f[n_classes:] = -np.inf
        gaps[i] = weighted_loss(f, f_y, bounds[i], largest_loss, ray)
        losses += gaps[i]
        first = pool.start[i]
        for t in range(first + 1, first + pool.length[i]):
            total -= pool.values[t]
            gaps[i] += pool.values[t] * (1.0 - f_y + f[pool.classes[t]])
    return losses, total


@njit(cache=True, nogil=True)
def rebuild(rows: DenseRows, pool: Coefficients, W: NDArray[Any]) -> None:
    """W = sum_i v_i x_i' afresh, free of the rounding that many small updates have left."""
    W[:] = 0
    for i in range(pool.start.shape[0]):
        for t in range(pool.start[i], pool.start[i] + pool.length[i]):
            dense_simd.add(W, pool.classes[t], W.dtype.type(pool.values[t]), rows.data, i)
