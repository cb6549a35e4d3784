"""Visits of the machines with relative margins on sparse rows: block steps on one example after the other."""

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, add_costs, cost_of, costs_of
from solvers.linear.layouts import class_lists, hybrid_layout
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.steps import slack_step
from solvers.linear.steps.block_step import candidates, certify_example, changes, solve, violation_of
from solvers.linear.visits import Progress, Task, Visits
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import PARTS
from solvers.numerics.simd import prefetch

AHEAD = 4
SLOTS = 1 << 14


@njit(cache=True, nogil=True)
def visit(
    task: Task, visits: Visits, largest_loss: bool, W: Array, lists: Lists | None, pool: Coefficients,
    progress: Progress, costs: Costs | None
) -> int:  # fmt: skip
    """Block steps on the examples of ``visits``; W, lists, pool and progress change in place.

    ``visits.most`` bounds the candidates of one step: fewer than all is an exact step on a part of the variables.
    Margins are ``costs``, or 1 without: what an answer costs more than 1 is added to its score. Or losses are
    multiplied by them: :mod:`solvers.linear.steps.slack_step`.
    Returns where it stopped, before the end when a pool is full. Everything is unpacked once and inlined: passing
    arrays on within tuples costs reference counts that took half the time of a visit.
    """
    rows, labels, bounds, n_classes = task
    order, begin, end, full, most = visits
    unchanged, gains, statistics = progress.unchanged, progress.gains, progress.statistics[0]
    indptr, indices, data, squares = rows.indptr, rows.indices, rows.data, rows.squares
    start, length, capacity = pool.start, pool.length, pool.capacity
    listed, values, used = pool.classes, pool.values, pool.used
    cells, width = W.reshape(-1), np.uint64(W.shape[1])
    size = n_classes + 2
    f, steps = np.zeros(W.shape[1], W.dtype), np.empty(size, W.dtype)
    classes, moved, which = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    b, old, new = np.empty(size + PARTS), np.empty(size), np.empty(size)
    if costs is not None:
        weights, row = np.empty(size), np.empty(W.shape[1])
    if lists is not None:
        middle, n_hot = lists.middle, W.shape[0]
        w_start, w_length, w_cells, room = lists.start, lists.length, lists.cells, lists.counters[0]
        bits = room.bits
        slots = np.empty(SLOTS, np.int64)
    for at in range(begin, end):
        if used[0] + n_classes > listed.shape[0]:
            return at
        if at + AHEAD < end:
            i = order[at + AHEAD]
            for p in range(indptr[i], indptr[i + 1], 16):
                prefetch(indices, p)
                prefetch(data, p)
            prefetch(listed, start[i])
            prefetch(values, start[i])
        if not full and at + 1 < end:
            i = order[at + 1]
            last = indptr[i + 1]
            if lists is not None:
                last = middle[i]
            _prefetch_listed(indices, indptr[i], last, listed, start[i], start[i] + length[i], cells, width)
        i = order[at]
        y, C, K, low, high = labels[i], bounds[i], squares[i], indptr[i], indptr[i + 1]
        mid = high
        if lists is not None:
            mid = middle[i]
        first, m, S0 = start[i] + 1, max(length[i] - 1, 0), 0.0
        for t in range(m):
            classes[t], old[t] = listed[first + t], -values[first + t]
            S0 += old[t]
        loss, held, violation, placed = 0.0, 0.0, 0.0, False
        if full:
            sum_rows(W, indices, data, low, mid, f)
            if lists is not None:
                class_lists.add_scores(indices, data, mid, high, n_hot, w_start, w_length, w_cells, f)
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
        else:
            n = m
            if most > 0:
                n = _add_block(at, most, n_classes, y, m, classes, old)
            _score_listed(indices, data, low, mid, cells, width, classes, y, n, b)
            if lists is not None:
                for t in range(n + 1):
                    steps[t] = b[t]
                if (n + 1) * (high - mid) > slots.shape[0]:
                    slots = np.empty(2 * (n + 1) * (high - mid), np.int64)
                placed = class_lists.place(
                    indices, mid, high, n_hot, w_start, w_length, w_cells, bits, classes, n + 1, slots
                )
                class_lists.score_placed(data, mid, high, w_cells, slots, n + 1, steps)
                for t in range(n + 1):
                    b[t] = steps[t]
            f_y = b[n]
            if costs is not None and costs.slack:
                slack_step.weights_of(costs, y, classes, n, weights)
            elif costs is not None:
                for t in range(n):
                    b[t] += cost_of(costs, y, classes[t]) - 1.0
            for t in range(n):
                b[t] = (1.0 - f_y + b[t]) / K + old[t] + S0
        if costs is not None and costs.slack:
            slack_step.solve(b, weights, n, C, S0, largest_loss, new)
        else:
            solve(b, n, C, S0, largest_loss, new)

        # w_y += (sum of the changes) x, w_c -= change x
        count, own, square, kept, total = changes(old, new, n, classes, moved, steps, which)
        if lists is not None and count > 0 and not placed:
            need = class_lists.lacking(indices, mid, high, n_hot, w_length, count + 1)
            if room.end + need > room.limit:
                room.lacking = need
                return at
        if full:
            statistics.gap += C * loss - held
            statistics.losses += C * loss
            statistics.violation = max(statistics.violation, violation)
        gains[i] = 0.0
        if count == 0:
            if full:
                unchanged[i] = min(unchanged[i] + 1, 255)
            continue
        unchanged[i] = 0
        gain = 0.5 * K * (square + own * own)
        gains[i] = gain
        statistics.gain += gain
        moved[count], steps[count] = y, own
        _add(indices, data, low, mid, cells, width, moved, steps, count + 1)
        if lists is not None:
            if placed:
                which[count] = n
                class_lists.update_placed(data, mid, high, w_cells, slots, n + 1, which, steps, count + 1)
            else:
                class_lists.sort_steps(moved, steps, count + 1)
                if (count + 1) * (high - mid) > slots.shape[0]:
                    slots = np.empty(2 * (count + 1) * (high - mid), np.int64)
                class_lists.place(indices, mid, high, n_hot, w_start, w_length, w_cells, bits, moved, count + 1, slots)
                class_lists.update(indices, data, mid, high, n_hot, lists, moved, steps, count + 1, slots)
        # the own class with the sum of the variables, then each other with its sign turned
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
def certify(
    task: Task, largest_loss: bool, W: Array, lists: Lists | None, pool: Coefficients, gaps: Floats, leads: Floats,
    terms: Floats, costs: Costs | None, multiple: float
) -> tuple[float, float]:  # fmt: skip
    """Weighted losses and dual variables, times their margins, summed over all examples that are not empty.

    Each one's gap goes to ``gaps``, and by how much its own class leads the best other one to ``leads``.
    ``terms`` notes, for the scaling line search, those that are above zero at W or at a larger multiple. With costs all
    is at this ``multiple`` of W.
    """
    rows, labels, bounds, n_classes = task
    f = np.zeros(W.shape[1], W.dtype)
    margins = np.ones(W.shape[1])
    losses, total = 0.0, 0.0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        hybrid_layout.score(rows, i, W, lists, f)
        losses, total = certify_example(
            i, labels[i], f, n_classes, bounds[i], largest_loss, pool, gaps, leads, terms, costs, multiple, margins,
            losses, total
        )  # fmt: skip
    return losses, total


