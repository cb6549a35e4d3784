"""The scaling line search: the objective at many multiples of W, for the price of one look at the margins.

A hinge ``max(0, margin + s pull)`` is linear in s up to where it vanishes. So each is noted once, at the last point of
the grid where it is above zero, and the sums from the end of the grid down are the losses at its points, exactly.
"""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Floats

# the grid: multiples of 1 / ONE, up to LARGEST
ONE, LARGEST = 4096, 2
WORTH_SCALING = 1e-9


def blank(*parts: int) -> Floats:
    """No term noted, shape (2, points); or as many as ``parts`` say, one behind the other."""
    return np.zeros((*parts, 2, LARGEST * ONE + 1))


@njit(cache=True, nogil=True)
def note(margin: float, pull: float, top: float, terms: Floats) -> None:
    """Note the term ``top max(0, margin + s pull)``."""
    last = terms.shape[1] - 1
    if pull < 0.0:
        last = int(min(ONE * margin / -pull, float(last)))
    terms[0, last] += top * margin
    terms[1, last] += top * pull


@njit(cache=True, nogil=True)
def along(terms: Array) -> Floats:
    """The sum of all terms noted, at the points of the grid."""
    values = np.empty(terms.shape[1])
    at_zero, slope = 0.0, 0.0
    for t in range(terms.shape[1] - 1, -1, -1):
        at_zero += terms[0, t]
        slope += terms[1, t]
        values[t] = at_zero + t / ONE * slope
    return values


def best_point(half: float, loss: float, terms: Floats, least: int = 0) -> tuple[float, float]:
    """The objective at the best multiple of W, and that multiple.

    Parameters
    ----------
    half : float
        Half the squared norm of W.
    loss : float
        The losses at W itself.
    terms : float64 array, shape (2, points)
        With all terms noted that are above zero at some multiple from ``least / ONE`` on.
    least : int
        The first point of the grid to look at.
    """
    values = (np.arange(terms.shape[1]) / ONE) ** 2 * half + along(terms)
    best = least + int(values[least:].argmin())
    if values[best] < (half + loss) * (1.0 - WORTH_SCALING):
        return float(values[best]), best / ONE
    return half + loss, 1.0
