"""What an example loses to each wrong class, ``mu_iq = omega_i exp(F_q(x_i) - F_y(x_i))``, as boosting keeps it.

It is a product ``e[q, i] r[i]``: a step on class c changes row c of e and, where c is the true class, r; so it costs
O(n), in contiguous loops. Rows are sorted by their class: class c owns those from ``starts[c]`` to ``starts[c + 1]``,
where e[c] means nothing. ``E[i]`` is the sum of e[q, i] over the wrong classes q.

Sums may be reordered (``reassoc``), or LLVM would not vectorise them: fifteen times the speed, and still one result on
one machine, as the loops do not depend on the number of threads. These share out the rows, in pieces of a fixed length
(:mod:`solvers.numerics.parallel_for`). Functions that reorder sums are always inlined: a linker that finds several
copies of one, optimised differently, takes that which was loaded first.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.parallel_for import MOST_PIECES

# rows of a piece of all classes at once, which then stay in the cache
TILE = 1024
SUMS = {"reassoc", "nsz", "contract"}


@njit(cache=True, nogil=True)
def piece_length(n: int, least: int) -> int:
    """Rows of a piece, so that there are not too many pieces."""
    return max(least, -(-n // (MOST_PIECES - 1)))


@njit(cache=True, nogil=True)
def n_tiles(n: int) -> int:
    """How many pieces n rows of all classes are cut into."""
    return int(-(-n // piece_length(n, TILE)))


@njit(cache=True, nogil=True)
def restart(
    F: NDArray[np.float64],
    omega: NDArray[np.float64],
    y: NDArray[np.int32],
    e: NDArray[np.float64],
    r: NDArray[np.float64],
    E: NDArray[np.float64],
) -> None:
    """e, r and E afresh from the scores F."""
    for i in range(len(y)):
        total, own = 0.0, F[y[i], i]
        for q in range(F.shape[0]):
            if q != y[i]:
                e[q, i] = omega[i] * np.exp(F[q, i] - own)
                total += e[q, i]
        r[i] = 1.0
        E[i] = total


@njit(cache=True, nogil=True)
def add_up(starts: NDArray[np.int64], e: NDArray[np.float64], E: NDArray[np.float64]) -> None:
    """E afresh from e."""
    E[:] = 0.0
    for q in range(e.shape[0]):
        s, t = starts[q], starts[q + 1]
        _accumulate(e[q][:s], E[:s])
        _accumulate(e[q][t:], E[t:])


@njit(cache=True, nogil=True)
def _accumulate(x: NDArray[np.float64], total: NDArray[np.float64]) -> None:
    for i in range(len(x)):
        total[i] += x[i]


@njit(cache=True, nogil=True)
def within(begin: int, end: int, starts: NDArray[np.int64], c: int) -> tuple[int, int]:
    """The rows of class c among the rows [begin, end), which may be none."""
    return min(max(starts[c], begin), end), min(max(starts[c + 1], begin), end)


@njit(cache=True, nogil=True)
def run_end(classes: NDArray[np.int32], first: int) -> int:
    """Where variables of another class than that of the first begin."""
    last = first + 1
    while last < len(classes) and classes[last] == classes[first]:
        last += 1
    return last


@njit(cache=True, nogil=True)
def multiply(e: NDArray[np.float64], r: NDArray[np.float64], u: NDArray[np.float64]) -> None:
    for i in range(len(u)):
        u[i] = e[i] * r[i]
