"""The end game of Weston and Watkins's machine on few examples: Newton's steps on the dual variables that are free.

With alpha_ic in [0, C_i] for c != y_i, G = X X' and coefficients v_ic = -alpha_ic, v_iy = sum_c alpha_ic, the dual is
``sum alpha - 1/2 tr(V' G V)`` and its gradient g_ic = 1 - f_iy + f_ic with the scores f = G V. Where the free variables
are the right ones, one step on all of them ends at the optimum; block steps on one example after the other creep there
when rows are nearly dependent. A step that leaves the box is projected onto it, or cut at its border, whichever gains
more, and where none does the gradient's is taken (compare Bertsekas 1982): the dual never falls.
"""

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from solvers.numerics.array_types import Floats, Ints, Ints32

MOST_VARIABLES, MOST_FREE, MOST_STEPS, MOST_GRADIENTS = 2000, 400, 100, 10
ROUNDING = 1e-12
RIDGES, TINY = (1e-12, 1e-9, 1e-6, 1e-3), float(np.finfo(np.float64).tiny)


def ascend(G: Floats, y: Ints32, bounds: Floats, alpha: Floats, tol: float) -> Floats:
    """Dual variables with at least the dual value of the given ones; in the end those of a gap of ``tol``.

    Parameters
    ----------
    G : array, shape (n_samples, n_samples)
        Inner products of the examples.
    y : int32 array, shape (n_samples,)
        Class indices.
    bounds : array, shape (n_samples,)
        The largest value of an example's variables.
    alpha : array, shape (n_samples, n_classes)
        Feasible dual variables, zero at the own classes.
    tol : float
        Relative gap to stop at. More than ``MOST_FREE`` free variables, ``MOST_STEPS`` steps, or one that gains
        nothing, end it earlier.
    """
    # threads gain nothing on such sizes, wait for each other where processors are few, and would change bits
    with threadpool_limits(1, "blas"):
        return _ascend(G, y, bounds, alpha, tol)


def _ascend(G: Floats, y: Ints32, bounds: Floats, alpha: Floats, tol: float) -> Floats:
    at = np.arange(len(y))
    box = np.repeat(bounds[:, None], alpha.shape[1], axis=1)
    box[at, y] = 0.0
    gradients = 0
    for _ in range(MOST_STEPS):
        V = _coefficients(alpha, y)
        scores = G @ V
        g = 1.0 - scores[at, y][:, None] + scores
        half, losses = 0.5 * float((V * scores).sum()), float((box * np.maximum(g, 0.0)).sum())
        free = (box > 0.0) & ~((alpha <= 0.0) & (g <= 0.0)) & ~((alpha >= box) & (g >= 0.0))
        rows, classes = np.nonzero(free)
        solved = 2.0 * half + losses - float(alpha.sum()) <= tol * (half + losses)
        if solved or not 0 < len(rows) <= MOST_FREE:
            break
        newton = np.zeros_like(alpha)
        newton[rows, classes] = _newton(G, y, rows, classes, g[rows, classes])
        step, gain = _best_step(G, y, box, alpha, g, newton)
        if gain <= 0.0:
            # what the free variables cannot gain, those at their bounds may: one step along the gradient sets them free
            gradient = g / (2.0 * np.maximum(np.diag(G), TINY))[:, None]
            step, gain = _best_step(G, y, box, alpha, g, np.where(free, gradient, 0.0))
            gradients += 1
        if gain <= 0.0 or gradients > MOST_GRADIENTS:
            break
        alpha = np.clip(alpha + step, 0.0, box)
        # what rounding has left of a variable that has come to its bound would stay in the model's lists
        alpha[alpha <= ROUNDING * box] = 0.0
        alpha = np.where(alpha >= (1.0 - ROUNDING) * box, box, alpha)
    return alpha


def _coefficients(alpha: Floats, y: Ints32) -> Floats:
    """What the variables, or a change of them, make of the coefficients."""
    V = -alpha
    V[np.arange(len(y)), y] = alpha.sum(axis=1)
    return V


def _newton(G: Floats, y: Ints32, rows: Ints, classes: Ints, g: Floats) -> Floats:
    """The step to the optimum over the free variables alone, without their box; zero where rounding hides it."""
    own = y[rows]
    alike = (own[:, None] == own).astype(np.float64) + (classes[:, None] == classes)
    alike -= (own[:, None] == classes).astype(np.float64) + (classes[:, None] == own)
    return ridged_solution(G[np.ix_(rows, rows)] * alike, g)


def ridged_solution(Q: Floats, g: Floats) -> Floats:
    """``Q^-1 g`` with the least of some ridges that makes Q definite, in place; zero where none does."""
    trace = max(float(np.trace(Q)), TINY)
    for ridge in RIDGES:
        Q.flat[:: len(g) + 1] += ridge * trace
        factor, failed = lapack.dpotrf(Q)
        if not failed:
            return np.asarray(lapack.dpotrs(factor, g)[0]).ravel()
    return np.zeros_like(g)


def _best_step(G: Floats, y: Ints32, box: Floats, alpha: Floats, g: Floats, newton: Floats) -> tuple[Floats, float]:
    """The better of the step projected onto the box and of it as far as the border; and what it gains."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(newton > 0.0, (box - alpha) / newton, np.where(newton < 0.0, -alpha / newton, np.inf))
    cut = min(1.0, float(room.min())) * newton
    best, most = newton, 0.0
    for step in (np.clip(alpha + newton, 0.0, box) - alpha, cut):
        slope, change = float((g * step).sum()), _coefficients(step, y)
        curvature = float((change * (G @ change)).sum())
        length = 1.0 if curvature <= 0.0 else min(1.0, slope / curvature)
        gain = length * (slope - 0.5 * length * curvature)
        if slope > 0.0 and gain > most:
            best, most = length * step, gain
    return best, most
