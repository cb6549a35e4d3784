"""One multi-class machine at every inner node of a label tree, among its children.

    minimise  1/2 sum_i |w_i|^2
              + C sum_k sum_{i on the path to y_k} max(0, max_{j sibling of i} 1 - w_i . x_k + w_j . x_k)

Zhou et al. 2011, section 5 (HIERMULT), after Dumais and Chen 2000: each is that of Crammer and Singer, on the examples
whose path passes its node; prediction goes down the tree. An example labelled with an inner node says nothing about
what is below.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.tree_machine import Design, TreeMachine, TreeParams
from solvers.labels.coupling import diagonal


class HierarchicalMulticlass(TreeMachine[TreeParams]):
    """Independent machines at the inner nodes."""

    name = "hierarchical_multiclass"
    title = "Crammer-Singer SVM at every inner node"
    paper = "Dumais and Chen 2000; Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def design(self, problem: Problem) -> Design:
        assert problem.taxonomy is not None
        K = np.zeros(len(problem.taxonomy.path_nodes))
        K[diagonal(problem.taxonomy)] = 1.0
        return Design(problem.taxonomy, problem.nodes(), K, each_level=True)
