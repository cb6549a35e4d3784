"""Where a quadratic model of the objective, with its penalty, is least."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats, Floats32, Ints


@njit(cache=True, nogil=True)
def minimise(
    H: Floats32, gradient: Floats, weights: Floats, order: Ints, signed: bool, sweeps: int, share: float, step: Floats
) -> float:
    """Lower ``gradient'd + d'H d / 2 + |weights + d|_1`` over d, weights + d >= 0 unless signed; d goes to ``step``.

    Coordinate descent in the given order, until a sweep has lowered it by less than ``share`` of the whole. Returns how
    much that is.
    """
    n, slopes, at = len(gradient), gradient.astype(np.float32), weights.copy()
    curvature, inverse = np.empty(n), np.zeros(n)
    for j in range(n):
        curvature[j] = H[j, j]
        if curvature[j] > 0.0:
            inverse[j] = 1.0 / curvature[j]
    total, gain = 0.0, np.inf
    for _ in range(sweeps):
        if gain <= share * total:
            break
        gain = 0.0
        for j in order:
            # without curvature nothing moves
            slope, here = np.float64(slopes[j]), at[j]
            best = here - (slope + 1.0) * inverse[j]
            if best < 0.0:
                best = min(0.0, here - (slope - 1.0) * inverse[j]) if signed else 0.0
            change = best - here
            if change != 0.0:
                gain -= abs(best) - abs(here) + change * (slope + 0.5 * curvature[j] * change)
                at[j] = best
                small, row = np.float32(change), H[j]
                for m in range(n):
                    slopes[m] += small * row[m]
        total += gain
    for j in range(n):
        step[j] = at[j] - weights[j]
    return total
