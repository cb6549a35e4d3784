"""A binary SVM at every node of a label tree, trained on all examples.

    minimise  1/2 sum_j |w_j|^2 + C sum_i sum_j loss(s_ij w_j . x_i),   s_ij = +1 where example i has node j, else -1

The flat rival of Rousu et al. 2005, section 4 ("SVM"). Prediction goes down the tree as long as scores are positive,
which is their breadth-first repair to a consistent labeling.
"""

from solvers.core.base import Handles, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.node_columns import NodeColumns, NodeParams, bytes_needed, signs
from solvers.hierarchical.set_machine import SetMachine, nodes_with_rows
from solvers.hierarchical.subtree_model import SubtreeModel


class NodeSVM(SetMachine[NodeParams]):
    """A binary SVM a node."""

    name = "node_svm"
    title = "Binary SVM at every node of a label tree"
    formula = r"\tfrac12 \sum_j \|w_j\|^2 + C \sum_i \sum_j \ell(s_{ij} w_j^\top x_i)"
    paper = "Rousu, Saunders, Szedmak and Shawe-Taylor 2005; Hsieh et al. 2008"
    Params = NodeParams
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True)

    def driver(self, problem: Problem) -> Driver:
        return NodeColumns(self, problem, signs(problem))

    def light_model(self, problem: Problem, state: State, share: float) -> Model:
        prepared = self.prepared(problem)
        W = None if not self.params.bias else NodeColumns(self, prepared, signs(prepared)).largest_weights(state, share)
        if W is None:
            return self.bare_model(problem, state)
        parts = SparseLinearModel(prepared.classes, W).with_last_as_intercept(self.params.bias)
        return SubtreeModel(prepared.tree, parts, self.rule, nodes_with_rows(prepared))

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return bytes_needed(self, n_samples, n_features, n_classes)
