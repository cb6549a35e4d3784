"""Interior point method for sums of hinge losses, each between an example and a class, to any accuracy and any C.

    minimise  1/2 sum_c |w_c|^2 + sum_ic B_ic max(0, m_ic - s_ic w_c' x_i)   subject to  sum_c w_c = 0, if asked for

With p_ic = xi_ic - m_ic + s_ic w_c' x_i >= 0, xi_ic >= 0 and their multipliers alpha_ic and beta_ic = B_ic - alpha_ic,
Newton's method leaves one system a class, ``G_c = I + X' D_c X`` with ``D_ic = 1 / (p / alpha + xi / beta)``, as for
one linear SVM in Ferris and Munson 2002, section 3; the constraint adds one, ``sum_c G_c^-1``. The steps are those of
Mehrotra 1992. An iteration costs O(k (n d^2 + d^3)): it is meant for some hundreds of features and any number of
examples, where ascent over single examples needs passes in proportion to C.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

Array = NDArray[np.float64]

CHUNK = 512
BACK_OFF = 0.995
PATIENCE = 12


class TooLargeError(ValueError):
    """The problem needs more memory than the method may use."""


@dataclass(frozen=True)
class Losses:
    """One hinge loss ``B_ic max(0, m_ic - s_ic f_c(x_i))`` for every example and class.

    Attributes
    ----------
    signs : int8 array, shape (n_samples, n_classes)
        s, each +1 or -1.
    margins : float64 array, shape (n_samples, n_classes)
        m, not negative.
    bounds : float64 array, shape (n_samples, n_classes)
        B, not negative; a loss whose bound is 0 is absent.
    """

    signs: NDArray[np.int8]
    margins: Array
    bounds: Array

    @classmethod
    def of_classes(
        cls, y: NDArray[np.int32], n_classes: int, costs: Array, own: tuple[float, float], rest: tuple[float, float]
    ) -> "Losses":
        """Losses that differ only between the true class of an example, with sign +1, and the rest, with -1.

        Parameters
        ----------
        y : int array, shape (n_samples,)
        n_classes : int
        costs : float64 array, shape (n_samples,)
            C times the weight of each example.
        own, rest : (margin, weight)
            Margin and weight of the loss of the true class and of all other classes; weight 0 leaves it out.
        """
        true = y[:, None] == np.arange(n_classes)
        bounds = costs[:, None] * np.where(true, own[1], rest[1])
        return cls(np.where(true, 1, -1).astype(np.int8), np.where(true, own[0], rest[0]).astype(np.float64), bounds)


@dataclass(frozen=True)
class Iterate:
    """Where the method stands after one iteration.

    Attributes
    ----------
    number : int
        Iterations done; 0 for the starting point.
    primal : float
        Objective at ``state["W"]``, the best point so far, which satisfies the constraint.
    dual : float
        The best lower bound so far, proved by dual variables inside their box.
    violation : float
        Largest step that the gradient would take a dual variable within its box, in units of the margin.
    stalled : bool
        Rounding leaves nothing to gain; no iterate follows.
    state : mapping of str to array
        ``W`` (n_features, n_classes), ``alpha`` (n_samples, n_classes), zero where a loss is absent, and what it takes
        to resume bit-identically; live, so copy or write them before the next iterate is asked for.
    """

    number: int
    primal: float
    dual: float
    violation: float
    stalled: bool
    state: Mapping[str, NDArray[Any]]


def estimate_bytes(n_samples: int, n_features: int, n_classes: int) -> int:
    """Peak memory of :func:`iterations` beside its input, in bytes, if X is dense."""
    n, d, k = n_samples, n_features, n_classes
    return 8 * (n * d + 11 * n * k + 2 * k * d * d + 6 * k * d + 3 * d * d + 2 * CHUNK * d)


def estimate_flops(n_samples: int, n_features: int, n_classes: int) -> int:
    """Floating point operations of one iteration if X is dense and every loss is there."""
    n, d, k = n_samples, n_features, n_classes
    return k * (n * d * d + d**3 + 8 * n * d + 100 * n)


def iterations(
    X: sp.csr_matrix,
    losses: Losses,
    *,
    zero_sum: bool,
    state: Mapping[str, NDArray[Any]] | None = None,
    limit_bytes: int = 4 << 30,
) -> Iterator[Iterate]:
    """Iterates from the starting point, or from the one after ``state``; they end only when the method stalls.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
    losses : Losses
    zero_sum : bool
        Constrain the weights of the classes to sum to zero.
    state : mapping of str to array, optional
        That of an earlier iterate of the same problem.
    limit_bytes : int
        Refuse problems that need more memory than this.

    Raises
    ------
    TooLargeError
        :func:`estimate_bytes` is above ``limit_bytes``.
    """
    n, d, k = *X.shape, losses.bounds.shape[1]
    needed = estimate_bytes(n, d, k)
    if needed > limit_bytes:
        raise TooLargeError(
            f"the interior point method needs {needed / 2**30:.1f} GiB for {n} examples, {d} features and {k} classes; "
            f"the limit is {limit_bytes / 2**30:.1f} GiB"
        )
    return _iterate(_Data(X, losses), losses, zero_sum, state)


def _iterate(
    data: "_Data", losses: Losses, zero_sum: bool, state: Mapping[str, NDArray[Any]] | None
) -> Iterator[Iterate]:
    spec = (losses.signs, losses.margins, losses.bounds)
    if state is None:
        point = _start(data, losses, zero_sum)
        W = np.zeros((data.d, losses.bounds.shape[1]))
        alpha, beta, slack, xi = point
    ...
