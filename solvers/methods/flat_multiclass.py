"""The multi-class machine of Crammer and Singer among the leaves of a label tree, which it leaves aside otherwise.

    minimise  1/2 sum_i |w_i|^2 + C sum_k max(0, 1 - w_{y_k} . x_k + max_{j != y_k} w_j . x_k)

Zhou et al. 2011, equation 12 (FLATMULT): the yardstick of methods that use the tree. Inner nodes that label examples
are classes beside the leaves, as nothing else could be said of those examples; prediction is the largest score of all
(equation 2). Without levels and couplings it is trained by the driver of ``crammer_singer``.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.core.base import Handles, State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels.taxonomy import Taxonomy
from solvers.linear.driver.ascent import Ascent
from solvers.linear.driver.params import AscentParams
from solvers.linear.driver.run import duals_of
from solvers.linear.inner_passes import InnerPasses
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.layouts.layouts import order_of_classes
from solvers.linear.relative_margins import RelativeLoss
from solvers.numerics.array_types import Array, Floats, Ints
from solvers.numerics.coefficients import Coefficients


class FlatMulticlass(TreeMachine[TreeParams]):
    """Leaves against leaves."""

    name = "flat_multiclass"
    title = "Crammer-Singer SVM among the leaves of a label tree"
    formula = r"\tfrac12 \sum_i \|w_i\|^2 + C \sum_k \Big( 1 - w_{y_k}^\top x_k + \max_{j \ne y_k} w_j^\top x_k \Big)_+"
    paper = "Crammer and Singer 2001; Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def design(self, problem: Problem) -> Design:
        tree, nodes = problem.tree, problem.nodes()
        candidates = np.union1d(tree.leaves, nodes).astype(np.int32)
        star = Taxonomy.flat([tree.names[i] for i in candidates.tolist()])
        labels = np.searchsorted(candidates, nodes).astype(np.int32)
        return Design(star, labels, np.ones(star.n_nodes), candidates=candidates, nodes=candidates)

    def driver(self, problem: Problem, design: Design) -> Driver:
        params = AscentParams(C=self.params.C, tol=self.params.tol, memory_mb=self.params.memory_mb)
        return FlatDriver(design, self.kernel_map.mapped(problem), params, self.name)


class FlatDriver:
    """Crammer-Singer's driver for a design without levels or couplings.

    Its block steps, inner passes and layouts are faster than those for paths.

    Parameters
    ----------
    design : Design
        Of a tree in which all nodes are children of the root, K being all ones.
    problem : Problem
        Prepared; its rows are those that are trained on.
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
