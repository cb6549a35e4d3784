"""Block steps of all examples of a batch at once, each exact as if alone, and how much of them to take.

All are found from the weights W with which the batch was scored. The dual along their sum is
``D(t) = D(0) + t linear - t^2 / 2 |dW|^2``, and ``t = min(1, linear / |dW|^2)`` the best part of them within the
constraints of every example, each of which is convex. ``|dW|^2`` costs nothing: when the step of example e is added to
w_c, the score that w_c gives e has changed by the inner products of e with the examples before it, and the entries of
w_c that say so are read in any case.

The exact step on some dual variables of one example, and what its visit says about the gap before the step.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, cost_of
from solvers.linear.sharded.batches.batch import Batch
from solvers.linear.sharded.task import Shard
from solvers.linear.steps import block_step, slack_step
from solvers.linear.steps.block_step import NEGLIGIBLE
from solvers.numerics.array_types import Array, Floats, Floats32, Ints, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.rows import Rows
from solvers.numerics.simd import prefetch


@njit(cache=True, nogil=True)
def solve(
    b: Floats, old: Floats, new: Floats, n: int, C: float, S0: float, K: float, largest_loss: bool, statistics: Array,
    weights: Floats | None
) -> None:  # fmt: skip
    """New values of the first n variables; ``statistics[0]`` gathers gap, loss and violation at the old ones.

    The notation is that of :mod:`solvers.linear.steps.block_step`: ``b_c = g_c / K + old_c + S0``, ``S0 = sum old``.
    ``weights`` multiply the losses (:mod:`solvers.linear.steps.slack_step`).
    """
    found = statistics[0]
    worst, held = 0.0, 0.0
    for t in range(n):
        g = (b[t] - old[t] - S0) * K
        loss = max(g, 0.0)
        if weights is not None:
            loss *= weights[t]
        if largest_loss:
            worst = max(worst, loss)
            held += old[t] * g
        else:
            found.gap += C * loss - old[t] * g
            found.loss += C * loss
    if largest_loss:
        found.gap += C * worst - held
        found.loss += C * worst
    if weights is None:
        found.violation = max(found.violation, block_step.violation_of(b, old, n, S0, K, C, largest_loss))
        block_step.solve(b, n, C, S0, largest_loss, new)
    else:
        found.violation = max(found.violation, slack_step.violation_of(b, weights, old, n, S0, K, C, largest_loss))
        slack_step.solve(b, weights, n, C, S0, largest_loss, new)


# of the sums of updates
LINEAR, SQUARE = 0, 1


class BatchUpdates(NamedTuple):
    """The steps of the examples of one batch.

    ``w_c += value x_e``: those of example e lie from ``first[e]`` to ``first[e + 1]``, with the score ``stale`` that
    class c gave e when the batch was scored, and that ``found`` when the update was made. The dual variables that were
    or become positive lie from ``start[e]`` to ``start[e + 1]``. ``sums`` has the linear term, and the sum of the
    squared lengths of each example's own step.
    """

    first: Ints
    classes: Ints32
    values: Floats
    stale: Floats
    found: Floats
    start: Ints
    listed: Ints32
    old: Floats
    new: Floats
    sums: Floats


def empty_updates(size: int) -> BatchUpdates:
    """Updates of a batch of up to ``size`` examples, none yet."""
    starts, classes, values = (np.zeros(size + 1, np.int64) for _ in range(2)), np.empty(0, np.int32), np.empty(0)
    first, start = starts
    return BatchUpdates(first, classes, values, values, values, start, classes, values, values, np.zeros(2))


def with_capacity(updates: BatchUpdates, n: int) -> BatchUpdates:
    """The same buffers, with room for n entries."""
    if n <= len(updates.classes):
        return updates
    n *= 2
    arrays = {name: np.empty(n, getattr(updates, name).dtype) for name in ("classes", "values", "stale", "found")}
    arrays |= {name: np.empty(n, getattr(updates, name).dtype) for name in ("listed", "old", "new")}
    return updates._replace(**arrays)


@njit(cache=True, nogil=True)
def find(
    largest_loss: bool,
    squares: Floats,
    y: Ints32,
    bounds: Floats,
    costs: Costs | None,
    batch: Batch,
    pool: Coefficients,
    updates: BatchUpdates,
    seen: Floats,
    gains: Floats32,
    statistics: Array,
) -> None:
    """The exact step of every example of the batch; updates, seen, gains and statistics change."""
    room = 0
    for e in range(batch.examples.shape[0]):
        room = max(room, batch.first[e + 1] - batch.first[e] + batch.counts[e])
    classes = np.empty(room, np.int32)
    b, old, new = np.empty(room), np.empty(room), np.empty(room)
    if costs is not None:
        margins, weights = np.ones(room), np.empty(room)
    updates.sums[:] = 0.0
    used = listed = 0
    for e in range(batch.examples.shape[0]):
        updates.first[e], updates.start[e] = used, listed
        i = batch.examples[e]
        bound, K, f_y = bounds[i], squares[i], np.float64(batch.f_y[e])
        seen[i] = f_y
        m, start, S0 = batch.first[e + 1] - batch.first[e], pool.start[i] + 1, 0.0
        for t in range(m):
            classes[t], old[t] = pool.classes[start + t], -pool.values[start + t]
            S0 += old[t]
        n = m + batch.counts[e]
        for t in range(m, n):
            classes[t], old[t] = batch.classes[e, t - m], 0.0
        for t in range(n):
            f_c = np.float64(batch.held[batch.first[e] + t] if t < m else batch.scores[e, t - m])
            margin = 1.0
            if costs is not None:
                weights[t] = cost_of(costs, y[i], classes[t])
                margin = margins[t] = 1.0 if costs.slack else weights[t]
            b[t] = (margin - f_y + f_c) / K + old[t] + S0
        if costs is not None and costs.slack:
            solve(b, old, new, n, bound, S0, K, largest_loss, statistics, weights)
        else:
            solve(b, old, new, n, bound, S0, K, largest_loss, statistics, None)

        begun, gain, linear, square = used, 0.0, 0.0, 0.0
        for t in range(n):
            change = new[t] - old[t]
            if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
                g = (b[t] - old[t] - S0) * K
                margin = 1.0
                if costs is not None:
                    margin = margins[t]
                updates.classes[used], updates.values[used], updates.stale[used] = classes[t], -change, g - margin + f_y
                used += 1
                gain += change
                linear += change * g
                square += change * change
            else:
                new[t] = old[t]
            if old[t] > 0.0 or new[t] > 0.0:
                updates.listed[listed], updates.old[listed], updates.new[listed] = classes[t], old[t], new[t]
                listed += 1
        gains[i] = 0.0
        if used > begun:
            updates.classes[used], updates.values[used], updates.stale[used] = y[i], gain, f_y
            used += 1
            square = K * (square + gain * gain)
            gains[i] = linear - 0.5 * square
            updates.sums[LINEAR] += linear
            updates.sums[SQUARE] += square
        else:
            listed = updates.start[e]
    n = batch.examples.shape[0]
    updates.first[n], updates.start[n] = used, listed


@njit(cache=True, nogil=True)
def apply(rows: Rows, shard: Shard, batch: Batch, updates: BatchUpdates, begin: int, end: int) -> None:
    """Add the updates of the shard's classes to its weights, those in columns begin to end.

    ``updates.found`` becomes the score that each of these classes gave the example just before it.
    """
    W, local, examples, first = shard.W, shard.local, batch.examples, updates.first
    classes, steps, found = updates.classes, updates.values, updates.found
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    cells, width = W.reshape(-1), np.uint64(W.shape[1])
    room = end - begin + 1
    columns, values, sums, places = np.empty(room, np.uint64), np.empty(room), np.empty(room), np.empty(room, np.int64)
    for e in range(examples.shape[0]):
        if e + 1 < examples.shape[0]:
            i = examples[e + 1]
            for t in range(first[e + 1], first[e + 2]):
                c = local[classes[t]]
                if begin <= c < end:
                    for p in range(indptr[i], indptr[i + 1]):
                        prefetch(cells, np.int64(np.uint64(indices[p]) * width) + c)
        n = 0
        for t in range(first[e], first[e + 1]):
            c = local[classes[t]]
            if begin <= c < end:
                columns[n], values[n], sums[n], places[n] = c, steps[t], 0.0, t
                n += 1
        if n == 0:
            continue
        i = examples[e]
        if n == 1:
            c, step, total = columns[0], values[0], 0.0
            for p in range(indptr[i], indptr[i + 1]):
                at, x = np.uint64(indices[p]) * width + c, data[p]
                before = cells[at]
                total += x * before
                cells[at] = before + step * x
            found[places[0]] = total
            continue
        for p in range(indptr[i], indptr[i + 1]):
            base, x = np.uint64(indices[p]) * width, data[p]
            for t in range(n):
                before = cells[base + columns[t]]
                sums[t] += x * before
                cells[base + columns[t]] = before + values[t] * x
        for t in range(n):
            found[places[t]] = sums[t]


@njit(cache=True, nogil=True)
def cross_products(shard: Shard, updates: BatchUpdates, n: int) -> float:
    """The inner products between the steps of different examples, of n, over the weights of the shard's classes."""
    total = 0.0
    for t in range(updates.first[n]):
        if shard.local[updates.classes[t]] >= 0:
            total += updates.values[t] * (updates.found[t] - updates.stale[t])
    return total


