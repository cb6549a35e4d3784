"""What features bring to a score over learnt label trees: secants in place of slopes, from the empty row to the row.

Every step from a feature to a score has a multiplier, what it changes by what goes into it (the rescale rule of
Shrikumar et al. 2017), so that the parts add up to the score less that of the empty row. Those of
the squared hinge are quotients of differences; those of the logarithm of a mean of exponentials are quotients of
logarithmic means (Ang 2005), as a sum and its terms change by different factors.
"""

import numpy as np
from scipy.special import exprel, logsumexp

from solvers.numerics.array_types import Floats


def hinge_secants(margins: Floats, intercepts: Floats) -> Floats:
    """By how much ``-max(0, 1 - z)^2`` rises for each unit of z, from an intercept to a margin; none negative.

    Parameters
    ----------
    margins, intercepts : float64 arrays of the same shape
        z of the row, and of the empty row.
    """
    after, before = np.maximum(0.0, 1.0 - margins), np.maximum(0.0, 1.0 - intercepts)
    moved = margins - intercepts
    # 1 where both are short of the margin, and there the difference of two close numbers would say little
    share = np.divide(before - after, moved, out=np.ones_like(moved), where=moved != 0)
    share[(after > 0) & (before > 0)] = 1.0
    return np.asarray((before + after) * share)


def log_mean_exp(terms: Floats, floor: float) -> float:
    """``log(max(mean of exp(terms), exp(floor)))``."""
    return max(float(logsumexp(terms)) - float(np.log(len(terms))), floor)


def mean_secants(after: Floats, before: Floats, floor: float) -> Floats:
    """By how much :func:`log_mean_exp` rises for each unit of each term; none negative.

    Parameters
    ----------
    after, before : float64 arrays, shape (n_terms,)
        The terms of the row, and of the empty row.
    floor : float
        As for :func:`log_mean_exp`.

    Returns
    -------
    float64 array, shape (n_terms,)
        m with ``m @ (after - before)`` the difference of the two values.
    """
    to, origin = log_mean_exp(after, -np.inf), log_mean_exp(before, -np.inf)
    # the logarithmic mean of exp(a) and exp(b) is exp(b) exprel(a - b)
    shares = np.exp(before - origin) / len(after) * exprel(after - before) / exprel(to - origin)
    if min(to, origin) >= floor or to == origin:
        return np.asarray(shares)
    return np.asarray(shares * (max(to, floor) - max(origin, floor)) / (to - origin))
