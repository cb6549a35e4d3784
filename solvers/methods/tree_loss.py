"""Hierarchical machine with incremental weights and the tree-induced loss, by slack rescaling.

    minimise  1/2 sum_i |u_i|^2 + C sum_k max(0, max_{j != y_k} Delta(y_k, j) (1 - w_{y_k} . x_k + w_j . x_k)),
    w_i = sum of u_a over the path to i

Zhou et al. 2011, section 5 (TREELOSS), after Cai and Hofmann 2004; Delta is half the length of the path between two
nodes. All other nodes are rivals, inner ones as well; prediction is the node with the largest score.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.hinges.ascent import weights_dtype
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels.coupling import diagonal


class TreeLoss(TreeMachine[TreeParams]):
    """Weights summed along paths, losses scaled by distance."""

    name = "tree_loss"
    title = "Hierarchical SVM with tree-induced loss"
    formula = (
        r"\tfrac12 \sum_i \|u_i\|^2 + C \sum_k \Big( \max_{j \ne y_k} \Delta(y_k, j) (1 - w_{y_k}^\top x_k + "
        r"w_j^\top x_k) \Big)_+, \quad w_i = \sum_{a \in \mathrm{path}(i)} u_a"
    )
    paper = "Cai and Hofmann 2004; Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        needed = super().bytes_needed(n_samples, n_features, n_classes)
        if not self.kernel_map.is_linear:
            return needed
        # outer steps hold three more arrays of the weights' size: solvers/hierarchical/hinges/acceleration.py
        return needed + 3 * weights_dtype(self.params.tol).itemsize * n_features * n_classes

    def design(self, problem: Problem) -> Design:
        tree = problem.tree
        own = diagonal(tree)
        K = np.zeros(len(tree.path_nodes))
        # sum of |w_i - w_parent(i)|^2, whose inverse has B of ones
        K[own] = 1.0 + np.diff(tree.first_child)[1:]
        K[own[tree.parent >= 0] - 1] = -1.0
        every = np.arange(tree.n_nodes, dtype=np.int32)
        return Design(tree, problem.nodes(), K, all_rival=True, candidates=every)
