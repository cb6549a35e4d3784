"""The end game of the machines with relative margins where features are few: proximal steps on all dual variables.

The dual is ``max_{A in S} sum_{i, c != y_i} a_ic - 1/2 |W(A)|^2``, S a box or a simplex an example. A proximal step at
A0,

    maximise  D(A) - |A - A0|^2 / (2 sigma),

is the problem ``min_W 1/2 |W|^2 + sum_i max_{a in S_i} a' z_i(W) - |a - a0_i|^2 / (2 sigma)`` with the violations
``z_ic = 1 - f_y + f_c``, whose maximum is at the projection of ``a0_i + sigma z_i`` onto S_i. It is once differentiable
and piecewise quadratic, so that Newton's method with an exact search along each step ends at its optimum (Li, Sun and
Toh 2018, "A highly efficient semismooth Newton augmented Lagrangian method"). Its matrix is of the size features times
classes and takes only the variables that are within their bounds. As sigma grows, the steps converge faster than any
linear rate, where ascent on one example after the other creeps; the dual never falls.

With the largest violation, an example's slack is one more variable, in the place of its own class: then its variables
are those of a simplex of the size of its bound.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from solvers.numerics.array_types import Bools, Floats, Ints, Ints32

MOST_WEIGHTS, MOST_WORK = 500, 1 << 32
# arrays of all dual variables that are held at a time
ARRAYS = 10
MOST_STEPS, MOST_NEWTON_STEPS, MOST_IN_ALL = 40, 30, 200
FIRST, FACTOR = 10.0, 5.0
CHUNK = 4096
# a step is solved where the residual is below this part of how far it has moved
RESIDUAL = 0.05
MOST_SEARCHES, SEARCH_TOLERANCE = 12, 0.1


class _Task(NamedTuple):
    """X, the classes, the bounds, the number of classes, one row for each example; which loss."""

    X: Floats
    y: Ints32
    bounds: Floats
    n_classes: int
    largest: bool

    @property
    def at(self) -> Ints:
        return np.arange(len(self.y))


class _End(NamedTuple):
    """Where a proximal step ends: variables, weights, dual value, gap, Newton steps, and whether it is solved."""

    A: Floats
    W: Floats
    dual: float
    gap: float
    n_newton: int
    solved: bool


def suits(n_samples: int, n_features: int, n_classes: int, most_bytes: int) -> bool:
    """Whether there are few enough weights for the matrix, and few enough dual variables to keep them all."""
    size = n_features * n_classes
    held = 8 * (ARRAYS * n_samples * n_classes + 2 * size * size + CHUNK * size)
    return size <= MOST_WEIGHTS and n_samples * size * size <= MOST_WORK and held <= most_bytes


def ascend(X: Floats, y: Ints32, bounds: Floats, alpha: Floats, tol: float, *, largest: bool) -> tuple[Floats, Floats]:
    """Dual variables with at least the dual value of the given ones, and weights; in the end of a gap of ``tol``.

    The weights, shape (n_features, n_classes), are those at which Newton's method ended. Only at the optimum do the
    variables make the same; before it these have the far lower objective.

    Parameters
    ----------
    X : float64 array, shape (n_samples, n_features)
    y : int32 array, shape (n_samples,)
        Class indices.
    bounds : float64 array, shape (n_samples,)
        The largest value of an example's variables, or of their sum.
    alpha : float64 array, shape (n_samples, n_classes)
        Feasible dual variables, zero at the own classes.
    tol : float
        Relative gap to stop at. ``MOST_STEPS`` proximal steps, or ``MOST_IN_ALL`` of Newton's, end it earlier.
    largest : bool
        Whether the loss is the largest violation of an example, or their sum.
    """
    task = _Task(X, y, bounds, alpha.shape[1], largest)
    A = alpha.copy()
    if largest:
        A[task.at, y] = np.maximum(bounds - alpha.sum(axis=1), 0.0)
    # threads gain little on such sizes, wait for each other where processors are few, and would change bits
    with threadpool_limits(1, "blas"):
        A, W = _ascend(task, A, tol)
    A[task.at, y] = 0.0
    return A, W


def _ascend(task: _Task, A: Floats, tol: float) -> tuple[Floats, Floats]:
    sigma = FIRST * float(task.bounds.mean())
    W = _weights(task, A)
    value = _dual(task, A, W)
    n_newton = 0
    for _ in range(MOST_STEPS):
        end = _proximal_step(task, A, W, sigma, value, tol)
        n_newton += end.n_newton
        if end.dual > value:
            A, W, value = end.A, end.W, end.dual
        if end.gap <= tol or n_newton >= MOST_IN_ALL:
            break
        if end.solved and end.n_newton <= MOST_NEWTON_STEPS // 2:
            sigma *= FACTOR
        elif not end.solved:
            sigma /= FACTOR
    return A, W


def _proximal_step(task: _Task, A0: Floats, W: Floats, sigma: float, value: float, tol: float) -> _End:
    """A proximal step from A0, whose dual value is ``value``, by Newton's method from W."""
    Z = _violations(task, W)
    A, free = _project(task, A0 + sigma * Z)
    for n_newton in range(MOST_NEWTON_STEPS + 1):
        V = _weights(task, A)
        residual, dual, primal = W - V, _dual(task, A, V), _primal(task, W, Z)
        gap = (primal - dual) / primal
        square = float((residual**2).sum())
        solved = dual >= value and square <= RESIDUAL * float(((A - A0) ** 2).sum()) / sigma
        if solved or n_newton == MOST_NEWTON_STEPS or (gap <= tol and dual > value):
            break
        step = _newton(task, free, sigma, residual)
        change = _violations(task, step)
        change -= 1.0
        change[task.at, task.y] = 0.0
        length, A, free = _search(task, A0, sigma, Z, change, A, free, W, step)
        W, Z = W + length * step, Z + length * change
    return _End(A, W, dual, gap, n_newton, solved)


