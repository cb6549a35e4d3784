"""A binary SVM at every node of a label tree, trained on the examples that have the node's parent.

    minimise  1/2 sum_j |w_j|^2 + C sum_j sum_{i with j's parent} loss(s_ij w_j . x_i),   s_ij as for ``node_svm``

"H-SVM" of Rousu et al. 2005, section 4. Prediction goes down the tree as long as scores are positive.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.node_columns import NodeColumns, NodeParams, bytes_needed, signs, under_parents
from solvers.hierarchical.set_machine import SetMachine


class HierarchicalSVM(SetMachine[NodeParams]):
    """A binary SVM a node, among its parent's examples."""

    name = "hierarchical_svm"
    title = "Hierarchical SVM: a binary machine at every node, among the parent's examples"
    formula = r"\tfrac12 \sum_j \|w_j\|^2 + C \sum_j \sum_{i \in \mathrm{parent}(j)} \ell(s_{ij} w_j^\top x_i)"
    paper = "Rousu, Saunders, Szedmak and Shawe-Taylor 2005; Hsieh et al. 2008"
    Params = NodeParams
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True)

    def driver(self, problem: Problem) -> Driver:
        return NodeColumns(self, problem, np.where(under_parents(problem), signs(problem), 0).astype(np.int8))

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return bytes_needed(self, n_samples, n_features, n_classes)
