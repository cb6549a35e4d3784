"""What an example loses to each wrong class, ``mu_iq = omega_i exp(F_q(x_i) - F_y(x_i))``, as boosting keeps it.

This is mu of Lin et al. 2012, equation 15, times the weight of the example. It is a product ``e[q, i] r[i]``: a step on
class c changes row c of e and, where c is the true class, r; so it costs O(n), in contiguous loops. Rows are sorted by
their class: class c owns those from ``starts[c]`` to ``starts[c + 1]``, where e[c] means nothing. ``E[i]`` is the sum
of e[q, i] over the wrong classes q.

Sums may be reordered (``reassoc``), or LLVM would not vectorise them: fifteen times the speed, and still one result on
one machine, as the loops do not depend on the number of threads. These share out the rows, in pieces of a fixed length
(:mod:`solvers.numerics.parallel_for`). Functions that reorder sums are always inlined: a linker that finds several
copies of one, optimised differently, takes that which was loaded first.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats, Ints, Ints32
from solvers.numerics.parallel_for import MOST_PIECES, parallel_for

# rows of a piece of all classes at once, which then stay in the cache
TILE = 1024
SUMS = {"reassoc", "nsz", "contract"}
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
# adding this to a whole number of small size leaves it, plus the exponent's bias, in the lowest bits
SHIFTER = 6755399441055744.0 + 1023.0
FARTHEST = 700.0


class PairWeights(NamedTuple):
    """The factors of mu, which compiled loops change in place.

    Attributes
    ----------
    starts : int64 array, shape (n_classes + 1,)
        Where the rows of each class begin.
    e : float64 array, shape (n_classes, n)
    r, E : float64 arrays, shape (n,)
    since_sum, since_merge : float64 arrays, shape (n_classes,)
        How far steps have moved each class's scores since E was last added up, and since r was last merged into e.
    """

    starts: Ints
    e: Floats
    r: Floats
    E: Floats
    since_sum: Floats
    since_merge: Floats


@njit(cache=True, nogil=True)
def piece_length(n: int, least: int) -> int:
    """Rows of a piece, so that there are not too many pieces."""
    return max(least, -(-n // (MOST_PIECES - 1)))


@njit(cache=True, nogil=True)
def n_tiles(n: int) -> int:
    """How many pieces n rows of all classes are cut into."""
    return int(-(-n // piece_length(n, TILE)))


@njit(cache=True, nogil=True)
def restart(F: Floats, omega: Floats, y: Ints32, mu: PairWeights) -> None:
    """All factors afresh from the scores F (Lin et al. 2012, equation 15)."""
    e, r, E = mu.e, mu.r, mu.E
    for i in range(len(y)):
        total, own = 0.0, F[y[i], i]
        for q in range(F.shape[0]):
            if q != y[i]:
                e[q, i] = omega[i] * np.exp(F[q, i] - own)
                total += e[q, i]
        r[i] = 1.0
        E[i] = total
    mu.since_sum[:] = 0.0
    mu.since_merge[:] = 0.0


@njit(cache=True, nogil=True)
def add_up(mu: PairWeights) -> None:
    """E afresh from e."""
    mu.E[:] = 0.0
    for q in range(mu.e.shape[0]):
        s, t = mu.starts[q], mu.starts[q + 1]
        accumulate(mu.e[q][:s], mu.E[:s])
        accumulate(mu.e[q][t:], mu.E[t:])
    mu.since_sum[:] = 0.0


@njit(cache=True, nogil=True)
def merge(mu: PairWeights) -> None:
    """All of mu goes to e, so r becomes 1, and E is added up."""
    for q in range(mu.e.shape[0]):
        multiply(mu.e[q], mu.r, mu.e[q])
    mu.r[:] = 1.0
    mu.since_merge[:] = 0.0
    add_up(mu)


@njit(cache=True, nogil=True)
def accumulate(x: Floats, total: Floats) -> None:
    """total += x."""
    for i in range(len(x)):
        total[i] += x[i]


@njit(cache=True, nogil=True)
def within(begin: int, end: int, starts: Ints, c: int) -> tuple[int, int]:
    """The rows of class c among the rows [begin, end), which may be none."""
    return min(max(starts[c], begin), end), min(max(starts[c + 1], begin), end)


@njit(cache=True, nogil=True)
def run_end(classes: Ints32, first: int) -> int:
    """Where variables of another class than that of the first begin."""
    last = first + 1
    while last < len(classes) and classes[last] == classes[first]:
        last += 1
    return last


@njit(cache=True, nogil=True)
def multiply(e: Floats, r: Floats, u: Floats) -> None:
    for i in range(len(u)):
        u[i] = e[i] * r[i]


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def dot(x: Floats, y: Floats) -> float:
    """Sum of the products."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@njit(cache=True, nogil=True)
def mass(mu: PairWeights) -> float:
    """The sum of mu."""
    return float(dot(mu.r, mu.E))


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
def _advance(e: Floats, r: Floats, steps: Floats, own: Floats, share: float, E: Floats) -> None:
    for i in range(len(e)):
        mu = e[i] * r[i] * _exp(share * (steps[i] - own[i]))
        e[i] = mu
        E[i] += mu


@njit(cache=True, nogil=True)
def _advance_tile(
    piece: int, length: int, y: Ints32, steps: Floats, share: float, mu: PairWeights, sums: Floats
) -> None:
    e, r, E = mu.e, mu.r, mu.E
    begin, end = piece * length, min((piece + 1) * length, len(r))
    own = np.empty(end - begin)
    for i in range(begin, end):
        own[i - begin] = steps[y[i], i]
    E[begin:end] = 0.0
    for q in range(len(e)):
        s, t = within(begin, end, mu.starts, q)
        _advance(e[q][begin:s], r[begin:s], steps[q][begin:s], own[: s - begin], share, E[begin:s])
        _advance(e[q][t:end], r[t:end], steps[q][t:end], own[t - begin :], share, E[t:end])
    r[begin:end] = 1.0
    total = 0.0
    for i in range(begin, end):
        total += E[i]
    sums[piece] = total


@njit(cache=True, nogil=True)
def advance(work_queue: Ints, y: Ints32, steps: Floats, share: float, mu: PairWeights) -> float:
    """Let mu follow as the scores grow by ``share steps``; all goes to e, so r becomes 1. Returns the sum of mu."""
    n = len(mu.r)
    sums = np.empty(n_tiles(n))
    length = -(-n // len(sums))
    parallel_for(work_queue, _advance_tile, len(sums), (length, y, steps, share, mu, sums))
    mu.since_sum[:] = 0.0
    mu.since_merge[:] = 0.0
    total = 0.0
    for part in sums:
        total += part
    return total
