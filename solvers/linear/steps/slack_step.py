"""The exact step on all dual variables of one example whose losses are multiplied by costs (slack rescaling).

The example's loss is ``max_c l_c max(0, 1 - f_y + f_c)`` or the sum over c, with the cost l_c of answer c
(Tsochantaridis et al. 2005, section 2.2.1). In the notation of :mod:`solvers.linear.steps.block_step`, the largest loss
bounds ``sum_c alpha_c / l_c <= C``, and the optimum is ``(b_c - S - mu / l_c)_+``; the sum bounds each
``alpha_c <= C l_c``, and the optimum is ``clip(b_c - S, 0, C l_c)``. Variables of answers that cost nothing are zero.
"""

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, cost_of
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.block_roots import boxes_root, weighted_simplex_root
from solvers.numerics.simd import largest


@njit(cache=True, nogil=True)
def _root(b: Floats, weights: Floats, n: int, C: float, S0: float, largest_loss: bool) -> tuple[float, float]:
    """S and mu over the first n variables."""
    if largest_loss:
        S, mu = weighted_simplex_root(b, weights, n, C)
        return S, mu
    return boxes_root(b, weights, n, C, S0), 0.0


@njit(cache=True, nogil=True)
def candidates(
    row: Floats, f: Array, f_y: float, C: float, K: float, S0: float, m: int, n_classes: int, most: int,
    largest_loss: bool, classes: Ints32, b: Floats, old: Floats, weights: Floats
) -> tuple[int, float, float]:  # fmt: skip
    """As :func:`solvers.linear.steps.block_step.candidates`; ``weights`` become the costs of those that are found.

    A class joins whose variable is positive at the optimum over those found so far; the optimum that none would join is
    that over all. ``row`` has the costs of all classes.
    """
    loss, held = 0.0, 0.0
    for c in range(n_classes):
        value = row[c] * max(1.0 - f_y + f[c], 0.0)
        loss = max(loss, value) if largest_loss else loss + value
    for c in range(n_classes, f.shape[0]):
        f[c] = -np.inf
    for t in range(m):
        c = classes[t]
        g = 1.0 - f_y + f[c]
        f[c] = -np.inf
        b[t], weights[t] = g / K + old[t] + S0, row[c]
        held += old[t] * g
    n = m
    if m == 0:
        # the best class alone keeps many others from joining
        best = largest(f)
        for c in range(n_classes):
            if f[c] == best and row[c] > 0.0:
                classes[0], old[0], b[0], weights[0] = c, 0.0, (1.0 - f_y + f[c]) / K + S0, row[c]
                f[c] = -np.inf
                n = 1
                break
    while n < most:
        S, mu = _root(b, weights, n, C, S0, largest_loss)
        before = n
        for c in range(n_classes):
            b_c = (1.0 - f_y + f[c]) / K + S0
            if b_c > S and row[c] > 0.0 and b_c > S + mu / row[c]:
                classes[n], old[n], b[n], weights[n] = c, 0.0, b_c, row[c]
                f[c] = -np.inf
                n += 1
                if n >= most:
                    break
        if n == before:
            break
    return n, loss, held


@njit(cache=True, nogil=True)
def exceeding(
    row: Floats, f: Array, f_y: float, C: float, K: float, S0: float, m: int, n: int, n_classes: int,
    largest_loss: bool, classes: Ints32, b: Floats, weights: Floats
) -> int:  # fmt: skip
    """Behind the m first of ``classes``, all that may be positive where other classes take part, too; how many.

    The n first of ``classes`` are those that :func:`candidates` has found, at most n_classes; f is -inf there. Whatever
    else takes part, S is at least the sum of the variables of any of these, and their weighted sum within the bound.
    Linear in S and mu over those that are positive now, both bound ``S + mu / l`` from below for every cost l.
    """
    S, mu = _root(b, weights, n, C, S0, largest_loss)
    free, U, Q, B, V = 1, 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        if weights[t] > 0.0 and b[t] > S + mu / weights[t]:
            u = 1.0 / weights[t]
            free, U, Q, B, V = free + 1, U + u, Q + u * u, B + b[t], V + b[t] * u
    kept = m
    for t in range(m, n):
        # found one after the other: the first ones may be zero by now
        if not largest_loss and b[t] <= S:
            continue
        classes[kept] = classes[t]
        kept += 1
    if not largest_loss:
        return kept
    for c in range(n_classes):
        b_c = (1.0 - f_y + f[c]) / K + S0
        if row[c] > 0.0 and b_c > 0.0 and b_c > _least(1.0 / row[c], free, U, Q, B, V - C) - 1e-7 * b_c:
            classes[kept] = c
            kept += 1
    return kept


@njit(inline="always")
def _least(u: float, free: int, U: float, Q: float, B: float, D: float) -> float:
    """The least S + mu u over S, mu >= 0 with ``free S + U mu >= B`` and ``U S + Q mu >= D``."""
    if U == 0.0:
        return 0.0
    least = max(B * min(1.0 / free, u / U), D * min(1.0 / U, u / Q), 0.0)
    determinant = free * Q - U * U
    first, second = Q - U * u, free * u - U
    if determinant > 0.0 and first >= 0.0 and second >= 0.0:
        least = max(least, (first * B + second * D) / determinant)
    return least


@njit(cache=True, nogil=True)
def weights_of(costs: Costs, y: int, classes: Ints32, n: int, weights: Floats) -> None:
    """The costs of the first n classes."""
    for t in range(n):
        weights[t] = cost_of(costs, y, classes[t])


@njit(cache=True, nogil=True)
def solve(b: Floats, weights: Floats, n: int, C: float, S0: float, largest_loss: bool, new: Floats) -> None:
    """As :func:`solvers.linear.steps.block_step.solve`."""
    S, mu = _root(b, weights, n, C, S0, largest_loss)
    used = 0.0
    for t in range(n):
        new[t] = 0.0
        if weights[t] > 0.0:
            new[t] = max(b[t] - S - mu / weights[t], 0.0)
            if not largest_loss:
                new[t] = min(new[t], C * weights[t])
            used += new[t] / weights[t]
    # rounding may lift the sum above its bound, and the dual value with it
    if largest_loss and used > C:
        for t in range(n):
            new[t] *= C / used


@njit(cache=True, nogil=True)
def violation_of(
    b: Floats, weights: Floats, old: Floats, n: int, S0: float, K: float, C: float, largest_loss: bool
) -> float:
    """As :func:`solvers.linear.steps.block_step.violation_of`."""
    violation, worst, low, used = 0.0, 0.0, np.inf, 0.0
    for t in range(n):
        if weights[t] == 0.0:
            continue
        g = (b[t] - old[t] - S0) * K
        worst = max(worst, weights[t] * g)
        used += old[t] / weights[t]
        if old[t] > 0.0:
            low = min(low, weights[t] * g)
        if (g > 0.0 and old[t] < C * weights[t]) or (g < 0.0 and old[t] > 0.0):
            violation = max(violation, abs(g))
    if largest_loss:
        # the slack of the bound is one more variable, of gradient 0
        if used < C * (1.0 - 1e-9):
            low = min(low, 0.0)
        violation = max(0.0, worst - low)
    return violation
