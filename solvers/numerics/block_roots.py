"""The one-dimensional equations at the heart of every exact block step."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats


@njit(cache=True, nogil=True)
def box_root(b: Floats, n: int, bound: float, gamma: float, start: float) -> float:
    """The root S of sum_c clip(b_c - gamma S, 0, bound) = S over the first n entries.

    F(S) = sum clip(b - gamma S, 0, bound) - S falls strictly (gamma > -1/n); Newton on its pieces, kept inside a
    bracket, ends at the exact root of the last piece.
    """
    low, high = -np.inf, np.inf
    S = start
    for _ in range(200):
        free, total, at_bound = 0, 0.0, 0
        for t in range(n):
            v = b[t] - gamma * S
            if v >= bound:
                at_bound += 1
            elif v > 0.0:
                free += 1
                total += b[t]
        fixed = at_bound * bound
        F = total + fixed - (1.0 + gamma * free) * S
        if F > 0.0:
            low = S
        elif F < 0.0:
            high = S
        else:
            return S
        new = (total + fixed) / (1.0 + gamma * free)
        if new <= low or new >= high:
            if not (low < high) or high - low <= 4e-16 * max(abs(low), abs(high)):
                return S
            new = 0.5 * (low + high) if np.isfinite(low + high) else S
        if new == S:
            return S
        S = new
    return S


@njit(cache=True, nogil=True)
def simplex_root(b: Floats, n: int, bound: float) -> float:
    """The root theta of sum_c (b_c - theta)_+ = min(theta, bound) over the first n entries; 0 when no b is positive.

    The left side less the right falls and is convex where the right is one of theta and bound, so Newton from the
    left never overshoots a piece's root.
    """
    top = 0.0
    for t in range(n):
        top = max(top, b[t])
    theta = top - bound if top > 2.0 * bound else 0.5 * top
    for _ in range(n + 2):
        count, total = 0, 0.0
        for t in range(n):
            if b[t] > theta:
                count += 1
                total += b[t]
        new = total / (count + 1)
        if new > bound and count > 0:
            new = (total - bound) / count
        if new <= theta:
            return theta
        theta = new
    return theta
