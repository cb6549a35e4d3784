"""One multi-class machine at every inner node of a label tree, among its children.

    minimise  1/2 sum_i |w_i|^2
              + C sum_k sum_{i on the path to y_k} max(0, max_{j sibling of i} 1 - w_i . x_k + w_j . x_k)

Zhou et al. 2011, section 5 (HIERMULT), equation 12 at every inner node, after Dumais and Chen 2000: each machine is
that of Crammer and Singer, on the examples whose path passes its node; prediction goes down the tree. An example
labelled with an inner node says nothing about what is below.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels.coupling import diagonal


class HierarchicalMulticlass(TreeMachine[TreeParams]):
    """Independent machines at the inner nodes."""

    name = "hierarchical_multiclass"
    title = "Crammer-Singer SVM at every inner node"
    formula = (
        r"\tfrac12 \sum_i \|w_i\|^2 + C \sum_k \sum_{i \in \mathrm{path}(y_k)} \Big( \max_{j \in "
        r"\mathrm{sib}(i)} 1 - w_i^\top x_k + w_j^\top x_k \Big)_+"
    )
    paper = "Dumais and Chen 2000; Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def design(self, problem: Problem) -> Design:
        tree = problem.tree
        K = np.zeros(len(tree.path_nodes))
        K[diagonal(tree)] = 1.0
        return Design(tree, problem.nodes(), K, each_level=True)
