"""Block steps of the machines with absolute margins, whose weight vectors sum to zero.

Constraint c of an example asks for s_c f_c >= m_c, s_c = +1 for its own class and -1 for the others. With
u_c = sum_i s_ic alpha_ic x_i the weights are w_c = u_c - mean(u), so moving the variables of one example by d moves
w_c by (s_c d_c - mean(s d)) x. With T = sum_c s_c alpha_c the maximum over a box is
alpha_c = clip(b_c + s_c T / k, 0, B_c) with b_c = (m_c - s_c f_c) / |x|^2 + alpha_c - s_c T0 / k, at the root T of its
own sum.

Labels are -1 where a part of the classes is all there is, as in a shard, and another part has the own class.

The best dual variables of one example of a machine with absolute margins: roots of sums of clipped values.

The notation is that of :mod:`solvers.linear.steps.absolute`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.linear.visits import Progress, Task, Visits
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.rows import Rows, score
from solvers.numerics.scaling_search import note


@njit(cache=True, nogil=True)
def solve(
    b: Floats, y: int, k: int, own: float, other: float, shared: bool, bound: float, start: float, new: Floats
) -> None:
    """The best variables of one example, given b."""
    T = _box_total(b, y, k, own, other, start)
    used = 0.0
    for c in range(k):
        new[c] = min(max(b[c] - T / k, 0.0), other)
    new[y] = min(max(b[y] + T / k, 0.0), own)
    if not shared:
        return
    for c in range(k):
        used += new[c]
    if used <= bound:
        return
    # the sum is at its bound: alpha_y = bound - R and T = bound - 2 R for one R, or alpha_y = 0 and R = bound
    R = bound
    if own > 0.0:
        R = _split(b, y, k, bound) if other > 0.0 else 0.0
    b_y, b[y] = b[y], -np.inf
    theta = _simplex_level(b, k, R)
    b[y] = b_y
    used = bound - R
    for c in range(k):
        new[c] = max(b[c] - theta, 0.0) if c != y else bound - R
        used += new[c] if c != y else 0.0
    # where the bound is tiny against b, rounding may lift the sum above it, and the dual value with it
    if used > bound:
        for c in range(k):
            new[c] *= bound / used


@njit(cache=True, nogil=True)
def _box_total(b: Floats, y: int, k: int, own: float, other: float, start: float) -> float:
    """Root T of clip(b_y + T/k, 0, own) - sum_others clip(b_c - T/k, 0, other) = T: Newton inside a bracket."""
    low, high = -other * (k - 1), own
    T = min(max(start, low), high)
    for _ in range(200):
        shift = T / k
        free, total = 0, 0.0
        for c in range(k):
            v = b[c] - shift
            free += (v > 0.0) & (v < other)
            total -= min(max(v, 0.0), other)
        v = b[y] - shift
        free -= (v > 0.0) & (v < other)
        total += min(max(v, 0.0), other)
        v = b[y] + shift
        free += (v > 0.0) & (v < own)
        F = total + min(max(v, 0.0), own) - T
        if F > 0.0:
            low = T
        elif F < 0.0:
            high = T
        else:
            return T
        new = T + F / (1.0 - free / k) if free < k else 0.5 * (low + high)
        if not (low < new < high):
            new = 0.5 * (low + high)
        if new == T or high - low <= 4e-16 * max(abs(low), abs(high)):
            return T
        T = new
    return T


@njit(cache=True, nogil=True)
def _split(b: Floats, y: int, k: int, bound: float) -> float:
    """Root R in [0, bound] of sum_others (b_c - b_y + bound - R - 2 (bound - 2 R) / k)_+ = R."""
    low, high = 0.0, bound
    slope = 1.0 - 4.0 / k
    base = bound - 2.0 * bound / k - b[y]
    R = 0.5 * bound
    for _ in range(200):
        level = base - slope * R
        free, F = 0, -R
        for c in range(k):
            v = b[c] + level
            if c != y and v > 0.0:
                free += 1
                F += v
        if F > 0.0:
            low = R
        elif F < 0.0:
            high = R
        else:
            return R
        rate = 1.0 + free * slope
        new = R + F / rate if rate > 0.0 else 0.5 * (low + high)
        if new <= low or new >= high:
            if (new <= 0.0 and low == 0.0) or (new >= bound and high == bound):
                edge = 0.0 if new <= 0.0 else bound
                if edge == R:
                    return R
                R = edge
                continue
            new = 0.5 * (low + high)
        if new == R or high - low <= 4e-16 * bound:
            return R
        R = new
    return R


@njit(cache=True, nogil=True)
def _simplex_level(b: Floats, k: int, total: float) -> float:
    """theta with sum_c (b_c - theta)_+ = total: Newton from the left, which ends in finitely many steps."""
    top = -np.inf
    for c in range(k):
        top = max(top, b[c])
    theta = top - total
    for _ in range(k + 2):
        count, mass = 0, 0.0
        for c in range(k):
            if b[c] > theta:
                count += 1
                mass += b[c] - theta
        if count == 0:
            return theta
        new = theta + (mass - total) / count
        if new <= theta:
            return theta
        theta = new
    return theta


class Margins(NamedTuple):
    """Which constraints a machine has: margin and share of the bound, for the own class and for the others.

    A share of 0 leaves the constraint out. ``shared`` says that the variables of one example share one bound, which
    is the dual of a loss that takes the largest violation instead of their sum.
    """

    own: float
    other: float
    own_share: float
    other_share: float
    shared: bool


class Alpha(NamedTuple):
    """All dual variables, shape (n_samples, n_classes): on these machines they are not sparse."""

    values: Array


@njit(cache=True, nogil=True)
def visit(task: Task, visits: Visits, margins: Margins, W: Array, alpha: Array, progress: Progress) -> None:
    """Exact block steps on the examples of ``visits``; W, alpha and progress change in place."""
    rows, labels, bounds, k = task
    order, begin, end, _, _ = visits
    unchanged, gains, statistics = progress.unchanged, progress.gains, progress.statistics[0]
    f, step = np.zeros(W.shape[1], W.dtype), np.zeros(W.shape[1], W.dtype)
    g, b, new = np.empty(k), np.empty(k), np.empty(k)
    trifle = 4.0 * np.finfo(W.dtype).eps
    for at in range(begin, end):
        i = order[at]
        y, K, a = labels[i], rows.squares[i], alpha[i]
        other, own = margins.other_share * bounds[i], margins.own_share * bounds[i]
        score(rows, i, W, f)
        T0 = 2.0 * np.float64(a[y])
        for c in range(k):
            T0 -= a[c]
        for c in range(k):
            g[c] = margins.other + f[c]
            b[c] = g[c] / K + a[c] + T0 / k
        g[y] = margins.own - f[y]
        b[y] = g[y] / K + a[y] - T0 / k
        gap, loss, violation = measure(g, a, y, k, own, other, margins.shared, bounds[i])
        statistics.gap += gap
        statistics.losses += loss
        statistics.violation = max(statistics.violation, violation)
        solve(b, y, k, own, other, margins.shared, bounds[i], T0, new)
        mean, changed, gain = 0.0, False, 0.0
        for c in range(k):
            old, value = a[c], new[c]
            a[c] = value
            d = old - np.float64(a[c]) if c != y else np.float64(a[c]) - old
            changed |= abs(d) > trifle * max(abs(value), abs(old))
            step[c] = d
            mean += d
            gain += g[c] * d if c == y else -g[c] * d
        gains[i] = 0.0
        if not changed:
            unchanged[i] = min(unchanged[i] + 1, 255)
            continue
        unchanged[i] = 0
        mean /= k
        for c in range(k):
            step[c] -= mean
            gain -= 0.5 * K * np.float64(step[c]) ** 2
        gains[i] = gain
        statistics.gain += gain
        for j in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[j]], rows.data[j]
            for c in range(w.shape[0]):
                w[c] += x * step[c]


@njit(cache=True, nogil=True)
def signed_sums(labels: Ints32, alpha: Array, totals: Floats, begin: int, end: int) -> None:
    """Of examples begin to end sum_c s_c alpha_c, or a part's share of it."""
    for i in range(begin, end):
        total = 2.0 * np.float64(alpha[i, labels[i]]) if labels[i] >= 0 else 0.0
        for c in range(alpha.shape[1]):
            total -= alpha[i, c]
        totals[i] = total


