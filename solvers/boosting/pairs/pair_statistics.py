"""Statistics of all examples from the pairs' weights: class sums, gradients, and whole numbers for weak learners.

The weights are kept as :mod:`solvers.boosting.pairs.pair_weights` has them.
"""

import numpy as np
from numba import njit

from solvers.boosting.pairs.pair_weights import (
    SUMS,
    TILE,
    PairWeights,
    dot,
    multiply,
    n_tiles,
    piece_length,
    run_end,
    within,
)
from solvers.boosting.simd import LANES, interleave
from solvers.boosting.weak_learners.channels import ChannelArrays, choose_scales
from solvers.numerics.array_types import Array, Floats, Ints, Ints8, Ints32
from solvers.numerics.parallel_for import parallel_for


@njit(cache=True, nogil=True)
def gradients(responses: Ints8, classes: Ints32, mu: PairWeights, out: Floats) -> None:
    """out[j] = V_+ - V_- of variable j (Lin et al. 2012, equation 21); several of a class in a row are cheaper."""
    starts, e, r, E = mu.starts, mu.e, mu.r, mu.E
    u = np.empty(len(r))
    first = 0
    while first < len(classes):
        c, last = classes[first], run_end(classes, first)
        begin, end = starts[c], starts[c + 1]
        multiply(e[c], r, u)
        np.negative(u, u)
        multiply(E[begin:end], r[begin:end], u[begin:end])
        for j in range(first, last):
            out[j] = dot(responses[j], u)
        first = last


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _sum_other_rows(F: Floats, own: Floats, e: Floats, r: Floats, ahead: Floats) -> tuple[float, float]:
    """Sums of mu and of mu log(mu / omega) over rows of other classes; ``ahead`` grows to the class's lead."""
    total = entropy = 0.0
    for i in range(len(F)):
        mu, lead = e[i] * r[i], F[i] - own[i]
        total += mu
        entropy += mu * lead
        ahead[i] = max(ahead[i], lead)
    return total, entropy


@njit(cache=True, nogil=True)
def _sum_tile(piece: int, length: int, y: Ints32, F: Floats, mu: PairWeights, sums: Floats, n_wrong: Ints) -> None:
    e, r, E = mu.e, mu.r, mu.E
    begin, end = piece * length, min((piece + 1) * length, len(r))
    n = end - begin
    # of classes before the true one and of those behind it: one that is before it wins if it scores as much
    own, before, behind = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        own[i], before[i], behind[i] = F[y[begin + i], begin + i], -np.inf, -np.inf
    for c in range(F.shape[0]):
        f, g = F[c], e[c]
        s, t = within(begin, end, mu.starts, c)
        a, b = s - begin, t - begin
        m0, l0 = _sum_other_rows(f[begin:s], own[:a], g[begin:s], r[begin:s], behind[:a])
        m1, l1 = _sum_other_rows(f[t:end], own[b:], g[t:end], r[t:end], before[b:])
        sums[piece, c, 0], sums[piece, c, 1] = m0 + m1, l0 + l1
        sums[piece, c, 2] = m0 + m1 + dot(r[s:t], E[s:t])
    total = 0
    for i in range(n):
        total += int(before[i] >= 0.0 or behind[i] > 0.0)
    n_wrong[piece] = total


@njit(inline="always")
def _sum_classes(work_queue: Ints, y: Ints32, F: Floats, mu: PairWeights, sums: Floats) -> int:
    """Sums over the rows for all classes: of mu_ic, of mu_ic log(mu_ic / omega_i), and of |u_ic|; shape (n_classes, 3).

    ``u_ic = S_i`` in the rows of class c, ``-mu_ic`` elsewhere. Returns how many of the rows are wrong.
    """
    n = len(mu.r)
    pieces = n_tiles(n)
    parts, n_wrong = np.empty((pieces, F.shape[0], 3)), np.empty(pieces, np.int64)
    parallel_for(work_queue, _sum_tile, pieces, (piece_length(n, TILE), y, F, mu, parts, n_wrong))
    # element by element: sums of whole arrays take longer to compile
    for c in range(F.shape[0]):
        for k in range(3):
            sums[c, k] = 0.0
            for piece in range(pieces):
                sums[c, k] += parts[piece, c, k]
    wrong = 0
    for piece in range(pieces):
        wrong += n_wrong[piece]
    return wrong


@njit(cache=True, nogil=True)
def _round(e: Floats, r: Floats, scale: float, q: Array) -> int:
    """``q = e r scale`` as whole numbers; returns their sum."""
    total = 0
    for i in range(len(e)):
        whole = np.int64(np.rint(e[i] * r[i] * scale))
        q[i] = whole
        total += int(whole)
    return total


@njit(cache=True, nogil=True)
def _load_tile(piece: int, length: int, mu: PairWeights, scales: Floats, U: Array, totals: Ints) -> None:
    e, r, E = mu.e, mu.r, mu.E
    begin, end = piece * length, min((piece + 1) * length, len(r))
    q = np.empty((LANES, end - begin), U.dtype)
    for block in range(U.shape[0]):
        first = block * LANES
        lanes = min(LANES, e.shape[0] - first)
        for lane in range(lanes):
            c = first + lane
            s, t = within(begin, end, mu.starts, c)
            own = _round(E[s:t], r[s:t], scales[c], q[lane][s - begin : t - begin])
            before = _round(e[c][begin:s], r[begin:s], -scales[c], q[lane][: s - begin])
            totals[piece, c] = own + before + _round(e[c][t:end], r[t:end], -scales[c], q[lane][t - begin :])
        interleave(q[:lanes], begin, end - begin, U[block : block + 1])


@njit(inline="always")
def _load(work_queue: Ints, mu: PairWeights, scales: Floats, U: Array, totals: Array) -> None:
    """``u_ic scales[c]``, rounded, to lane c of U; ``totals`` become the lanes' sums."""
    n = len(mu.r)
    pieces = n_tiles(n)
    parts = np.zeros((pieces, totals.size), np.int64)
    parallel_for(work_queue, _load_tile, pieces, (piece_length(n, TILE), mu, scales, U, parts))
    # element by element: slices that arrays are assigned to take seconds to compile
    lanes = totals.shape[1]
    for k in range(totals.size):
        total = 0
        for piece in range(pieces):
            total += parts[piece, k]
        totals[k // lanes, k % lanes] = total


@njit(cache=True, nogil=True)
def measure(
    work_queue: Ints, y: Ints32, F: Floats, mu: PairWeights, channels: ChannelArrays, top: float
) -> tuple[float, float, int]:
    """Load the channels with numbers up to ``top``: the weights of Lin et al. 2012, equation 4.

    Returns the sums of mu and of mu log(mu / omega), and how many rows are wrong.
    """
    sums = np.empty((F.shape[0], 3))
    n_wrong = _sum_classes(work_queue, y, F, mu, sums)
    mass = entropy = 0.0
    for c in range(len(sums)):
        mass, entropy, channels.masses[c] = mass + sums[c, 0], entropy + sums[c, 1], sums[c, 2]
    choose_scales(channels.masses, len(mu.r), top, channels.scales, channels.slack)
    _load(work_queue, mu, channels.scales, channels.U, channels.totals)
    return mass, entropy, n_wrong
