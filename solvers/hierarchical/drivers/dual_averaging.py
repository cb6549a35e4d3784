"""Regularised dual averaging with bounds on the optimum: Zhou et al. 2011, Algorithm 1.

It minimises ``J(W) = Omega(W) + H(W)`` (equation 7) with subgradients alone (section 4.1), split as in section 4.3 into
a convex part and ``sigma / 2 |W|^2``, where sigma is the smallest eigenvalue of the comparison matrix of K. It is kept
as the reference of what the dual ascent computes; its gap closes like ``ln(t) / t`` at best (equation 10).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.core.base import State, Step, relative_gap
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.hinges.sums import add_subgradient
from solvers.labels import tree_factor
from solvers.labels.coupling import comparison, diagonal, smallest_eigenvalue
from solvers.numerics.array_types import Floats, Ints
from solvers.numerics.rows import arrange


class DualAveraging:
    """J over weights (n_used, n_nodes), its subgradients, and the algorithm on it.

    Parameters
    ----------
    design : Design
        With the bars.
    problem : Problem
        Prepared.
    C : float
    """

    def __init__(self, design: Design, problem: Problem, C: float) -> None:
        self.rows, self.features = arrange(problem.X, np.dtype(np.float64))
        self.tree, self.K, self.own = design.tree.arrays, design.K, diagonal(design.tree)
        self.hinges = design.hinges(C * problem.weights)
        self.unit = np.zeros(len(self.K))
        self.unit[self.own] = 1.0
        self.sigma = smallest_eigenvalue(design.tree, comparison(design.tree, self.K))
        self.shape = (len(self.features), design.tree.n_nodes)

    def objective(self, W: Floats) -> tuple[float, Floats]:
        """``J(W)`` and one of its subgradients (Theorem 4 and section 4.1), shape (n_used, n_nodes)."""
        products, G = np.empty(len(self.K)), np.zeros(self.shape)
        tree_factor.inner_products(self.tree, self.unit, W, products)
        terms = self.K * np.abs(products)
        terms[self.own] *= 0.5
        signed = self.K * np.sign(products)
        signed[self.own] = self.K[self.own]
        tree_factor.add_product(self.tree, signed, W, G)
        losses = add_subgradient(self.rows, self.tree, self.hinges, self.unit, W, G)
        return float(terms.sum()) + losses, G

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Algorithm 1, an iteration a step; nothing in it is random."""
        now = self._begin() if state is None else _Iterate.from_state(state)
        average, W, sigma = now.average, now.W, self.sigma
        J, G = self.objective(W)
        while now.epoch < max_epochs:
            now.epoch += 1
            # g = G - sigma W is a subgradient of the convex part, whose value is J - sigma / 2 |W|^2
            square, slope = float(np.vdot(W, W)), float(np.vdot(G, W))
            now.delta += (J + 0.5 * sigma * square - slope - now.delta) / now.epoch
            average += (G - sigma * W - average) / now.epoch
            # equation 11
            np.multiply(average, -1.0 / sigma, out=W)
            now.lower = max(now.lower, now.delta - 0.5 * sigma * float(np.vdot(W, W)))
            J, G = self.objective(W)
            if now.upper > J:
                now.upper = J
                now.best[:] = W
            now.lower = min(now.lower, now.upper)
            converged = relative_gap(now.upper, now.lower) <= tol
            yield Step(now.epoch, now.upper, now.lower, float("nan"), converged, now.state())
            if converged:
                return

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at another C: that of any training."""
        return self._begin().state()

    def nonzero_duals(self, state: State) -> float:
        """Unknown: there are no dual variables."""
        return float("nan")

    def weights(self, state: State) -> tuple[Ints, Floats]:
        """The features that some example has, and the best weights so far in that order, shape (n_used, n_nodes)."""
        return self.features, np.array(state["best"])

    def coefficients(self, state: State) -> Floats:
        raise NotImplementedError("dual averaging supports only the linear kernel")

    def _begin(self) -> "_Iterate":
        """Zero weights, whose value is the first upper bound."""
        average, W, best = (np.zeros(self.shape) for _ in range(3))
        return _Iterate(average, W, best, self.objective(W)[0])


@dataclass
class _Iterate:
    """What changes: the mean subgradient, the weights, the best ones, bounds, and delta as in step 4."""

    average: Floats
    W: Floats
    best: Floats
    upper: float
    lower: float = 0.0
    delta: float = 0.0
    epoch: int = 0

    @classmethod
    def from_state(cls, state: State) -> "_Iterate":
        average, W, best = (np.array(state[name]) for name in ("average", "W", "best"))
        upper, lower, delta = (float(state[name]) for name in ("upper", "lower", "delta"))
        return cls(average, W, best, upper, lower, delta, int(state["epoch"]))

    def state(self) -> State:
        return {name: np.asarray(value) for name, value in vars(self).items()}
