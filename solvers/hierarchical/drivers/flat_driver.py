"""The leaves of a label tree as the classes of a flat machine: trained as Crammer-Singer's, by its driver.

Where every node hangs below the root and nothing couples them, a machine over a label tree is the flat machine among
its nodes, whose block steps, inner passes and layouts are faster than those for paths.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.linear.driver.ascent import Ascent
from solvers.linear.driver.params import AscentParams
from solvers.linear.driver.run import duals_of
from solvers.linear.inner_passes import InnerPasses
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.layouts.layouts import order_of_classes
from solvers.linear.relative_margins import RelativeLoss
from solvers.numerics.array_types import Array, Floats, Ints
from solvers.numerics.coefficients import Coefficients


class FlatDriver:
    """Crammer-Singer's driver for a design without levels or couplings.

    Parameters
    ----------
    design : Design
        Of a tree in which all nodes are children of the root, K being all ones.
    problem : Problem
        Prepared; its rows are those that are trained on.
    params : AscentParams
    name : str
        Of the method, for messages.
    """

    def __init__(self, design: Design, problem: Problem, params: AscentParams, name: str) -> None:
        self.problem = replace(problem, y=design.labels, classes=design.tree.names, taxonomy=None)
        self.params, self.name = params, name

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Train, from the start or from the ``state`` of an earlier step."""
        params = self.params.model_copy(update={"tol": tol, "max_epochs": max_epochs})
        return self._ascent(params, seed).steps(self.problem, state)

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at ``ratio`` times the C that the state was trained at."""
        return self._ascent(self.params, 0).rescaled(self.problem, state, ratio)

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero."""
        named = np.maximum(state["dual_length"].astype(np.int64) - 1, 0).sum()
        return share(named, int(filled(self.problem).sum()) * (self.problem.n_classes - 1))

    def weights(self, state: State) -> tuple[Ints, Array]:
        """The features that have weights, and the weights of the classes in that order, shape (n_used, n_classes)."""
        layout, scale = self._ascent(self.params, 0).loss.layout(self.problem), float(state["scale"][0])
        if isinstance(layout, HybridLayout) and len(state["W"]) < len(layout.features):
            every = layout.csr(state, self.problem.n_features, order_of_classes(self.problem))
            return layout.features, np.asarray(every[layout.features].toarray()) * scale
        W = np.empty((len(layout.features), self.problem.n_classes))
        W[:, order_of_classes(self.problem)] = layout.by_feature(state["W"])
        return layout.features, W * scale

    def coefficients(self, state: State) -> Floats:
        """What each example adds to the weights of the classes, shape (n_samples, n_classes)."""
        pool, added = duals_of(Coefficients, state), np.zeros((self.problem.n_samples, self.problem.n_classes))
        row = np.repeat(np.arange(len(added)), pool.length)
        at = np.repeat(pool.start - np.cumsum(pool.length) + pool.length, pool.length) + np.arange(len(row))
        added[row, order_of_classes(self.problem)[pool.classes[at]]] = pool.values[at] * float(state["scale"][0])
        return added

    def _ascent(self, params: AscentParams, seed: int) -> Ascent:
        loss = RelativeLoss(largest=True, params=params, name=self.name)
        return Ascent(loss, params, seed, InnerPasses(largest=True, seed=seed))
