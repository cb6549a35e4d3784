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


@njit(cache=True, nogil=True)
def boxes_root(b: Floats, weights: Floats, n: int, bound: float, start: float) -> float:
    """As :func:`box_root` with gamma 1, the bound of each variable being multiplied by its weight."""
    low, high = -np.inf, np.inf
    S = start
    for _ in range(200):
        free, total = 0, 0.0
        for t in range(n):
            v, top = b[t] - S, bound * weights[t]
            if v >= top:
                total += top
            elif v > 0.0:
                free += 1
                total += b[t]
        new = total / (1 + free)
        if new > S:
            low = S
        elif new < S:
            high = S
        else:
            return S
        if new <= low or new >= high:
            if high - low <= 4e-16 * max(abs(low), abs(high)):
                return S
            new = 0.5 * (low + high)
        if new == S:
            return S
        S = new
    return S


@njit(cache=True, nogil=True)
def weighted_simplex_root(b: Floats, weights: Floats, n: int, bound: float) -> tuple[float, float]:
    """S and mu >= 0 where a_c = (b_c - S - mu / weights_c)_+ have the sum S, and a weighted sum within the bound.

    That is sum_c a_c / weights_c, the bound itself where mu > 0. For every mu there is one S, and the weighted sum
    falls as mu grows: Newton on its pieces, kept inside a bracket. Entries without weight are left out.
    """
    shifted = np.empty(n)
    low, high, mu = 0.0, 0.0, 0.0
    for t in range(n):
        high = max(high, b[t] * weights[t])
    S = 0.0
    for _ in range(200):
        for t in range(n):
            shifted[t] = b[t] - mu / weights[t] if weights[t] > 0.0 else -1.0
        S = simplex_root(shifted, n, np.inf)
        free, total, inverse, square, product = 0, 0.0, 0.0, 0.0, 0.0
        for t in range(n):
            if shifted[t] > S:
                u = 1.0 / weights[t]
                free += 1
                total += b[t]
                inverse += u
                square += u * u
                product += b[t] * u
        excess = product - S * inverse - mu * square - bound
        if excess > 0.0:
            low = mu
        elif mu == 0.0:
            return S, 0.0
        else:
            high = mu
        curvature = square - inverse * inverse / (1 + free)
        new = (product - inverse * total / (1 + free) - bound) / curvature if curvature > 0.0 else low
        if new == mu:
            break
        if not low < new < high:
            if high - low <= 4e-16 * high:
                break
            new = 0.5 * (low + high)
        mu = new
    return S, mu
