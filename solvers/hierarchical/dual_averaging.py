"""Regularised dual averaging with bounds on the optimum: Zhou et al. 2011, Algorithm 1.

It minimises ``J(W) = Omega(W) + H(W)`` with subgradients alone (section 4.1), split as in section 4.3 into a convex
part and ``sigma / 2 |W|^2``, where sigma is the smallest eigenvalue of the comparison matrix of K. It is kept as the
reference of what the dual ascent computes; its gap closes like ``ln(t) / t`` at best.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.hierarchical import tree_ascent
from solvers.hierarchical.tree_ascent import Blocks, Tree
from solvers.labels import tree_factor
from solvers.labels.coupling import comparison, diagonal, smallest_eigenvalue
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.rows import Rows


class Objective:
    """J of weights (n_used, n_nodes), and its subgradients.

    Parameters
    ----------
    taxonomy : Taxonomy
    K : float64 array, shape (len(taxonomy.path_nodes),)
    rows : Rows
    blocks : Blocks
    """

    def __init__(self, taxonomy: Taxonomy, K: NDArray[np.float64], rows: Rows, blocks: Blocks, n_used: int) -> None:
        self.tree = Tree(
            taxonomy.parent, taxonomy.level, taxonomy.path_start, taxonomy.path_nodes, taxonomy.first_child
        )
        self.K, self.own = K, diagonal(taxonomy)
        self.rows, self.blocks = rows, blocks
        self.unit = np.zeros(len(K))
        self.unit[self.own] = 1.0
        self.sigma = smallest_eigenvalue(taxonomy, comparison(taxonomy, K))
        self.shape = (n_used, taxonomy.n_nodes)

    def at(self, W: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """``J(W)`` and one of its subgradients (Theorem 4 and section 4.1), shape (n_used, n_nodes)."""
        start, nodes = self.tree.start, self.tree.nodes
        products = np.empty(len(self.K))
        tree_factor.products(start, nodes, self.unit, W, products)
        terms = self.K * np.abs(products)
        terms[self.own] *= 0.5
        signed = self.K * np.sign(products)
        signed[self.own] = self.K[self.own]
        G = np.zeros(self.shape)
        tree_factor.add_product(start, nodes, signed, W, G)
        losses = tree_ascent.hinge(self.rows, self.blocks, self.tree, self.unit, W, G)
        return float(terms.sum()) + losses, G


def descend(objective: Objective, tol: float, max_epochs: int, state: State | None) -> Iterator[Step]:
    """Algorithm 1, an iteration a step; the state holds the best weights so far as ``best_W``."""
    now = start(objective) if state is None else {name: np.array(state[name]) for name in _NAMES}
    average, W, best_W, told = now["average"], now["W"], now["best_W"], now["told"]
    sigma = objective.sigma
    J, G = objective.at(W)
    while True:
        t, delta, upper, lower = int(told[0]) + 1, told[1], told[2], told[3]
        if t > max_epochs:
            return
        # g = G - sigma W is a subgradient of the convex part, whose value is J - sigma / 2 |W|^2
        square, slope = float(np.vdot(W, W)), float(np.vdot(G, W))
        delta += (J + 0.5 * sigma * square - slope - delta) / t
        average += (G - sigma * W - average) / t
        np.multiply(average, -1.0 / sigma, out=W)
        lower = max(lower, delta - 0.5 * sigma * float(np.vdot(W, W)))
        J, G = objective.at(W)
        if upper > J:
            upper = J
            best_W[:] = W
        lower = min(lower, upper)
        told[:] = t, delta, upper, lower
        converged = relative_gap(upper, lower) <= tol
        yield Step(t, upper, lower, float("nan"), converged, now)
        if converged:
            return


def start(objective: Objective) -> Mapping[str, NDArray[Any]]:
    """The state before the first iteration: zero weights, whose value is the first upper bound."""
    zeros = {name: np.zeros(objective.shape) for name in _NAMES[:-1]}
    return zeros | {"told": np.array([0.0, 0.0, objective.at(zeros["W"])[0], 0.0])}


_NAMES = ("average", "W", "best_W", "told")
