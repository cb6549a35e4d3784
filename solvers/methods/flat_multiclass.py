"""The multi-class machine of Crammer and Singer among the leaves of a label tree, which it leaves aside otherwise.

    minimise  1/2 sum_i |w_i|^2 + C sum_k max(0, 1 - w_{y_k} . x_k + max_{j != y_k} w_j . x_k)

Zhou et al. 2011, equation 12 (FLATMULT): the yardstick of methods that use the tree. Inner nodes that label examples
are classes beside the leaves, as nothing else could be said of those examples; prediction is the largest score of all
(equation 2). Without levels and couplings it is trained by the driver of ``crammer_singer``.
"""

import numpy as np

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.design import Design
from solvers.hierarchical.drivers.driver import Driver
from solvers.hierarchical.drivers.flat_driver import FlatDriver
from solvers.hierarchical.tree_machine import TreeMachine, TreeParams
from solvers.labels.taxonomy import Taxonomy
from solvers.linear.driver.params import AscentParams


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
