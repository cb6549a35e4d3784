"""The weights of a constant feature as multipliers, which follow the dual variables from afar.

All examples share the biases b, so that a step of one example moves the margins of all others, and the dual variables
can only trade small amounts, one example after the other. With beta the value of the feature, and s the coefficients
of the dual variables summed over the examples, the dual's term ``-1/2 |beta s|^2`` is replaced by the augmented
Lagrangian of ``max_u -1/2 |u|^2`` under ``u = beta s`` (Bertsekas 1982, "Constrained Optimization and Lagrange
Multiplier Methods", chapter 2), of penalty sigma,

    max_u -1/2 |u|^2 + b' (u - beta s) - sigma/2 |u - beta s|^2,   at  u = b + tau (beta s - b),

with ``tau = sigma / (1 + sigma)``. Its gradient is that of the dual at the biases u, and it curves along s tau times as
much. So the compiled loops take a feature of the value ``sqrt(tau) beta``, whose weights are ``u / sqrt(tau)``. The
multipliers' step ``b := u``, one an epoch and of one-vs-rest one a pass, takes u by the share tau of the way to
``beta s``; to the primal that is a proximal point step on the biases (section 5.4 there). At the optimum
``u = beta s``; before it a certificate's primal is that of the biases u, and its dual that of ``beta s``, so that both
bounds are true.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.numerics.array_types import Floats

# of the mean squared length of the rows, how much the feature adds to the curvature of a step
PART = 0.1


class Constant(NamedTuple):
    """Which feature of a layout is held back, beta, and tau."""

    place: int
    value: float
    share: float

    @property
    def root(self) -> float:
        """What the value of the feature is multiplied by, and its weights are divided by."""
        return float(np.sqrt(self.share))


def share_of(X: sp.csr_matrix, value: float, bounds: Floats, n_classes: int) -> float:
    """The share tau of a constant feature, the last one of X; 1 where it is best left as it is.

    Its square times beta's is a tenth of the rows' mean squared length, but so large that the examples of a class of
    mean size, all at their ``bounds``, shift a score by 1 at once.
    """
    if value == 0.0:
        return 1.0
    square = float(X.data @ X.data) / X.shape[0] - value**2
    wanted = max(PART * square, n_classes / float(bounds.sum()))
    return min(1.0, wanted / value**2)


def held_back(X: sp.csr_matrix, share: float) -> sp.csr_matrix:
    """X with its last feature, which is the last entry of each row, times the root of its share."""
    data = X.data.copy()
    data[X.indptr[1:] - 1] *= np.sqrt(share)
    return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
