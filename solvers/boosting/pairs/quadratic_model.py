"""A step on many weights at once: where a quadratic model of the objective is least, and how the loss follows.

Functions that reorder sums are always inlined, as in :mod:`solvers.boosting.pairs.pair_weights`.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.boosting.pairs.pair_weights import SUMS, n_tiles
from solvers.numerics.parallel_for import parallel_for

LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
# adding this to a whole number of small size leaves it, plus the exponent's bias, in the lowest bits
SHIFTER = 6755399441055744.0 + 1023.0
FARTHEST = 700.0


@njit(cache=True, nogil=True)
def least(
    H: NDArray[np.float32],
    gradient: NDArray[np.float64],
    weights: NDArray[np.float64],
    order: NDArray[np.int64],
    signed: bool,
    sweeps: int,
    share: float,
    step: NDArray[np.float64],
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
            way = best - here
            if way != 0.0:
                gain -= abs(best) - abs(here) + way * (slope + 0.5 * curvature[j] * way)
                at[j] = best
                small, row = np.float32(way), H[j]
                for m in range(n):
                    slopes[m] += small * row[m]
        total += gain
    for j in range(n):
        step[j] = at[j] - weights[j]
    return total


@njit(cache=True, nogil=True, forceinline=True)
def _exp(x: float) -> float:
    """exp(x) to the last digits where \\|x\\| <= 700, in operations that LLVM vectorises."""
    x = min(max(x, -FARTHEST), FARTHEST)
    n = np.rint(x * LOG2E)
    f = x - n * LN2_HIGH - n * LN2_LOW
    p = 1.0 / 39916800 + f * (1.0 / 479001600 + f * (1.0 / 6227020800))
    p = 1.0 / 40320 + f * (1.0 / 362880 + f * (1.0 / 3628800 + f * p))
    p = 1.0 / 120 + f * (1.0 / 720 + f * (1.0 / 5040 + f * p))
    p = 0.5 + f * (1.0 / 6 + f * (1.0 / 24 + f * p))
    p = 1.0 + f * (1.0 + f * p)
    return float(p * np.int64(np.float64(n + SHIFTER).view(np.int64) << 52).view(np.float64))


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _advance(
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    steps: NDArray[np.float64],
    own: NDArray[np.float64],
    share: float,
    E: NDArray[np.float64],
) -> None:
    for i in range(len(e)):
        mu = e[i] * r[i] * _exp(share * (steps[i] - own[i]))
        e[i] = mu
        E[i] += mu


@njit(cache=True, nogil=True)
def _advance_tile(
    piece: int,
    length: int,
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    steps: NDArray[np.float64],
    share: float,
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, len(r))
    own = np.empty(end - begin)
    for i in range(begin, end):
        own[i - begin] = steps[y[i], i]
    E[begin:end] = 0.0
    for q in range(len(e)):
        # its own rows among these, which may be none
        s, t = min(max(starts[q], begin), end), min(max(starts[q + 1], begin), end)
        _advance(e[q][begin:s], r[begin:s], steps[q][begin:s], own[: s - begin], share, E[begin:s])
        _advance(e[q][t:end], r[t:end], steps[q][t:end], own[t - begin :], share, E[t:end])
    r[begin:end] = 1.0
    total = 0.0
    for i in range(begin, end):
        total += E[i]
    sums[piece] = total


@njit(cache=True, nogil=True)
def advance(
    work_queue: NDArray[np.int64],
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    steps: NDArray[np.float64],
    share: float,
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
) -> float:
    """Let the factors of mu follow as the scores grow by ``share steps``; all goes to e, so r becomes 1.

    Returns the sum of mu.
    """
    sums = np.empty(n_tiles(len(r)))
    length = -(-len(r) // len(sums))
    parallel_for(work_queue, _advance_tile, len(sums), (length, starts, y, steps, share, e, r, E, sums))
    total = 0.0
    for part in sums:
        total += part
    return total


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _dot(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@njit(cache=True, nogil=True)
def mass(r: NDArray[np.float64], E: NDArray[np.float64]) -> float:
    """The sum of mu, from its factors."""
    return float(_dot(r, E))