def best_part(linear: float, square: float) -> float:
    """The best part of the updates to take, given the linear term and the squared length of their sum."""
    return linear / square if square > linear > 0.0 else 1.0


@njit(cache=True, nogil=True)
def undo_part(rows: Rows, shard: Shard, batch: Batch, updates: BatchUpdates, part: float, begin: int, end: int) -> None:
    """Take a part of the updates off the shard's weights again, those in columns begin to end."""
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for t in range(updates.first[e], updates.first[e + 1]):
            c = shard.local[updates.classes[t]]
            if begin <= c < end:
                step = part * updates.values[t]
                for p in range(rows.indptr[i], rows.indptr[i + 1]):
                    shard.W[rows.indices[p], c] -= step * rows.data[p]


@njit(cache=True, nogil=True)
def accept(batch: Batch, updates: BatchUpdates, y: Ints32, pool: Coefficients, part: float) -> None:
    """Enter a part of the updates in the lists of dual variables."""
    room = 1
    for e in range(batch.examples.shape[0]):
        room = max(room, 1 + updates.start[e + 1] - updates.start[e])
    classes, values = np.empty(room, np.int32), np.empty(room)
    for e in range(batch.examples.shape[0]):
        if updates.first[e] == updates.first[e + 1]:
            continue
        n, total = 1, 0.0
        for t in range(updates.start[e], updates.start[e + 1]):
            value = updates.new[t] if part == 1.0 else updates.old[t] + part * (updates.new[t] - updates.old[t])
            if value > 0.0:
                classes[n], values[n] = updates.listed[t], -value
                total += value
                n += 1
        i = batch.examples[e]
        classes[0], values[0] = y[i], total
        put(pool, i, classes, values, n if n > 1 else 0)
