"""The algorithm of Rousu et al. 2005, as published: conditional gradient ascent in the subspaces of single examples.

    maximise  sum_i l_i' mu_i - 1/2 |sum_i (|mu_i| phi(y_i) - mu_i) x_i'|^2

over marginals mu_i (n_nodes, 2, 2) of labelings with mass |mu_i| <= C for each example (equation 7). A chunk of
examples is drawn in proportion to their parts of the duality gap (section 3.2), and each takes a few conditional
gradient steps (Algorithm 2), whose best feasible point is C times the most violating labeling, found by dynamic
programming in place of their linear programs. A reference for small problems: it holds the kernel of all examples.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.core.problem import Problem
from solvers.labels.taxonomy import Weighting

CHUNK, STEPS = 0.25, 3

Floats = NDArray[np.float64]


class ConditionalGradient:
    """Their Algorithm 1 on a problem of sets of labels.

    Parameters
    ----------
    problem : Problem
        With sets of labels and a label tree; weights of examples are left out.
    C : float
    scaling : {"uniform", "sibling", "subtree"}
    hierarchical : bool
        Whether a wrong node counts only under a right parent.

    Attributes
    ----------
    primal, dual, gap : float
        After the last chunk: objective, lower bound, and their relative distance.
    """

    def __init__(self, problem: Problem, C: float, scaling: Weighting, *, hierarchical: bool) -> None:
        self._tree, self._X, self._C = problem.tree, problem.X, C
        self._Y = np.asarray(problem.label_sets().toarray(), bool)
        self._parent = self._tree.parent.astype(np.int64)
        self._own = _ways(self._parent, self._Y)
        self._losses = _losses(self._parent, self._Y, self._tree.loss_weights(scaling), hierarchical)
        self._K = np.asarray((self._X @ self._X.T).toarray())
        n, n_nodes = self._Y.shape
        self._mu, self._V = np.zeros((n, n_nodes, 2, 2)), np.zeros((n, 4 * n_nodes))
        self._rng = np.random.default_rng(0)
        self._certify()

    def chunk(self) -> None:
        """Draw a chunk by the examples' parts of the gap, ascend, and measure."""
        n = len(self._Y)
        shares = self._parts - self._parts.min() + 1e-12
        drawn = self._rng.choice(n, max(1, int(CHUNK * n)), p=shares / shares.sum())
        examples, times = np.unique(drawn, return_counts=True)
        order = self._rng.permutation(len(examples))
        limits = STEPS * times[order]
        _pass(self._parent, self._K, self._own, self._losses, self._C, examples[order], limits, self._mu, self._V)
        self._certify()

    def error(self, X: sp.csr_matrix, labels: sp.csr_matrix) -> float:
        """The share of rows whose best closed set is not theirs."""
        scores = np.asarray((X @ self._X.T) @ self._V).reshape(X.shape[0], -1, 2, 2).copy()
        scores[:, :, 0, 1] = -np.inf
        best, _ = _best(self._parent, scores)
        return float((best != np.asarray(labels.toarray(), bool)).any(axis=1).mean())

    def _certify(self) -> None:
        S = self._K @ self._V
        scores, n = S.reshape(self._mu.shape), len(self._Y)
        _, worst = _best(self._parent, self._losses + scores)
        slacks = np.maximum(worst - (self._own * scores).reshape(n, -1).sum(axis=1), 0.0)
        half = 0.5 * float((S * self._V).sum())
        linear = (self._losses * self._mu).reshape(n, -1).sum(axis=1)
        self.primal, self.dual = half + self._C * float(slacks.sum()), float(linear.sum()) - half
        self.gap = (self.primal - self.dual) / self.primal
        # C xi_i less the inner product of mu_i with its gradient
        self._parts = self._C * slacks - linear + (S * self._V).sum(axis=1)


