"""The best dual variables of one example of a machine with absolute margins: roots of sums of clipped values.

The notation is that of :mod:`solvers.linear.steps.absolute`.
"""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats


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
