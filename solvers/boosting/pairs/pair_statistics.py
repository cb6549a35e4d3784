"""What the pairs' weights tell of all examples: sums of each class, gradients, and whole numbers for weak learners.

The weights are kept as :mod:`solvers.boosting.pairs.pair_weights` has them.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.boosting.pairs.pair_weights import SUMS, TILE, multiply, n_tiles, piece_length, run_end, within
from solvers.boosting.simd import LANES, interleave
from solvers.boosting.weak_learners.stump_search import scale
from solvers.numerics.parallel_for import parallel_for


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _dot(h: NDArray[np.int8], u: NDArray[np.float64]) -> float:
    total = 0.0
    for i in range(len(h)):
        total += h[i] * u[i]
    return total


@njit(cache=True, nogil=True)
def gradients(
    sides: NDArray[np.int8],
    classes: NDArray[np.int32],
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[j] = V_+ - V_- of variable j; several of a class in a row are cheaper."""
    u = np.empty(len(r))
    first = 0
    while first < len(classes):
        c, last = classes[first], run_end(classes, first)
        begin, end = starts[c], starts[c + 1]
        multiply(e[c], r, u)
        np.negative(u, u)
        multiply(E[begin:end], r[begin:end], u[begin:end])
        for j in range(first, last):
            out[j] = _dot(sides[j], u)
        first = last


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _pull_wrong(
    F: NDArray[np.float64],
    own: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    ahead: NDArray[np.float64],
) -> tuple[float, float]:
    """Sums of mu and of mu log(mu / omega) over rows of other classes; ``ahead`` grows to the class's lead."""
    total = entropy = 0.0
    for i in range(len(F)):
        mu, lead = e[i] * r[i], F[i] - own[i]
        total += mu
        entropy += mu * lead
        ahead[i] = max(ahead[i], lead)
    return total, entropy


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _pull_own(r: NDArray[np.float64], E: NDArray[np.float64]) -> float:
    """Sum of S over a class's own rows."""
    total = 0.0
    for i in range(len(r)):
        total += r[i] * E[i]
    return total


@njit(cache=True, nogil=True)
def _pull_tile(
    piece: int,
    length: int,
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
    n_wrong: NDArray[np.int64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, len(r))
    n = end - begin
    # of classes before the true one and of those behind it: one that is before it wins if it scores as much
    own, before, behind = np.empty(n), np.full(n, -np.inf), np.full(n, -np.inf)
    for i in range(n):
        own[i] = F[y[begin + i], begin + i]
    for c in range(F.shape[0]):
        f, g = F[c], e[c]
        s, t = within(begin, end, starts, c)
        a, b = s - begin, t - begin
        m0, l0 = _pull_wrong(f[begin:s], own[:a], g[begin:s], r[begin:s], behind[:a])
        m1, l1 = _pull_wrong(f[t:end], own[b:], g[t:end], r[t:end], before[b:])
        sums[piece, c, 0], sums[piece, c, 1] = m0 + m1, l0 + l1
        sums[piece, c, 2] = m0 + m1 + _pull_own(r[s:t], E[s:t])
    total = 0
    for i in range(n):
        total += int(before[i] >= 0.0 or behind[i] > 0.0)
    n_wrong[piece] = total


@njit(cache=True, nogil=True)
def pull(
    work_queue: NDArray[np.int64],
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> int:
    """Sums over the rows for all classes: of mu_ic, of mu_ic log(mu_ic / omega_i), and of |u_ic|; shape (n_classes, 3).

    ``u_ic = S_i`` in the rows of class c, ``-mu_ic`` elsewhere. Returns how many of the rows are wrong.
    """
    n = len(r)
    pieces = n_tiles(n)
    parts, n_wrong = np.empty((pieces, F.shape[0], 3)), np.empty(pieces, np.int64)
    parallel_for(work_queue, _pull_tile, pieces, (piece_length(n, TILE), starts, y, F, e, r, E, parts, n_wrong))
    sums[:] = 0.0
    for piece in range(pieces):
        sums += parts[piece]
    return int(n_wrong.sum())


@njit(cache=True, nogil=True)
def _round(e: NDArray[np.float64], r: NDArray[np.float64], scale: float, q: NDArray[Any]) -> int:
    """``q = e r scale`` as whole numbers; returns their sum."""
    total = 0
    for i in range(len(e)):
        whole = np.int64(np.rint(e[i] * r[i] * scale))
        q[i] = whole
        total += int(whole)
    return total


@njit(cache=True, nogil=True)
def _load_tile(
    piece: int,
    length: int,
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    scales: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[np.int64],
) -> None:
    begin, end = piece * length, min((piece + 1) * length, len(r))
    q = np.empty((LANES, end - begin), U.dtype)
    for block in range(U.shape[0]):
        first = block * LANES
        lanes = min(LANES, e.shape[0] - first)
        for lane in range(lanes):
            c = first + lane
            s, t = within(begin, end, starts, c)
            own = _round(E[s:t], r[s:t], scales[c], q[lane][s - begin : t - begin])
            before = _round(e[c][begin:s], r[begin:s], -scales[c], q[lane][: s - begin])
            totals[piece, c] = own + before + _round(e[c][t:end], r[t:end], -scales[c], q[lane][t - begin :])
        interleave(q[:lanes], begin, end - begin, U[block : block + 1])


@njit(cache=True, nogil=True)
def load(
    work_queue: NDArray[np.int64],
    starts: NDArray[np.int64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    scales: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[Any],
) -> None:
    """``u_ic scales[c]``, rounded, to lane c of U; ``totals`` become the lanes' sums."""
    n = len(r)
    pieces = n_tiles(n)
    parts = np.zeros((pieces, totals.size), np.int64)
    parallel_for(work_queue, _load_tile, pieces, (piece_length(n, TILE), starts, e, r, E, scales, U, parts))
    totals[:] = parts.sum(axis=0).reshape(totals.shape)


@njit(cache=True, nogil=True)
def survey(
    work_queue: NDArray[np.int64],
    starts: NDArray[np.int64],
    y: NDArray[np.int32],
    F: NDArray[np.float64],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
    top: float,
    masses: NDArray[np.float64],
    scales: NDArray[np.float64],
    slack: NDArray[np.float64],
    U: NDArray[Any],
    totals: NDArray[Any],
) -> tuple[float, float, int]:
    """Load U with numbers up to ``top``; returns the sums of mu and of mu log(mu / omega), and how many are wrong."""
    sums = np.empty((F.shape[0], 3))
    n_wrong = pull(work_queue, starts, y, F, e, r, E, sums)
    mass = entropy = 0.0
    for c in range(len(sums)):
        mass, entropy, masses[c] = mass + sums[c, 0], entropy + sums[c, 1], sums[c, 2]
    scale(masses, len(r), top, scales, slack)
    load(work_queue, starts, e, r, E, scales, U, totals)
    return mass, entropy, n_wrong