def _search(
    task: _Task, A0: Floats, sigma: float, Z: Floats, change: Floats, A: Floats, free: Bools, W: Floats, step: Floats
) -> tuple[float, Floats, Bools]:
    """The length of a step, at most 1, at which the slope vanishes, or nearly; and the variables there.

    Where an example's variables are at the same bounds at both ends of the step, they are there between them, too.
    """
    end, end_free = _project(task, A0 + sigma * (Z + change))
    rows = np.flatnonzero(free.any(axis=1) | end_free.any(axis=1) | (end != A).any(axis=1))
    some = task._replace(X=task.X[rows], y=task.y[rows], bounds=task.bounds[rows])
    some_0, some_Z, some_change = A0[rows], Z[rows], change[rows]
    fixed = float((W * step).sum()) + float((end * change).sum()) - float((end[rows] * some_change).sum())
    square = float((step**2).sum())

    def at(length: float) -> tuple[Floats, Bools, float]:
        found, within = _project(some, some_0 + sigma * (some_Z + length * some_change))
        return found, within, fixed + length * square + float((found * some_change).sum())

    low, low_slope = 0.0, fixed + float((A[rows] * some_change).sum())
    first = low_slope
    high, (found, within, high_slope) = 1.0, at(1.0)
    length, slope = high, high_slope
    for _ in range(MOST_SEARCHES):
        if slope <= SEARCH_TOLERANCE * abs(first):
            if slope >= -SEARCH_TOLERANCE * abs(first) or length == 1.0:
                break
            low, low_slope = length, slope
        else:
            high, high_slope = length, slope
        # the slope rises and is piecewise linear: between its chord's root and the middle
        share = low_slope / (low_slope - high_slope) if high_slope > low_slope else 0.5
        length = low + (high - low) * min(max(share, 0.1), 0.9)
        found, within, slope = at(length)
    end[rows], end_free[rows] = found, within
    return length, end, end_free


