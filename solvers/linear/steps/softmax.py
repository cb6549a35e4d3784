"""Exact block steps of softmax regression: all dual variables of one example at once.

The dual variables of an example are a distribution p over the classes. With ``a = C |x|^2``, the scores f and the
present p', a step takes the p of largest ``C H(p) + C (p - p')' f - C^2 |x|^2 |p - p'|^2 / 2``, H the entropy: it
solves ``log p_c + a p_c = f_c + a p'_c - nu``, where nu is the one number for which p sums to 1 (Keerthi et al. 2008,
with the whole example as the block; Shalev-Shwartz and Zhang 2013, section 5).
"""

import math

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.rows import Rows, score

ROOT_STEPS, SUM_TOLERANCE = 60, 1e-12


@njit(cache=True, nogil=True)
def omega(x: float) -> float:
    """Wright's omega: the w > 0 with ``w + log w = x``, to the last digits, by steps of fourth order."""
    if x < -40.0:
        return math.exp(x)
    w = x if x > 1.0 else math.exp(x) / (1.0 + math.exp(x))
    for _ in range(3):
        residual = x - w - math.log(w)
        if abs(residual) <= 1e-15 * max(1.0, abs(x)):
            break
        near = (1.0 + w) * (1.0 + w + 2.0 * residual / 3.0)
        w *= 1.0 + residual / (1.0 + w) * (near - 0.5 * residual) / (near - residual)
    return w


@njit(cache=True, nogil=True)
def log_sum_exp(f: Array, n_classes: int) -> float:
    """The logarithm of the sum of ``exp(f_c)`` over the classes."""
    top = -np.inf
    for c in range(n_classes):
        top = max(top, np.float64(f[c]))
    total = 0.0
    for c in range(n_classes):
        total += math.exp(np.float64(f[c]) - top)
    return top + math.log(total)


@njit(cache=True, nogil=True)
def distribution(t: Floats, a: float, p: Floats) -> None:
    """p = the distribution with ``log p_c + a p_c = t_c - nu``, for a > 0.

    The logarithm of the sum of p falls with nu and is nearly linear in it, so Newton steps on it need few turns; they
    are kept between bounds: at ``nu = max t - a`` the largest p is 1, at the logarithm of the sum of ``exp t`` no p
    exceeds ``exp(t - nu)``, whose sum is 1.
    """
    k, log_a = t.shape[0], math.log(a)
    low, high = t.max() - a, log_sum_exp(t, k)
    nu = high - min(a, high - low) / k
    for _ in range(ROOT_STEPS):
        total, slope = 0.0, 0.0
        for c in range(k):
            w = omega(t[c] - nu + log_a)
            p[c] = w / a
            total += p[c]
            slope += p[c] / (1.0 + w)
        if abs(total - 1.0) <= SUM_TOLERANCE:
            break
        if total > 1.0:
            low = nu
        else:
            high = nu
        nu += math.log(total) * total / slope
        if not low < nu < high:
            nu = 0.5 * (low + high)
    total = p.sum()
    for c in range(k):
        p[c] /= total


@njit(cache=True, nogil=True)
def visit(rows: Rows, y: Ints32, bounds: Floats, order: Ints32, W: Array, P: Floats) -> tuple[float, float, float]:
    """Take the exact step of each example of ``order``; W (n_features, n_classes) and P (n_samples, n_classes) change.

    Returns the sums over the examples, each before its step, of their parts of the duality gap and of their losses,
    and the largest change of a dual variable.
    """
    k = P.shape[1]
    f = np.empty(W.shape[1], W.dtype)
    t, new, step = np.empty(k), np.empty(k), np.zeros(W.shape[1], W.dtype)
    gap, losses, largest = 0.0, 0.0, 0.0
    for i in order:
        p, C = P[i], bounds[i]
        score(rows, i, W, f)
        a, level = C * rows.squares[i], log_sum_exp(f, k)
        excess = level
        for c in range(k):
            t[c] = f[c] + a * p[c]
            if p[c] > 0.0:
                excess -= p[c] * (f[c] - math.log(p[c]))
        gap += C * max(0.0, excess)
        losses += C * (level - f[y[i]])
        distribution(t, a, new)
        for c in range(k):
            change = new[c] - p[c]
            largest = max(largest, abs(change))
            step[c], p[c] = -C * change, new[c]
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            row, x = W[rows.indices[e]], rows.data[e]
            for c in range(k):
                row[c] += x * step[c]
    return gap, losses, largest


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, y: Ints32, bounds: Floats, W: Array, P: Floats) -> None:
    """``w_c = sum_i C_i ([y_i = c] - p_ic) x_i``, afresh."""
    k = P.shape[1]
    W[:] = 0.0
    step = np.zeros(W.shape[1], W.dtype)
    for i in range(P.shape[0]):
        for c in range(k):
            step[c] = bounds[i] * ((1.0 if y[i] == c else 0.0) - P[i, c])
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            row, x = W[rows.indices[e]], rows.data[e]
            for c in range(k):
                row[c] += x * step[c]


@njit(cache=True, nogil=True)
def certify(rows: Rows, y: Ints32, bounds: Floats, W: Array, P: Floats, leads: Floats) -> tuple[float, float]:
    """The sums of the losses ``C_i (log sum_c exp f_c - f_y)`` at W, and of the entropies ``C_i H(p_i)``.

    By how much the score of each example's own class leads the best other one goes to ``leads``.
    """
    k = P.shape[1]
    f = np.empty(W.shape[1], W.dtype)
    losses, entropies = 0.0, 0.0
    for i in range(P.shape[0]):
        score(rows, i, W, f)
        losses += bounds[i] * (log_sum_exp(f, k) - f[y[i]])
        best = -np.inf
        for c in range(k):
            if c != y[i]:
                best = max(best, np.float64(f[c]))
            if P[i, c] > 0.0:
                entropies -= bounds[i] * P[i, c] * math.log(P[i, c])
        leads[i] = np.float64(f[y[i]]) - best
    return losses, entropies
