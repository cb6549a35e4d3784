"""Exact block steps of the machines with relative margins: all dual variables of one example move together.

With g_c = 1 - f_y + f_c, K = |x|^2, S0 = sum alpha and b_c = g_c / K + alpha_c + S0 the optimum of the summed losses
(Weston-Watkins) is clip(b_c - S, 0, C) at the root S of its own sum, and that of the largest loss (Crammer-Singer)
is (b_c - theta)_+ at the root theta of sum (b_c - theta)_+ = min(theta, C).
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.linear.layouts import class_lists, hybrid_weights
from solvers.linear.layouts.class_lists import BITS, END, LACKING, LIMIT, Lists
from solvers.numerics.block_roots import box_root, simplex_root
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, PARTS, Rows, best_of_parts
from solvers.numerics.scaling_search import note
from solvers.numerics.simd import above_mask, largest, lowest_bit, prefetch

NEGLIGIBLE = 1e-12
AHEAD = 4
SLOTS = 1 << 14
# of more than so many candidates, those are sought anew that a better bound leaves, by the best of so many parts
MANY = 64


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
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
    lists: Lists | None,
    pool: Coefficients,
    rest: NDArray[np.uint8],
    gains: NDArray[np.float32],
    tally: NDArray[np.float64],
) -> int:
    """Block steps on order[begin:end], over all classes or over those listed in the pool; all else changes in place.

    ``most`` bounds the candidates of one step: fewer than all is an exact step on a part of the variables. Returns
    where it stopped, before ``end`` when a pool is full. Everything is unpacked once and inlined: passing arrays on
    within tuples costs reference counts that took half the time of a visit.
    """
    indptr, indices, data, squares = rows.indptr, rows.indices, rows.data, rows.squares
    start, length, capacity = pool.start, pool.length, pool.capacity
    listed, values, used = pool.classes, pool.values, pool.used
    cells, width = W.reshape(-1), np.uint64(W.shape[1])
    size = n_classes + 2
    f, steps = np.zeros(W.shape[1], W.dtype), np.empty(size, W.dtype)
    classes, moved = np.empty(size, np.int32), np.empty(size, np.int32)
    b, old, new = np.empty(size + PARTS), np.empty(size), np.empty(size)
    if lists is not None:
        middle, n_hot = lists.middle, W.shape[0]
        w_start, w_length, w_cells, clock, bits = lists.start, lists.length, lists.cells, lists.clock, lists.clock[BITS]
        which, slots = np.empty(size, np.int32), np.empty(SLOTS, np.int64)
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
        first, m = start[i] + 1, max(length[i] - 1, 0)
        S0 = 0.0
        for t in range(m):
            classes[t], old[t] = listed[first + t], -values[first + t]
            S0 += old[t]
        loss, held, violation, placed = 0.0, 0.0, 0.0, False
        if full:
            sum_rows(W, indices, data, low, mid, f)
            if lists is not None:
                class_lists.add_scores(indices, data, mid, high, n_hot, w_start, w_length, w_cells, f)
            n, loss, held = _candidates(f, y, C, K, S0, m, n_classes, most, largest_loss, classes, b, old)
            violation = _violation(b, old, n, S0, K, C, largest_loss)
        else:
            n = m
            _score_listed(indices, data, low, mid, cells, width, classes, y, m, b)
            if lists is not None:
                for t in range(m + 1):
                    steps[t] = b[t]
                if (m + 1) * (high - mid) > slots.shape[0]:
                    slots = np.empty(2 * (m + 1) * (high - mid), np.int64)
                placed = class_lists.place(
                    indices, mid, high, n_hot, w_start, w_length, w_cells, bits, classes, m + 1, slots
                )
                class_lists.score_placed(data, mid, high, w_cells, slots, m + 1, steps)
                for t in range(m + 1):
                    b[t] = steps[t]
            f_y = b[m]
            for t in range(m):
                b[t] = (1.0 - f_y + b[t]) / K + old[t] + S0
        _solve(b, n, C, S0, largest_loss, new)

        # w_y += (sum of the changes) x, w_c -= change x
        count, own, kept, total, gain = 0, 0.0, 0, 0.0, 0.0
        for t in range(n):
            change = new[t] - old[t]
            if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
                moved[count], steps[count] = classes[t], -change
                if lists is not None:
                    which[count] = t
                count += 1
                own += change
                gain += change * change
            else:
                new[t] = old[t]
            if new[t] > 0.0:
                classes[kept], new[kept] = classes[t], new[t]
                total += new[t]
                kept += 1
        if lists is not None and count > 0 and not placed:
            need = class_lists.lacking(indices, mid, high, n_hot, w_length, count + 1)
            if clock[END] + need > clock[LIMIT]:
                clock[LACKING] = need
                return at
        if full:
            tally[0] += C * loss - held
            tally[1] += C * loss
            tally[2] = max(tally[2], violation)
        gains[i] = 0.0
        if count == 0:
            if full:
                rest[i] = min(rest[i] + 1, 255)
            continue
        rest[i] = 0
        gain = 0.5 * K * (gain + own * own)
        gains[i] = gain
        tally[3] += gain
        moved[count], steps[count] = y, own
        _add(indices, data, low, mid, cells, width, moved, steps, count + 1)
        if lists is not None:
            if placed:
                which[count] = m
                class_lists.update_placed(data, mid, high, w_cells, slots, m + 1, which, steps, count + 1)
            else:
                class_lists.sort_steps(moved, steps, count + 1)
                if (count + 1) * (high - mid) > slots.shape[0]:
                    slots = np.empty(2 * (count + 1) * (high - mid), np.int64)
                class_lists.place(indices, mid, high, n_hot, w_start, w_length, w_cells, bits, moved, count + 1, slots)
                class_lists.update(
                    indices, data, mid, high, n_hot, w_start, w_length, w_cells, clock, moved, steps, count + 1, slots
                )
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
    rows: Rows,
    labels: NDArray[np.int32],
    bounds: NDArray[np.float64],
    n_classes: int,
    largest_loss: bool,
    W: NDArray[Any],
    lists: Lists | None,
    pool: Coefficients,
    gaps: NDArray[np.float64],
    ray: NDArray[np.float64],
) -> tuple[float, float]:
    """Weighted losses and dual variables summed over all examples that are not empty; each one's gap in gaps.

    ``ray`` is told the terms that are above zero at W or at a larger multiple.
    """
    f = np.zeros(W.shape[1], W.dtype)
    losses, total = 0.0, 0.0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        hybrid_weights.score(rows, i, W, lists, f)
        f_y = np.float64(f[labels[i]])
        f[labels[i]] = -np.inf
        f[n_classes:] = -np.inf
        gaps[i] = told(f, f_y, bounds[i], largest_loss, ray)
        losses += gaps[i]
        first = pool.start[i]
        for t in range(first + 1, first + pool.length[i]):
            total -= pool.values[t]
            gaps[i] += pool.values[t] * (1.0 - f_y + f[pool.classes[t]])
    return losses, total


@njit(inline="always")
def told(f: NDArray[Any], f_y: float, C: float, largest_loss: bool, ray: NDArray[np.float64]) -> float:
    """The weighted loss of an example, whose terms the ray is told; f without its own class."""
    if largest_loss:
        pull = np.float64(largest(f)) - f_y
        if 1.0 + pull > 0.0:
            note(1.0, pull, C, ray)
        return C * max(0.0, 1.0 + pull)
    return C * float(_summed(f, f_y, C, ray))


@njit(inline="always")
def _candidates(
    f: NDArray[Any],
    y: int,
    C: float,
    K: float,
    S0: float,
    m: int,
    n_classes: int,
    most: int,
    largest_loss: bool,
    classes: NDArray[np.int32],
    b: NDArray[np.float64],
    old: NDArray[np.float64],
) -> tuple[int, float, float]:
    """Every class whose variable is or becomes positive: how many; the loss; sum alpha g. b from the scores f."""
    f_y = np.float64(f[y])
    f[y] = -np.inf
    for c in range(n_classes, f.shape[0]):
        f[c] = -np.inf
    held, loss, worst = 0.0, 0.0, 0.0
    for t in range(m):
        g = 1.0 - f_y + f[classes[t]]
        f[classes[t]] = -np.inf
        b[t] = g / K + old[t] + S0
        held += old[t] * g
        loss += max(g, 0.0)
        worst = max(worst, g)
    g_top = 1.0 - f_y + np.float64(largest(f))
    b_top = g_top / K + S0
    if largest_loss:
        loss = max(worst, g_top)
    elif g_top > 0.0:
        loss += _summed(f, f_y, C, None)

    # two lower bounds of the root: from the positive variables alone, and from the best other class alone
    floor = max(0.0, min(0.5 * b_top, C), b_top - C if largest_loss else 0.0)
    if m > 0:
        floor = max(floor, simplex_root(b, m, C) if largest_loss else box_root(b, m, C, 1.0, S0))
    n, lanes, begin, many = m, ALIGNMENT // f.itemsize, 0, m + MANY
    level = f.dtype.type(f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y))
    while b_top > floor and begin < n_classes and n < most:
        mask = above_mask(f, begin, level)
        while mask:
            c = begin + lowest_bit(mask)
            mask &= mask - np.uint32(1)
            classes[n], old[n] = c, 0.0
            b[n] = (1.0 - f_y + f[c]) / K + S0
            n += 1
        begin += lanes
        if n >= many and begin < n_classes:
            # the root over the best class of every so many bounds that of all as well, and far better
            n, many, begin = m, n_classes + lanes, 0
            known = _best_of_parts(f, f_y, K, S0, b, m)
            floor = max(floor, simplex_root(b, known, C) if largest_loss else box_root(b, known, C, 1.0, S0))
            level = f.dtype.type(f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y))
    return n, loss, held


@njit(cache=True, nogil=True)
def _best_of_parts(f: NDArray[Any], f_y: float, K: float, S0: float, b: NDArray[np.float64], m: int) -> int:
    """b from the highest score of each of PARTS parts of the classes, behind the first m; returns the end."""
    best = np.empty(PARTS, f.dtype)
    best_of_parts(f, best)
    for t in range(PARTS):
        b[m + t] = (1.0 - f_y + best[t]) / K + S0
    return m + PARTS


@njit(cache=True, nogil=True)
def _summed(f: NDArray[Any], f_y: float, C: float, ray: NDArray[np.float64] | None) -> float:
    """Sum of max(0, 1 - f_y + f_c); the ray, if there is one, is told the terms times C."""
    lanes = ALIGNMENT // f.itemsize
    level = f.dtype.type(f_y - 1.0)
    loss = 0.0
    for begin in range(0, f.shape[0], lanes):
        mask = above_mask(f, begin, level)
        while mask:
            g = 1.0 - f_y + f[begin + lowest_bit(mask)]
            loss += max(0.0, g)
            if ray is not None and g > 0.0:
                note(1.0, g - 1.0, C, ray)
            mask &= mask - np.uint32(1)
    return loss


@njit(inline="always")
def _score_listed(
    indices: NDArray[np.int32],
    data: NDArray[Any],
    low: int,
    high: int,
    cells: NDArray[Any],
    width: int,
    classes: NDArray[np.int32],
    y: int,
    m: int,
    b: NDArray[np.float64],
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
def _solve(b: NDArray[np.float64], n: int, C: float, S0: float, largest_loss: bool, new: NDArray[np.float64]) -> None:
    """The best variables of one example, given b."""
    used = 0.0
    if largest_loss:
        root, top = simplex_root(b, n, C), np.inf
    else:
        root, top = box_root(b, n, C, 1.0, S0), C
    for t in range(n):
        new[t] = min(max(b[t] - root, 0.0), top)
        used += new[t]
    # where C is tiny against b, rounding may lift the sum above it, and the dual value with it
    if largest_loss and used > C:
        for t in range(n):
            new[t] *= C / used


@njit(inline="always")
def _violation(
    b: NDArray[np.float64], old: NDArray[np.float64], n: int, S0: float, K: float, C: float, largest_loss: bool
) -> float:
    """How far the example is from its optimality conditions, before the step."""
    violation, worst, low = 0.0, 0.0, np.inf
    for t in range(n):
        g = (b[t] - old[t] - S0) * K
        worst = max(worst, g)
        if old[t] > 0.0:
            low = min(low, g)
        if (g > 0.0 and old[t] < C) or (g < 0.0 and old[t] > 0.0):
            violation = max(violation, abs(g))
    if largest_loss:
        # the slack C - sum alpha is one more variable, of gradient 0 (Crammer and Singer 2002, equation 24)
        if S0 < C * (1.0 - 1e-9):
            low = min(low, 0.0)
        violation = max(0.0, worst - low)
    return violation


@njit(inline="always")
def _add(
    indices: NDArray[np.int32],
    data: NDArray[Any],
    low: int,
    high: int,
    cells: NDArray[Any],
    width: int,
    moved: NDArray[np.int32],
    steps: NDArray[Any],
    n: int,
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
    indices: NDArray[np.int32],
    low: int,
    high: int,
    listed: NDArray[np.int32],
    first: int,
    last: int,
    cells: NDArray[Any],
    width: int,
) -> None:
    """Ask for the cells of W that a visit of an example's listed classes will read."""
    for p in range(low, high):
        base = np.int64(np.uint64(indices[p]) * width)
        for t in range(first, last):
            prefetch(cells, base + listed[t])