def _ways(parent: NDArray[np.int64], Y: NDArray[np.bool_]) -> Floats:
    """Which of the four ways each edge is labelled, shape (n, n_nodes, 2, 2); the root is on."""
    above = np.where(parent < 0, True, Y[:, np.maximum(parent, 0)])
    ways = np.zeros((*Y.shape, 2, 2))
    rows, nodes = np.indices(Y.shape)
    ways[rows, nodes, above.astype(int), Y.astype(int)] = 1.0
    return ways


def _losses(parent: NDArray[np.int64], Y: NDArray[np.bool_], c: Floats, hierarchical: bool) -> Floats:
    """The loss of each way to label each edge, shape (n, n_nodes, 2, 2); a node's loss is on the edge to its parent."""
    above = np.where(parent < 0, True, Y[:, np.maximum(parent, 0)])
    found = np.zeros((*Y.shape, 2, 2))
    for p in (0, 1):
        for u in (0, 1):
            found[:, :, p, u] = c * ((u != Y) & (True if not hierarchical else p == above))
    return found


@njit(cache=True, nogil=True)
def _best_one(parent: NDArray[np.int64], gains: Floats, below: Floats, labels: NDArray[np.bool_]) -> float:
    """The labeling with the largest sum of gains (n_nodes, 2, 2) into labels; its value. below is room."""
    n_nodes, total = len(parent), 0.0
    below[:] = 0.0
    for j in range(n_nodes - 1, -1, -1):
        for p in range(2):
            value = max(gains[j, p, 0] + below[j, 0], gains[j, p, 1] + below[j, 1])
            if parent[j] >= 0:
                below[parent[j], p] += value
            elif p == 1:
                total += value
    for j in range(n_nodes):
        p = 1 if parent[j] < 0 or labels[parent[j]] else 0
        labels[j] = gains[j, p, 1] + below[j, 1] > gains[j, p, 0] + below[j, 0]
    return total


@njit(cache=True, nogil=True)
def _best(parent: NDArray[np.int64], gains: Floats) -> Any:
    """Of every row the best labeling and its value."""
    n, n_nodes = gains.shape[:2]
    labels, values, below = np.zeros((n, n_nodes), np.bool_), np.empty(n), np.empty((n_nodes, 2))
    for i in range(n):
        values[i] = _best_one(parent, gains[i], below, labels[i])
    return labels, values


@njit(cache=True, nogil=True)
def _pass(
    parent: NDArray[np.int64],
    K: Floats,
    own: Floats,
    losses: Floats,
    C: float,
    examples: NDArray[np.int64],
    limits: NDArray[np.int64],
    mu: Floats,
    V: Floats,
) -> None:
    """Algorithm 2 on every example of the chunk; mu and V, the rows ``|mu_i| phi(y_i) - mu_i``, change in place."""
    n_nodes = len(parent)
    below, labels, step = np.empty((n_nodes, 2)), np.zeros(n_nodes, np.bool_), np.empty((n_nodes, 2, 2))
    for at in range(len(examples)):
        i = examples[at]
        s = np.dot(K[i], V).reshape(n_nodes, 2, 2)
        for _ in range(limits[at]):
            worst, right = _best_one(parent, losses[i] + s, below, labels), (own[i] * s).sum()
            # no mass at all is feasible, too
            top = C if worst > right else 0.0
            for j in range(n_nodes):
                p = 1 if parent[j] < 0 or labels[parent[j]] else 0
                for a in range(2):
                    for b in range(2):
                        here = top if a == p and b == (1 if labels[j] else 0) else 0.0
                        step[j, a, b] = here - mu[i, j, a, b]
            moved = step[0].sum()
            change = moved * own[i] - step
            slope = ((losses[i] + s) * step).sum() - moved * right
            curvature = K[i, i] * (change * change).sum()
            if slope <= 0.0:
                break
            c = 1.0 if curvature <= slope else slope / curvature
            mu[i] += c * step
            V[i] += c * change.reshape(-1)
            s += c * K[i, i] * change
