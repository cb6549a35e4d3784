"""The multi-class machine of Crammer and Singer among the leaves of a label tree, which it leaves aside otherwise.

    minimise  1/2 sum_i |w_i|^2 + C sum_k max(0, 1 - w_{y_k} . x_k + max_{j != y_k} w_j . x_k)

Zhou et al. 2011, section 5 (FLATMULT): the yardstick of methods that use the tree. Inner nodes that label examples are
classes beside the leaves, as nothing else could be said of those examples; prediction is the largest score of all.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import Handles
from solvers.core.problem import Problem
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.hierarchical.tree_machine import Design, TreeMachine, TreeParams
from solvers.labels.taxonomy import Taxonomy


class FlatMulticlass(TreeMachine[TreeParams]):
    """Leaves against leaves."""

    name = "flat_multiclass"
    title = "Crammer-Singer SVM among the leaves of a label tree"
    paper = "Crammer and Singer 2001; Zhou et al. 2011"
    Params = TreeParams
    handles = Handles(flat=False, tree=True, kernels=True)

    def design(self, problem: Problem) -> Design:
        tree = problem.taxonomy
        assert tree is not None
        nodes = problem.nodes()
        candidates = _candidates(tree, nodes)
        star = Taxonomy.flat([tree.names[i] for i in candidates.tolist()])
        return Design(star, np.searchsorted(candidates, nodes).astype(np.int32), np.ones(star.n_nodes))

    def shown(
        self, problem: Problem, design: Design, features: NDArray[np.int64], W: NDArray[np.float64]
    ) -> TaxonomyModel:
        tree = problem.taxonomy
        assert tree is not None
        candidates = _candidates(tree, problem.nodes())
        wide = np.zeros((len(W), tree.n_nodes))
        wide[:, candidates] = W
        ascending = np.argsort(features)
        return TaxonomyModel(tree, problem.n_features, features[ascending], wide[ascending], candidates=candidates)


def _candidates(tree: Taxonomy, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Leaves and whatever labels an example, ascending."""
    return np.union1d(tree.leaves, nodes).astype(np.int32)
