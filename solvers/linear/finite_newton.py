"""Newton's method on the primal of binary machines with squared hinge loss, for few features.

    minimise  1/2 |w|^2 + sum_i c_i max(0, 1 - s_i w' x_i)^2      for every column of signs s

The objective is quadratic wherever the set of active examples (s_i w' x_i < 1) stays the same, so a full step from the
right set ends at the optimum (Mangasarian 2002; Keerthi and DeCoste 2005). Steps are cut by an exact line search. The
dual variables 2 c_i max(0, 1 - s_i w' x_i), scaled, certify every iterate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve

from solvers.core.base import State
from solvers.numerics.array_types import Array, Floats

SLICE_PRODUCTS = 2e10
CONVERGED = 1e-12


@dataclass(frozen=True)
class Iterate:
    """The state of the iteration; bounds and violation are nan within an iteration.

    ``violation`` is the largest entry of the gradient.
    """

    number: int
    primal: float
    dual: float
    violation: float
    converged: bool
    state: State


def estimate_bytes(n: int, d: int, columns: int) -> int:
    """Bytes for dense rows, a copy of the active ones, scores and signs."""
    return 8 * (2 * n * d + 4 * n * columns + 2 * d * d)


def iterations(X: Floats, signs: Array, costs: Floats, state: State | None) -> Iterator[Iterate]:
    """Iterate until every column is at its optimum, or rounding leaves no way on.

    Parameters
    ----------
    X : float64 array, shape (n, d)
    signs : array of -1, 0, +1, shape (n, columns)
        0 leaves an example out of a column.
    costs : float64 array, shape (n,)
        Positive.
    state : mapping, optional
        ``W`` (columns, d), ``converged`` (columns,), ``counters`` (iteration, column), of an earlier iterate.
    """
    n, d = X.shape
    columns = signs.shape[1]
    if state is None:
        W, converged, (number, column) = np.zeros((columns, d)), np.zeros(columns, np.bool_), (0, columns)
    else:
        W, converged, (number, column) = np.array(state["W"]), np.array(state["converged"]), map(int, state["counters"])
    each = max(1, int(SLICE_PRODUCTS // max(1, n * d * d)))
    while column < columns or not converged.all():
        if column == columns:
            number, column = number + 1, 0
        stop = min(column + each, columns)
        for c in np.flatnonzero(~converged[column:stop]) + column:
            W[c], converged[c] = _step(X, signs[:, c].astype(np.float64), costs, W[c])
        column = stop
        now = {"W": W, "converged": converged, "counters": np.array([number, column])}
        bounds = certificate(X, signs, costs, W) if column == columns else (np.nan, np.nan, np.nan)
        yield Iterate(number, *bounds, bool(converged.all()) and column == columns, now)


def certificate(X: Floats, signs: Array, costs: Floats, W: Floats) -> tuple[float, float, float]:
    """Primal value, a lower bound of the optimum, and the largest entry of the gradient, over all columns."""
    primal, dual, violation = _bounds(X, signs, costs, W)
    return float(primal.sum()), float(dual.sum()), violation


def column_bounds(X: Floats, signs: Array, costs: Floats, W: Floats) -> tuple[Floats, Floats]:
    """The primal value of each column and the lower bound of its optimum, each of shape (columns,)."""
    primal, dual, _ = _bounds(X, signs, costs, W)
    return primal, dual


def _bounds(X: Floats, signs: Array, costs: Floats, W: Floats) -> tuple[Floats, Floats, float]:
    """Of each column the primal value and the lower bound; the largest entry of the gradient of all."""
    slack = np.maximum(0.0, 1.0 - signs * (X @ W.T)) * (signs != 0)
    alpha = 2.0 * costs[:, None] * slack
    V = (signs * alpha).T @ X
    linear = alpha.sum(axis=0)
    square = (V**2).sum(axis=1) + (alpha * slack).sum(axis=0)
    best = np.divide(linear, square, out=np.zeros_like(linear), where=square > 0)
    primal = 0.5 * (W**2).sum(axis=1) + 0.5 * (alpha * slack).sum(axis=0)
    dual = best * linear - 0.5 * best**2 * square
    return primal, dual, float(np.abs(W - V).max(initial=0.0))


def _step(X: Floats, s: Floats, costs: Floats, w: Floats) -> tuple[Floats, bool]:
    """One Newton step of a column with an exact line search, and whether it has ended at the optimum."""
    f = X @ w
    active = (s * f < 1.0) & (s != 0.0)
    Z = X[active] * np.sqrt(2.0 * costs[active])[:, None]
    H = Z.T @ Z
    H.flat[:: len(w) + 1] += 1.0
    slope = Z.T @ (np.sqrt(2.0 * costs[active]) * s[active])
    try:
        direction = cho_solve(cho_factor(H, lower=True, overwrite_a=True, check_finite=False), slope) - w
    except np.linalg.LinAlgError:
        return w, True
    if not direction.any():
        return w, True
    length = _length(f, X @ direction, s, costs, float(w @ direction), float(direction @ direction))
    new = w + length * direction
    same = length == 1.0 and np.array_equal(active, (s * (X @ new) < 1.0) & (s != 0.0))
    return new, bool(same or np.abs(length * direction).max(initial=0.0) <= CONVERGED * np.abs(new).max(initial=0.0))


@njit(cache=True, nogil=True)
def _length(f: Floats, g: Floats, s: Floats, costs: Floats, along: float, square: float) -> float:
    """The t where the objective at w + t direction is least; f and g are the scores of w and of the direction.

    Its derivative rises piecewise linearly: Newton's method, kept inside a bracket, ends at the root of a piece.
    """
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(100):
        value, rise = along + t * square, square
        for i in range(f.shape[0]):
            slack = 1.0 - s[i] * (f[i] + t * g[i])
            if slack > 0.0 and s[i] != 0.0:
                value -= 2.0 * costs[i] * slack * s[i] * g[i]
                rise += 2.0 * costs[i] * g[i] * g[i]
        if value > 0.0:
            high = t
        else:
            low = t
        new = t - value / rise
        if abs(new - t) <= 1e-13 * t:
            return 1.0 if abs(new - 1.0) <= 1e-9 else new
        if not (low < new < high):
            new = 0.5 * (low + high) if high < np.inf else 2.0 * t
        t = new
    return t
