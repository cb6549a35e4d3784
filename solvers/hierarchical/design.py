"""What a method makes of a label tree: how nodes are coupled, and which rival which."""

from dataclasses import dataclass

import numpy as np

from solvers.hierarchical.hinges.rivals import Hinges
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Floats, Ints32


@dataclass(frozen=True)
class Design:
    """A method's machine for one problem.

    Attributes
    ----------
    tree : Taxonomy
        That is trained on.
    labels : int32 array, shape (n_samples,)
        The node of that tree for every example.
    K : float64 array
        The coupling along its paths.
    absolute : bool
        Whether the regulariser has the bars, as in Zhou et al. 2011, equation 5.
    each_level : bool
        Whether every level of an example has a loss of its own. K must be the identity then: one flat machine at every
        inner node.
    all_rival : bool
        Whether a label has all other nodes as rivals, scaled by their distance, in place of its path's siblings.
    candidates : int32 array, optional
        The nodes of the problem's tree among which the flat rule of prediction chooses; None takes the recursive rule.
    nodes : int32 array, optional
        Of which node of the problem's tree each node's weights are; None where the two trees are one.
    """

    tree: Taxonomy
    labels: Ints32
    K: Floats
    absolute: bool = False
    each_level: bool = False
    all_rival: bool = False
    candidates: Ints32 | None = None
    nodes: Ints32 | None = None

    def hinges(self, bounds: Floats) -> Hinges:
        """The hinges of examples with these bounds."""
        n, level = len(self.labels), self.tree.level[self.labels]
        if not self.each_level:
            row = np.arange(n, dtype=np.int32)
            return Hinges(row, self.labels, np.zeros(n, np.int32), bounds, self.all_rival)
        row = np.repeat(np.arange(n, dtype=np.int32), level)
        first = np.arange(len(row)) - np.repeat(np.cumsum(level) - level, level)
        node = self.tree.path_nodes[self.tree.path_start[self.labels[row]] + first]
        return Hinges(row, node, first.astype(np.int32), bounds[row], False)

    def n_rivals(self) -> Floats:
        """How many nodes a hinge of each node compares, the node and its ancestors among them; shape (n_nodes,)."""
        tree = self.tree
        if self.all_rival:
            return np.full(tree.n_nodes, float(tree.n_nodes))
        siblings = np.diff(tree.first_child)[tree.parent + 1].astype(np.float64)
        return np.asarray(np.add.reduceat(siblings[tree.path_nodes], tree.path_start[:-1]))

    def widened(self, W: Floats, n_nodes: int) -> Floats:
        """Weights (n_rows, n_nodes) of all nodes of the problem's tree from those of this one."""
        if self.nodes is None:
            return W
        wide = np.zeros((len(W), n_nodes))
        wide[:, self.nodes] = W
        return wide
