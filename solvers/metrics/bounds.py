"""What the margin of a machine says about its error on data unseen: Crammer and Singer 2002, Corollaries 2 and 3.

Both hold with probability ``1 - delta`` for a machine M that separates the sample with margin 1 (their equation 47);
a machine that separates it with another margin is scaled first. ``log`` is the natural logarithm. On samples of usual
size the values lie far above 1 and so promise nothing; what they are good for is comparing machines.
"""

import numpy as np

from solvers.numerics.array_types import Floats, Ints32

DELTA = 0.05
_MOST = 1e200


def error_bound(n_samples: int, n_classes: int, square: float, radius: float, delta: float = DELTA) -> float:
    """Corollary 2: a bound on the probability of a wrong label.

    Parameters
    ----------
    n_samples, n_classes : int
        m and k.
    square : float
        ``|M|^2``, the sum of the squared norms of all rows, at margin 1; the rows sum to zero.
    radius : float
        R, of a ball around the origin that holds all examples.
    delta : float
        Probability with which the bound may fail.
    """
    pairs = n_classes * (n_classes - 1) // 2
    return _bound(n_samples, n_classes * square, radius, pairs, delta)


def class_error_bound(
    n_samples: int, n_classes: int, square: float, class_square: float, radius: float, delta: float = DELTA
) -> float:
    """Corollary 3: a bound on the probability of giving or withholding the label of one class wrongly.

    Parameters
    ----------
    n_samples, n_classes, square, radius, delta
        As in :func:`error_bound`; margin 1 is needed between this class and the others only.
    class_square : float
        ``|M_r|^2`` of the class.
    """
    return _bound(n_samples, n_classes * class_square + square, radius, n_classes - 1, delta)


def report(F: Floats, y: Ints32, squares: Floats, radius: float, n_support: int) -> dict[str, float]:
    """Figures from a machine's training scores: support, margins and, where it separates its sample, bounds.

    Parameters
    ----------
    F : float64 array, shape (n_samples, n_classes)
        Scores of the training examples.
    y : int32 array, shape (n_samples,)
    squares : float64 array, shape (n_classes,)
        ``|w_c|^2``; the w_c sum to zero.
    radius : float
        The largest length of a training example, in the space of the kernel.
    n_support : int

    Returns
    -------
    dict
        ``n_support``, ``support_share``, ``norm`` (of all w_c together), ``radius``, ``smallest_margin`` (of
        ``f_y - max f_c``; negative where an example is wrong) and ``classes_separated`` (from all other classes).
        Where all examples are right, ``error_bound`` (Corollary 2). Where some class is separated,
        ``class_error_bound_least`` and ``class_error_bound_most`` over those classes (Corollary 3).
    """
    support = {"n_support": float(n_support), "support_share": n_support / len(F)}
    return support | report_of_margins(class_margins(F, y), len(F), squares, radius)


def report_of_margins(margins: Floats, n_samples: int, squares: Floats, radius: float) -> dict[str, float]:
    """As :func:`report`, without the support, from the :func:`class_margins` of all examples."""
    n, k, square = n_samples, len(margins), float(squares.sum())
    # below, squares of margins vanish and bounds are beyond the range of floats
    separated = np.flatnonzero((margins > 0) & (square < _MOST * margins**2))
    found = {
        "norm": float(np.sqrt(max(square, 0.0))),
        "radius": radius,
        "smallest_margin": float(margins.min()),
        "classes_separated": float(len(separated)),
    }
    if len(separated) == k:
        found["error_bound"] = error_bound(n, k, square / float(margins.min()) ** 2, radius)
    if len(separated):
        each = [
            class_error_bound(n, k, square / margins[r] ** 2, float(squares[r]) / margins[r] ** 2, radius)
            for r in separated
        ]
        found["class_error_bound_least"], found["class_error_bound_most"] = min(each), max(each)
    return found


def class_margins(F: Floats, y: Ints32) -> Floats:
    """For every class r the least ``f_r - f_s`` over examples of r and ``f_s - f_r`` over those of any other s.

    Parameters
    ----------
    F : float64 array, shape (n_samples, n_classes)
        Scores of examples.
    y : int32 array, shape (n_samples,)

    Returns
    -------
    float64 array, shape (n_classes,)
        Of several parts of the examples the smaller margins are those of all; infinite for no example.
    """
    rows = np.arange(len(y))
    leads = F[rows, y][:, None] - F
    leads[rows, y] = np.inf
    margins = leads.min(axis=0)
    np.minimum.at(margins, y, leads.min(axis=1))
    return np.asarray(margins)


def _bound(n_samples: int, complexity: float, radius: float, nodes: int, delta: float) -> float:
    m = n_samples
    capacity = complexity * float(np.log(4 * np.e * m) * np.log(4 * m))
    # log(2 (2m)^nodes / delta), whose power would overflow
    choices = float(np.log(2) + nodes * np.log(2 * m) - np.log(delta))
    return 130 * radius**2 / m * (capacity + choices)
