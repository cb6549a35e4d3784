"""The log-linear pool of several models: probabilities in proportion to exp(sum over models of b_m s_m(x, c)).

The coefficients b, one a model and none negative, minimise the mean log loss on rows that the models have not seen.
That is a convex problem with as many variables as models: multinomial regression on scores (Genest and Zidek 1986,
section 3.3, for the pool). Of one model it is temperature scaling, T = 1 / b (Guo et al. 2017, section 4.2).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Floats, Floats32, Ints32

# a model joins a pool where that takes so much from the log loss; less is taken for no difference
WORTH = 0.002
NEWTON_STEPS = 50
# a class whose probability is less than exp(-NEGLIGIBLE) of the likeliest one's
NEGLIGIBLE = np.float32(18.0)
# members are chosen by the likeliest classes of so many rows; their coefficients are fitted on all classes of all rows
CHOICE_CLASSES, CHOICE_ENTRIES = 100, 1 << 21
# scores by which the one coefficient of a single model is fitted
TEMPERATURE_ENTRIES = 1 << 19
FEWEST_ROWS = 1000


class Pool(NamedTuple):
    """Which models are pooled, and how.

    Attributes
    ----------
    members : tuple of int
        Places of the models, the first to be chosen first.
    coefficients : float64 array, shape (n_members,)
    log_loss : float
        Mean over the rows that it was fitted on.
    """

    members: tuple[int, ...]
    coefficients: Floats
    log_loss: float


def choose_pool(scores: Sequence[Floats32], y: Ints32, most: int) -> Pool:
    """Begin with the model of the least log loss, and add the one that lowers it most as long as that is worth it.

    Parameters
    ----------
    scores : sequence of float32 arrays, each of shape (n_rows, n_classes)
        Of rows that the models were not trained on.
    y : int32 array, shape (n_rows,)
    most : int
        Members at most.
    """
    every, all_scores = y, scores
    rows = _some_rows(scores[0], CHOICE_ENTRIES)
    scores, y = likeliest([each[rows] for each in scores], y[rows], CHOICE_CLASSES)
    best: Pool | None = None
    while best is None or len(best.members) < min(most, len(scores)):
        chosen, start = ((), ()) if best is None else (best.members, best.coefficients)
        others = [other for other in range(len(scores)) if other not in chosen]
        found = [fit_pool(scores, y, (*chosen, other), start) for other in others]
        next_best = min(found, key=lambda pool: pool.log_loss)
        if best is not None and next_best.log_loss > (1.0 - WORTH) * best.log_loss:
            break
        best = next_best
    kept = best.coefficients > 0
    if not kept.any():
        return fit_pool(all_scores, every, best.members[:1])
    members = tuple(member for member, keep in zip(best.members, kept.tolist(), strict=True) if keep)
    return fit_pool(all_scores, every, members, best.coefficients[kept])


def likeliest(scores: Sequence[Floats32], y: Ints32, most: int) -> tuple[list[Floats32], Ints32]:
    """Of each row ``most`` classes, those of the largest mean score at unit variance, and its own.

    Returns
    -------
    scores : list of float32 arrays, each of shape (n_rows, most)
    y : int32 array, shape (n_rows,)
        The places of the rows' own classes.
    """
    n, k = scores[0].shape
    if k <= most:
        return list(scores), y
    mean = pooled(scores, np.array([1.0 / max(float(np.std(each)), 1e-12) for each in scores]))
    rows = np.arange(n)
    mean[rows, y] = np.inf
    near = np.argpartition(mean, k - most, axis=1)[:, k - most :]
    return [each[rows[:, None], near] for each in scores], (near == y[:, None]).argmax(axis=1).astype(np.int32)


def fit_pool(
    scores: Sequence[Floats32],
    y: Ints32,
    members: tuple[int, ...],
    start: Sequence[float] | Floats = (),
) -> Pool:
    """The coefficients of the least mean log loss, by Newton's method on those that are not at 0.

    ``start`` has those of the first members, to begin with; without it all members begin with the same share.
    """
    stack = tuple(scores[member] for member in members)
    if len(start):
        b = np.zeros(len(stack))
        b[: len(start)] = start
    else:
        b = np.array([1.0 / (len(stack) * max(float(np.std(each)), 1e-12)) for each in stack])
    value, gradient, hessian = _measure(stack, y, b)
    for _ in range(NEWTON_STEPS):
        free = (b > 0) | (gradient < 0)
        scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        if not free.any() or np.abs(gradient[free] / scale[free]).max() < 1e-5:
            break
        ridge = hessian[np.ix_(free, free)] + np.diag(1e-9 * np.diag(hessian)[free] + 1e-300)
        direction = np.zeros_like(b)
        direction[free] = -np.linalg.solve(ridge, gradient[free])
        step = 1.0
        while step > 1e-6:
            moved = np.maximum(b + step * direction, 0.0)
            trial = _measure(stack, y, moved)
            if trial[0] <= value + 1e-4 * float(gradient @ (moved - b)):
                break
            step *= 0.5
        else:
            break
        b, (value, gradient, hessian) = moved, trial
    return Pool(members, b, value)


def cautious(pool: Pool, scores: Sequence[Floats32], y: Ints32) -> Pool:
    """The least sure of the pools in proportion to one whose log losses are the same but for 0.2 %.

    Coefficients are fitted to the rows by which the members were chosen, and rows to come are seldom easier than these,
    so that the pool of the least loss is a little too sure of itself. The loss along ``t b`` is
    ``loss + (1 - t)^2 / 2 b' H b`` near its minimum, at t = 1.

    Parameters
    ----------
    pool : Pool
        As :func:`fit_pool` has fitted it to the scores and labels.
    scores, y
        As for :func:`fit_pool`.
    """
    stack, b = tuple(scores[member] for member in pool.members), pool.coefficients
    curvature = float(b @ _measure(stack, y, b)[2] @ b)
    if curvature <= 0.0:
        return pool
    b = b * max(0.5, 1.0 - np.sqrt(2.0 * WORTH * pool.log_loss / curvature))
    return Pool(pool.members, b, _measure(stack, y, b)[0])


def fit_temperature(scores: Floats32, y: Ints32) -> Pool:
    """As :func:`fit_pool` of one model, fitted on some of the rows where there are many, and measured on all."""
    rows = _some_rows(scores, TEMPERATURE_ENTRIES)
    b = fit_pool([scores[rows]], y[rows], (0,)).coefficients
    return Pool((0,), b, _measure((scores,), y, b)[0])


def _some_rows(scores: Floats32, most: int) -> slice:
    """Evenly spread rows of so many scores in all, and at least of FEWEST_ROWS: of few rows all may be right."""
    n, k = scores.shape
    return slice(None, None, -(-n // max(most // k, FEWEST_ROWS)))


def pooled(scores: Sequence[Array], coefficients: Floats) -> Floats32:
    """``sum_m b_m s_m``, float32, shape (n_rows, n_classes)."""
    total = np.zeros(scores[0].shape, np.float32)
    for each, b in zip(scores, coefficients.tolist(), strict=True):
        total += np.float32(b) * each.astype(np.float32, copy=False)
    return total


def log_softmax(scores: Floats32) -> Floats32:
    """Each row less the logarithm of the sum of its exponentials."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _measure(stack: tuple[Floats32, ...], y: Ints32, b: Floats) -> tuple[float, Floats, Floats]:
    """Mean log loss, its gradient and its Hessian, rows taken by chunks that stay in cache."""
    n, k, m = len(y), stack[0].shape[1], len(stack)
    y = np.ascontiguousarray(y)  # a second layout would be compiled a second time
    value, gradient, hessian = 0.0, np.zeros(m), np.zeros((m, m))
    rows = max(1, (1 << 18) // k)
    for begin in range(0, n, rows):
        part = np.stack([each[begin : begin + rows] for each in stack])
        value += _accumulate(part, y[begin : begin + rows], b, gradient, hessian)
    return value / n, gradient / n, hessian / n


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp"})
def _accumulate(part: Floats32, y: Ints32, b: Floats, gradient: Floats, hessian: Floats) -> float:
    """Sums over the rows of a chunk; classes of no mass to speak of are left out of the moments."""
    m, n, k = part.shape
    total, mass, found = np.empty(k, np.float32), np.empty(k, np.float32), np.empty(k, np.int32)
    near = np.empty((m, k), np.float32)
    value = 0.0
    for i in range(n):
        for c in range(k):
            total[c] = np.float32(b[0]) * part[0, i, c]
        for j in range(1, m):
            factor = np.float32(b[j])
            for c in range(k):
                total[c] += factor * part[j, i, c]
        top = total[0]
        for c in range(k):
            top = max(top, total[c])
        n_found = 0
        for c in range(k):
            if total[c] > top - NEGLIGIBLE:
                found[n_found] = c
                n_found += 1
        whole = 0.0
        for at in range(n_found):
            mass[at] = np.exp(total[found[at]] - top)
            whole += mass[at]
        value += np.log(whole) + np.float64(top) - np.float64(total[y[i]])
        for j in range(m):
            mean = 0.0
            for at in range(n_found):
                near[j, at] = part[j, i, found[at]]
                mean += mass[at] * near[j, at]
            mean /= whole
            gradient[j] += mean - part[j, i, y[i]]
            centre = np.float32(mean)
            for at in range(n_found):
                near[j, at] -= centre
        for j in range(m):
            for other in range(j + 1):
                square = 0.0
                for at in range(n_found):
                    square += mass[at] * near[j, at] * near[other, at]
                hessian[j, other] += square / whole
                if other != j:
                    hessian[other, j] += square / whole
    return value
