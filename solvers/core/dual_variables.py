"""What certificates and paths in C do with the dual variables of any machine."""

from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from solvers.core.problem import Problem


def best_multiple(linear: float, square: float, most: float) -> float:
    """The t in [0, most] with the largest ``t linear - t^2 square / 2``."""
    return min(linear / square, most) if square > 0 else most


def snapped_to_bounds(alpha: NDArray[Any], bounds: NDArray[Any]) -> NDArray[Any]:
    """Scaled dual variables in their boxes: what rounding keeps from its bound, or lifts above it, is at it exactly."""
    near = bounds * (1.0 - 16.0 * float(np.finfo(alpha.dtype).eps))
    return np.where(alpha >= near, bounds.astype(alpha.dtype), alpha)


def filled(problem: Problem) -> NDArray[np.bool_]:
    """Which examples have a feature that is not zero, shape (n_samples,); the variables of others change nothing."""
    return np.asarray(problem.X.multiply(problem.X).sum(axis=1)).ravel() > 0


def share(part: SupportsFloat, whole: SupportsFloat) -> float:
    """``part / whole``, 0 of nothing."""
    return float(part) / float(whole) if float(whole) > 0 else 0.0