@njit(cache=True, nogil=True)
def rebuild(
    rows: Rows, labels: Ints32, n_classes: int, alpha: Array, totals: Floats, W: Array, begin: int, end: int
) -> None:
    """Columns begin to end of W from alpha afresh, free of the rounding that many small updates have left."""
    step = np.zeros(end - begin, W.dtype)
    W[:, begin:end] = 0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        mean = totals[i] / n_classes
        for c in range(end - begin):
            step[c] = -alpha[i, begin + c] - mean
        if begin <= labels[i] < end:
            step[labels[i] - begin] = alpha[i, labels[i]] - mean
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], rows.data[p]
            for c in range(w.shape[0]):
                w[c] += x * step[c]


@njit(cache=True, nogil=True)
def certify(
    task: Task,
    margins: Margins,
    W: Array,
    alpha: Array,
    gaps: Floats,
    leads: Floats,
    terms: Floats,
    sums: Floats,
    begin: int,
    end: int,
) -> None:
    """Weighted losses and sum_c m_c alpha_c of the examples begin to end that are not empty, to sums; gaps, each one's.

    By how much the own class of each leads the best other one goes to leads; where the own class is not among those of
    alpha, that is minus infinity.

    Where examples sum their losses, ``terms`` notes them at all multiples of W for the scaling line search.
    """
    rows, labels, bounds, _ = task
    n_own = alpha.shape[1]
    f, g = np.zeros(W.shape[1], W.dtype), np.empty(n_own)
    losses, total = 0.0, 0.0
    for i in range(begin, end):
        if rows.squares[i] == 0.0:
            continue
        y, a, best = labels[i], alpha[i], -np.inf
        score(rows, i, W, f)
        own, other = margins.own_share * bounds[i], margins.other_share * bounds[i]
        for c in range(n_own):
            g[c] = margins.other + np.float64(f[c])
            total += margins.other * a[c]
            if c != y:
                best = max(best, np.float64(f[c]))
            if c != y and not margins.shared:
                note(margins.other, f[c], other, terms)
        leads[i] = np.float64(f[y]) - best if y >= 0 else -np.inf
        if y >= 0:
            g[y] = margins.own - np.float64(f[y])
            total += (margins.own - margins.other) * a[y]
            if not margins.shared:
                note(margins.own, -f[y], own, terms)
        gaps[i], loss, _ = measure(g, a, y, n_own, own, other, margins.shared, bounds[i])
        losses += loss
    sums[0], sums[1] = losses, total


@njit(cache=True, nogil=True)
def measure(
    g: Floats, a: Array, y: int, k: int, own: float, other: float, shared: bool, bound: float
) -> tuple[float, float, float]:
    """An example's part of the gap, its weighted loss, and how far it is from its optimality conditions."""
    worst, summed, held, used, low = 0.0, 0.0, 0.0, 0.0, np.inf
    violation = 0.0
    for c in range(k):
        top = own if c == y else other
        if top == 0.0:
            continue
        positive = max(g[c], 0.0)
        worst = max(worst, positive)
        summed += top * positive
        held += a[c] * g[c]
        used += a[c]
        if a[c] > 0.0:
            low = min(low, g[c])
        if not shared and ((g[c] > 0.0 and a[c] < top) or (g[c] < 0.0 and a[c] > 0.0)):
            violation = max(violation, abs(g[c]))
    if shared:
        if used < bound * (1.0 - 1e-6):
            low = min(low, 0.0)
        if low < worst:
            violation = max(violation, worst - low)
        summed = bound * worst
    return summed - held, summed, violation
