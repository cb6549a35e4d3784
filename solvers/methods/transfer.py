"""Hierarchical machine whose nodes are drawn towards their parents.

    minimise  1/2 sum_i (|w_i|^2 + sum_{j child of i} |w_i - w_j|^2)
              + C sum_k max(0, max_{i on the path to y_k, j sibling of i} 1 - w_i . x_k + w_j . x_k)

Zhou et al. 2011, section 5 (TRANSFER); prediction goes down the tree.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels.coupling import diagonal


class Transfer(TreeMachine[TreeParams]):
    """Weights of children close to those of their parent."""

    name = "transfer"
    title = "Hierarchical SVM with similarity-based transfer"
    formula = (
        r"\tfrac12 \sum_i \Big( \|w_i\|^2 + \sum_{j \in \mathrm{ch}(i)} \|w_i - w_j\|^2 \Big) + C \sum_k "
        r"\Big( \max_{i \in \mathrm{path}(y_k), j \in \mathrm{sib}(i)} 1 - w_i^\top x_k + w_j^\top x_k \Big)_+"
    )
    paper = "Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def design(self, problem: Problem) -> Design:
        tree = problem.tree
        own = diagonal(tree)
        K = np.zeros(len(tree.path_nodes))
        K[own] = 1.0 + np.diff(tree.first_child)[1:] + (tree.parent >= 0)
        K[own[tree.parent >= 0] - 1] = -1.0
        return Design(tree, problem.nodes(), K)
