"""The block steps of ``joint`` for dense rows: weights one row a class, scores as inner products.

With few features a visit costs about as much as the bookkeeping around it, so the inner passes run in here too.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, add_costs, cost_of, costs_of
from solvers.linear.layouts import dense_simd
from solvers.linear.layouts.dense_simd import DenseRows, dot, dots
from solvers.linear.steps import slack_step
from solvers.linear.steps.block_step import NEGLIGIBLE, candidates, certify_example, solve, violation_of
from solvers.linear.visits import Progress, Task, Visits
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import live
from solvers.numerics.rows import PARTS


class Inner(NamedTuple):
    """Which inner passes to make: ``passes`` of an epoch have ended, and there may be ``most``.

    A pass visits the examples whose last visit gained more than ``share`` of the mean. Another follows where the last
    gained more than ``rate`` by cost, and all have not cost the budget.
    """

    seed: int
    epoch: int
    passes: int
    most: int
    share: float
    rate: float
    budget: float


@njit(cache=True, nogil=True)
def visit(
    task: Task, visits: Visits, largest_loss: bool, W: Array, pool: Coefficients, progress: Progress,
    costs: Costs | None
) -> int:  # fmt: skip
    """As ``joint.visit``.

    Lists are read and written right here, not by the functions of ``block_step``: with those, inlined or not, a
    training on 16 features took a fifth to a quarter longer.
    """
    rows, labels, bounds, n_classes = task
    order, begin, end, full, most = visits
    unchanged, gains, statistics = progress.unchanged, progress.gains, progress.statistics[0]
    X, squares = rows.data, rows.squares
    start, length, capacity = pool.start, pool.length, pool.capacity
    listed, values, used = pool.classes, pool.values, pool.used
    size = n_classes + 2
    f = np.full(-(-W.shape[0] // 16) * 16, -np.inf, W.dtype)
    classes = np.empty(size, np.int32)
    b, old, new = np.empty(size + PARTS), np.empty(size), np.empty(size)
    if costs is not None:
        weights, row = np.empty(size), np.empty(f.shape[0])
    for at in range(begin, end):
        if used[0] + n_classes > listed.shape[0]:
            return at
        i = order[at]
        y, C, K = labels[i], bounds[i], squares[i]
        first, m = start[i] + 1, max(length[i] - 1, 0)
        S0 = 0.0
        for t in range(m):
            classes[t], old[t] = listed[first + t], -values[first + t]
            S0 += old[t]
        if full:
            dots(W, X, i, f)
            f_y = np.float64(f[y])
            f[y] = -np.inf
            if costs is not None and costs.slack:
                costs_of(costs, y, row)
                n, loss, held = slack_step.candidates(
                    row, f, f_y, C, K, S0, m, n_classes, most, largest_loss, classes, b, old, weights
                )
                violation = slack_step.violation_of(b, weights, old, n, S0, K, C, largest_loss)
            else:
                if costs is not None:
                    add_costs(costs, y, 1.0, f)
                n, loss, held = candidates(f, f_y, C, K, S0, m, n_classes, most, largest_loss, classes, b, old)
                violation = violation_of(b, old, n, S0, K, C, largest_loss)
            statistics.gap += C * loss - held
            statistics.losses += C * loss
            statistics.violation = max(statistics.violation, violation)
        else:
            n = m
            f_y, inverse = dot(W, y, X, i), 1.0 / K
            for t in range(m):
                b[t] = (1.0 - f_y + dot(W, classes[t], X, i)) * inverse + old[t] + S0
            if costs is not None and costs.slack:
                slack_step.weights_of(costs, y, classes, n, weights)
            elif costs is not None:
                for t in range(m):
                    b[t] += (cost_of(costs, y, classes[t]) - 1.0) * inverse
        if costs is not None and costs.slack:
            slack_step.solve(b, weights, n, C, S0, largest_loss, new)
        else:
            solve(b, n, C, S0, largest_loss, new)

        count, own, square, kept, total = 0, 0.0, 0.0, 0, 0.0
        for t in range(n):
            change = new[t] - old[t]
            if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
                dense_simd.add(W, classes[t], W.dtype.type(-change), X, i)
                count += 1
                own += change
                square += change * change
            else:
                new[t] = old[t]
            if new[t] > 0.0:
                classes[kept], new[kept] = classes[t], new[t]
                total += new[t]
                kept += 1
        gains[i] = 0.0
        if count == 0:
            if full:
                unchanged[i] = min(unchanged[i] + 1, 255)
            continue
        unchanged[i] = 0
        gain = 0.5 * K * (square + own * own)
        gains[i] = gain
        statistics.gain += gain
        if own != 0.0:
            dense_simd.add(W, y, W.dtype.type(own), X, i)
        if kept > 0 and kept + 1 > capacity[i]:
            start[i], capacity[i] = used[0], kept + 1
            used[0] += kept + 1
        length[i] = kept + 1 if kept > 0 else 0
        first = start[i]
        if kept > 0:
            listed[first], values[first] = y, total
        for t in range(kept):
            listed[first + 1 + t], values[first + 1 + t] = classes[t], -new[t]
    return end


@njit(cache=True, nogil=True)
def inner_passes(
    task: Task,
    largest_loss: bool,
    W: Array,
    pool: Coefficients,
    progress: Progress,
    prices: Floats,
    inner: Inner,
    mean_gain: float,
    costs: Costs | None,
) -> tuple[Ints32, float, float, int]:
    """Inner passes, one after the other while they pay; prices[i] is what a visit of example i takes a coefficient.

    Returns the order and the cost of the last one, the cost of all, and how many they were.
    """
    statistics = progress.statistics[0]
    passes, spent = 0, 0.0
    while True:
        number = inner.passes + passes + 1
        threshold = inner.share * mean_gain
        order, cost = live(progress.gains, pool.length, prices, threshold, inner.seed, inner.epoch, number)
        statistics.gain = 0.0
        visit(task, Visits(order, 0, order.shape[0], False, 0), largest_loss, W, pool, progress, costs)
        passes += 1
        spent += cost
        mean_gain = statistics.gain / max(1, order.shape[0])
        pays = order.shape[0] > 0 and statistics.gain > inner.rate * cost
        if not pays or inner.passes + passes >= inner.most or spent > inner.budget:
            return order, cost, spent, passes


@njit(cache=True, nogil=True)
def certify(
    task: Task, largest_loss: bool, W: Array, pool: Coefficients, gaps: Floats, leads: Floats, terms: Floats,
    costs: Costs | None, multiple: float
) -> tuple[float, float]:  # fmt: skip
    """As ``joint.certify``."""
    rows, labels, bounds, n_classes = task
    f = np.full(-(-W.shape[0] // 16) * 16, -np.inf, W.dtype)
    margins = np.ones(f.shape[0])
    losses, total = 0.0, 0.0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        dots(W, rows.data, i, f)
        losses, total = certify_example(
            i, labels[i], f, n_classes, bounds[i], largest_loss, pool, gaps, leads, terms, costs, multiple, margins,
            losses, total
        )  # fmt: skip
    return losses, total


@njit(cache=True, nogil=True)
def rebuild(rows: DenseRows, pool: Coefficients, W: Array) -> None:
    """W = sum_i v_i x_i' afresh, free of the rounding that many small updates have left."""
    W[:] = 0
    for i in range(pool.start.shape[0]):
        for t in range(pool.start[i], pool.start[i] + pool.length[i]):
            dense_simd.add(W, pool.classes[t], W.dtype.type(pool.values[t]), rows.data, i)