@njit(inline="always")
def _add_block(at: int, size: int, n_classes: int, y: int, m: int, classes: Ints32, old: Floats) -> int:
    """Put the next block of classes, as each visit does in turn, behind the m listed; returns how many there are."""
    n, begin = m, size * (at % (n_classes // size))
    for c in range(begin, begin + size):
        new = c != y
        for t in range(m):
            new &= classes[t] != c
        if new:
            classes[n], old[n] = c, 0.0
            n += 1
    return n


@njit(inline="always")
def _score_listed(
    indices: Ints32,
    data: Array,
    low: int,
    high: int,
    cells: Array,
    width: int,
    classes: Ints32,
    y: int,
    m: int,
    b: Floats,
) -> None:
    """Scores of the m listed classes and, behind them, of y: two a reading of the row."""
    classes[m] = classes[m + 1] = y
    for t in range(0, m + 1, 2):
        c, d = np.uint64(classes[t]), np.uint64(classes[t + 1])
        f_c, f_d = cells.dtype.type(0), cells.dtype.type(0)
        for p in range(low, high):
            base, x = np.uint64(indices[p]) * width, data[p]
            f_c += x * cells[base + c]
            f_d += x * cells[base + d]
        b[t], b[t + 1] = f_c, f_d


@njit(inline="always")
def _add(
    indices: Ints32, data: Array, low: int, high: int, cells: Array, width: int, moved: Ints32, steps: Array, n: int
) -> None:
    """W[:, moved[t]] += steps[t] x for the first n entries."""
    if n == 2:
        c, d, s, u = np.uint64(moved[0]), np.uint64(moved[1]), steps[0], steps[1]
        for p in range(low, high):
            base, x = np.uint64(indices[p]) * width, data[p]
            cells[base + c] += s * x
            cells[base + d] += u * x
    else:
        for p in range(low, high):
            base, x = np.uint64(indices[p]) * width, data[p]
            for t in range(n):
                cells[base + np.uint64(moved[t])] += steps[t] * x


@njit(inline="always")
def _prefetch_listed(
    indices: Ints32, low: int, high: int, listed: Ints32, first: int, last: int, cells: Array, width: int
) -> None:
    """Ask for the cells of W that a visit of an example's listed classes will read."""
    for p in range(low, high):
        base = np.int64(np.uint64(indices[p]) * width)
        for t in range(first, last):
            prefetch(cells, base + listed[t])
