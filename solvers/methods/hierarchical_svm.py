"""A binary SVM at every node of a label tree, trained on the examples that have the node's parent.

    minimise  1/2 sum_j |w_j|^2 + C sum_j sum_{i with j's parent} loss(s_ij w_j . x_i),   s_ij as for ``node_svm``

"H-SVM" of Rousu et al. 2005, section 4. Prediction goes down the tree as long as scores are positive.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.node_machine import NodeMachine, NodeParams, signs, under_parents


class HierarchicalSVM(NodeMachine):
    """A binary SVM a node, among its parent's examples."""

    name = "hierarchical_svm"
    title = "Hierarchical SVM: a binary machine at every node, among the parent's examples"
    paper = "Rousu, Saunders, Szedmak and Shawe-Taylor 2005; Hsieh et al. 2008"
    Params = NodeParams
    handles = Handles(flat=False, tree=True, multilabel=True)

    def sides(self, problem: Problem) -> NDArray[np.int8]:
        return np.where(under_parents(problem), signs(problem), 0).astype(np.int8)
