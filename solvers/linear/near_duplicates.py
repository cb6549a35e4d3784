"""Joint steps on near-duplicates of different classes, for the machines that sum absolute losses.

Two examples next to each other whose classes differ ask for scores that exclude each other. Their dual variables have
to grow together, by ``1 / (1 - cos)``, or up to their bounds if they are equal, and steps on one after the other gain
next to nothing each. So the examples that have gained most in a pass are searched for groups of such rows, and all
variables of a group move together: Newton's steps on those that are free, projected onto the box or cut at its border,
whichever gains more (compare Bertsekas 1982). The dual never falls.

The notation is that of :mod:`solvers.linear.steps.absolute`: with the signs s and ``v_ic = s_ic alpha_ic - mean_c``, a
change d moves the dual by ``sum_ic g_ic d_ic - 1/2 tr(v' G v)``, with ``g_ic = m_ic - s_ic f_ic`` and the inner
products G of the group's rows.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from solvers.linear.active_set import ridged_solution
from solvers.linear.steps.absolute import Margins
from solvers.linear.visits import Task
from solvers.numerics.array_types import Array, Floats, Ints
from solvers.numerics.row_products import gram

# rows that are looked at, also as a part of all, the least cosine of two in a group, and its most rows and variables
MOST_ROWS, MOST_SHARE, LEAST_COSINE, LARGEST_GROUP, MOST_VARIABLES = 256, 1 / 16, 0.8, 8, 400
MOST_STEPS, LEAST_GAIN = 60, 1e-9


class Group(NamedTuple):
    """Inner products of a group's rows, and of each variable the sign of its constraint and its bound."""

    G: Floats
    signs: Floats
    box: Floats

    def weights(self, change: Floats) -> Floats:
        """The coefficients v of the rows that a change of the variables makes."""
        signed = self.signs * change
        return np.asarray(signed - signed.mean(axis=1)[:, None])

    def slope(self, change: Floats) -> Floats:
        """By how much a change lowers the gradient."""
        return np.asarray(self.signs * (self.G @ self.weights(change)))


def ascend(task: Task, margins: Margins, W: Array, alpha: Array, gains: Floats) -> float:
    """Move the groups among the examples of the largest gains; W and alpha change in place. Returns the dual's gain.

    Parameters
    ----------
    margins : Margins
        Of a machine that sums the losses of an example.
    gains : float array, shape (n_samples,)
        What the last visits of the examples have gained; zero of those that are left out.
    """
    most = min(LARGEST_GROUP, MOST_VARIABLES // task.n_classes)
    some = np.flatnonzero(gains > gains.sum() / max(1, np.count_nonzero(gains)))
    if most < 2 or len(some) < 2:
        return 0.0
    n = min(MOST_ROWS, int(MOST_SHARE * len(gains)))
    some = np.sort(some[np.argsort(-gains[some], kind="stable")[:n]])
    rows = task.rows
    X = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(len(task.y), len(W)))[some].astype(np.float64)
    G = gram(X)
    # threads gain nothing on such sizes, wait for each other where processors are few, and would change bits
    with threadpool_limits(1, "blas"):
        found = groups(G, task.y[some], most)
        return sum(_move(task, margins, W, alpha, some[group], X[group], G[np.ix_(group, group)]) for group in found)


def groups(G: Floats, y: Array, most: int) -> list[Ints]:
    """Places of rows that belong together, up to ``most`` each: the closest pairs of two classes are joined first."""
    lengths = np.sqrt(np.diag(G))
    cosines = np.triu(np.divide(G, lengths[:, None] * lengths), 1)
    cosines[y[:, None] == y] = 0.0
    first, second = np.nonzero(cosines > LEAST_COSINE)
    of = np.arange(len(y))
    for at in np.argsort(-cosines[first, second], kind="stable").tolist():
        a, b = of[first[at]], of[second[at]]
        if a != b and np.count_nonzero((of == a) | (of == b)) <= most:
            of[of == b] = a
    joined, sizes = np.unique(of, return_counts=True)
    return [np.flatnonzero(of == each) for each in joined[sizes > 1]]


def _move(task: Task, margins: Margins, W: Array, alpha: Array, rows: Ints, X: sp.csr_matrix, G: Floats) -> float:
    k = task.n_classes
    own = task.y[rows][:, None] == np.arange(k)
    box = np.where(own, margins.own_share, margins.other_share) * task.bounds[rows][:, None]
    group = Group(G, np.where(own, 1.0, -1.0), box)
    entries = [(X.indices[begin:end], X.data[begin:end]) for begin, end in pairwise(X.indptr.tolist())]
    scores = np.array([x @ W[features][:, :k] for features, x in entries], np.float64)
    before = alpha[rows].astype(np.float64)
    gradient = np.where(own, margins.own, margins.other) - group.signs * scores
    alpha[rows], gain = best_variables(group, before, gradient)
    change = group.weights(alpha[rows].astype(np.float64) - before)
    for (features, x), v in zip(entries, change, strict=True):
        moved = W[features]
        moved[:, :k] += np.outer(x, v).astype(W.dtype)
        W[features] = moved
    return gain


def best_variables(group: Group, alpha: Floats, gradient: Floats) -> tuple[Floats, float]:
    """Variables within the box with at least the dual value of the given ones, and what they gain."""
    gain = 0.0
    for _ in range(MOST_STEPS):
        free = (group.box > 0.0) & ~((alpha <= 0.0) & (gradient <= 0.0)) & ~((alpha >= group.box) & (gradient >= 0.0))
        if not free.any():
            break
        step, lowered, gained = _best_step(group, alpha, gradient, free)
        if gained <= LEAST_GAIN * gain:
            break
        alpha, gradient, gain = np.clip(alpha + step, 0.0, group.box), gradient - lowered, gain + gained
    return alpha, gain


def _best_step(group: Group, alpha: Floats, gradient: Floats, free: Array) -> tuple[Floats, Floats, float]:
    """The best of Newton's step, projected or cut, and the gradient's; what it lowers the gradient by; its gain."""
    rows, classes = np.nonzero(free)
    newton = np.zeros_like(alpha)
    newton[rows, classes] = _newton(group, rows, classes, gradient[rows, classes])
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(newton > 0.0, (group.box - alpha) / newton, np.where(newton < 0.0, -alpha / newton, np.inf))
    along = np.where(free, gradient / np.diag(group.G)[:, None], 0.0)
    cut = min(1.0, float(room.min())) * newton
    best, most = (np.zeros_like(alpha), np.zeros_like(alpha)), 0.0
    for step in (np.clip(alpha + newton, 0.0, group.box) - alpha, cut, np.clip(alpha + along, 0.0, group.box) - alpha):
        lowered = group.slope(step)
        slope, curvature = float((gradient * step).sum()), float((step * lowered).sum())
        length = 1.0 if curvature <= 0.0 else min(1.0, slope / curvature)
        gain = length * (slope - 0.5 * length * curvature)
        if slope > 0.0 and gain > most:
            best, most = (length * step, length * lowered), gain
    return *best, most


def _newton(group: Group, rows: Ints, classes: Ints, gradient: Floats) -> Floats:
    """The step to the optimum over the free variables alone, without their box; zero where rounding hides it."""
    k, signs = group.signs.shape[1], group.signs[rows, classes]
    Q = group.G[np.ix_(rows, rows)] * ((classes[:, None] == classes) - 1.0 / k) * (signs[:, None] * signs)
    return ridged_solution(Q, gradient)