def _project(task: _Task, U: Floats) -> tuple[Floats, Bools]:
    """The nearest feasible variables, and which of them move with U.

    Those of an example that has one such variable alone, in a simplex, do not.
    """
    if not task.largest:
        top = task.bounds[:, None]
        A, free = np.clip(U, 0.0, top), (U > 0.0) & (top > U)
        A[task.at, task.y], free[task.at, task.y] = 0.0, False
        return A, free
    highest, top = U.max(axis=1), task.bounds
    near = (highest - top)[:, None] < U
    many = np.flatnonzero(near.sum(axis=1) > 1)
    A, free = np.where(near, top[:, None], 0.0), np.zeros(U.shape, bool)
    if len(many):
        of_many = U[many]
        falling = -np.sort(-of_many, axis=1)
        excess = np.cumsum(falling, axis=1) - top[many, None]
        count = np.maximum((falling * np.arange(1, U.shape[1] + 1) > excess).sum(axis=1), 1)
        root = excess[np.arange(len(many)), count - 1] / count
        A[many] = np.maximum(of_many - root[:, None], 0.0)
        free[many] = (A[many] > 0.0) & (count > 1)[:, None]
    return A, free


def _newton(task: _Task, free: Bools, sigma: float, residual: Floats) -> Floats:
    """Newton's step from the residual, both of shape (n_features, n_classes)."""
    H = _curvature_of_largest(task, free) if task.largest else _curvature_of_sum(task, free)
    H *= sigma
    H.flat[:: len(H) + 1] += 1.0
    _, step, _ = lapack.dposv(H, -residual.T.reshape(-1, 1), lower=1, overwrite_a=1)
    return np.asarray(step).reshape(residual.T.shape).T


def _curvature_of_largest(task: _Task, free: Bools) -> Floats:
    """``sum_i (I_F - 1_F 1_F' / |F|) (x) x x'``, F the free variables of an example; class by class."""
    rows = np.flatnonzero(free.any(axis=1))
    X, F = task.X[rows], free[rows]
    d, k = X.shape[1], task.n_classes
    H, scales = np.zeros((k * d, k * d)), 1.0 / np.sqrt(F.sum(axis=1))
    for begin in range(0, len(rows), CHUNK):
        some = slice(begin, begin + CHUNK)
        R = ((F[some] * scales[some, None])[:, :, None] * X[some, None, :]).reshape(-1, k * d)
        H -= R.T @ R
    for c in range(k):
        own, block = X[F[:, c]], slice(c * d, (c + 1) * d)
        H[block, block] += own.T @ own
    return H


def _curvature_of_sum(task: _Task, free: Bools) -> Floats:
    """``sum_i sum_{c in F} (e_c - e_y) (e_c - e_y)' (x) x x'``; class by class."""
    d, k = task.X.shape[1], task.n_classes
    rows = np.flatnonzero(free.any(axis=1))
    X, F, y = task.X[rows], free[rows].astype(np.float64), task.y[rows]
    H, each = np.zeros((k, d, k, d)), np.arange(k)
    for own in range(k):
        mine = y == own
        if not mine.any():
            continue
        parts = (X[mine].T @ (F[mine][:, :, None] * X[mine][:, None, :]).reshape(-1, k * d)).reshape(d, k, d)
        H[own] -= parts
        H[:, :, own] -= parts.transpose(1, 2, 0)
        H[own, :, own] += parts.sum(axis=1)
        H[each, :, each] += parts.transpose(1, 0, 2)
    return H.reshape(k * d, k * d)


def _violations(task: _Task, W: Floats) -> Floats:
    """``1 - f_y + f_c`` of all examples and classes; 0 of the own one."""
    F = task.X @ W
    F += (1.0 - F[task.at, task.y])[:, None]
    F[task.at, task.y] = 0.0
    return F


def _weights(task: _Task, A: Floats) -> Floats:
    """What the variables make of the weights, shape (n_features, n_classes)."""
    V = -A
    V[task.at, task.y] = task.bounds - A[task.at, task.y] if task.largest else A.sum(axis=1)
    return task.X.T @ V


def _dual(task: _Task, A: Floats, W: Floats) -> float:
    linear = A.sum() - (A[task.at, task.y].sum() if task.largest else 0.0)
    return float(linear - 0.5 * (W**2).sum())


def _primal(task: _Task, W: Floats, Z: Floats) -> float:
    Z = np.maximum(Z, 0.0)
    return float(0.5 * (W**2).sum() + task.bounds @ (Z.max(axis=1) if task.largest else Z.sum(axis=1)))
