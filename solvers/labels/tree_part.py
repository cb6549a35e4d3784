"""A part of a label tree: some nodes, each with all above it, as a tree of their own, and where the others hang."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array, Ints, Ints32


@dataclass(frozen=True, eq=False)
class TreePart:
    """Some nodes of a label tree, closed upwards.

    Attributes
    ----------
    nodes : int32 array, shape (n_nodes_of_part,)
        Their numbers in the whole tree, ascending; with a node its parents.
    """

    whole: Taxonomy
    nodes: Ints32

    @classmethod
    def of_sets(cls, tree: Taxonomy, labels: sp.csr_matrix) -> "TreePart":
        """The nodes that some row has.

        In a graph also nodes that no row has but that hang below several of these, none of which is above the others,
        and what is above them: so each of the other nodes hangs below one.

        Parameters
        ----------
        labels : csr_matrix of bool, shape (n_samples, n_nodes)
            Closed upwards.
        """
        nodes = np.unique(labels.indices[labels.data]).astype(np.int32)
        while not tree.is_tree:
            several = _nearest(tree, nodes)[1]
            if not several:
                break
            nodes = tree.closure(np.array([0, len(nodes) + len(several)]), np.r_[nodes, several].astype(np.int32))[1]
        return cls(tree, nodes)

    @property
    def is_whole(self) -> bool:
        """Whether no node is left out."""
        return len(self.nodes) == self.whole.n_nodes

    @cached_property
    def tree(self) -> Taxonomy:
        """The part as a tree; its nodes are in the order of the whole one."""
        if self.is_whole:
            return self.whole
        whole, places = self.whole, self._places
        names = tuple(whole.names[node] for node in self.nodes.tolist())
        others = whole.others[places[whole.others[:, 0]] >= 0]
        return Taxonomy(names, places[whole.parent[self.nodes]], places[others])

    @cached_property
    def n_hanging(self) -> Ints:
        """How many of the other nodes have no nearer node of the part above them, shape (n_nodes_of_part + 1,).

        First those that have none but the root, then those below each node of the part.
        """
        if not self.whole.is_tree:
            others = np.flatnonzero(self._places[:-1] < 0)
            nearest = self._places[_nearest(self.whole, self.nodes)[0]]
            return np.bincount(nearest[others] + 1, minlength=len(self.nodes) + 1).astype(np.int64)
        nearest = self._places.copy()
        for level in range(1, self.whole.depth + 1):
            there = self.whole.level_range(level)
            nodes = np.arange(there.start, there.stop)
            others = nodes[self._places[nodes] < 0]
            # the root's number is -1, and so its place is the last
            nearest[others] = nearest[self.whole.parent[others]]
        others = np.flatnonzero(self._places[:-1] < 0)
        return np.bincount(nearest[others] + 1, minlength=len(self.nodes) + 1).astype(np.int64)

    def spread(self, values: NDArray[np.generic], rest: float = 0.0) -> Array:
        """Values of the part's nodes as values of all nodes, along the last axis; the others have ``rest``."""
        if self.is_whole:
            return values
        found = np.full((*values.shape[:-1], self.whole.n_nodes), rest, values.dtype)
        found[..., self.nodes] = values
        return found

    def place(self, node: int) -> int | None:
        """The number that a node of the whole tree has in the part; None if it has none."""
        place = int(self._places[node])
        return None if place < 0 else place

    @cached_property
    def _places(self) -> Ints32:
        """The place of each node in the part, -1 of the others; last that of the root, shape (n_nodes + 1,)."""
        places = np.full(self.whole.n_nodes + 1, -1, np.int32)
        places[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        return places


def _nearest(graph: Taxonomy, nodes: Ints32) -> tuple[Ints, list[int]]:
    """The lowest of some nodes at or above each node of a graph, -1 where there is none; and which nodes have several.

    Of several, none of which is above the others, it is any.
    """
    nearest, several = np.full(graph.n_nodes, -1, np.int64), []
    nearest[nodes] = nodes
    start, above = graph.parents
    for node in np.flatnonzero(nearest < 0).tolist():
        found = set(nearest[above[start[node] : start[node + 1]]].tolist()) - {-1}
        if len(found) > 1:
            found -= {each for lower in found for each in graph.ancestors(lower).tolist()}
        if len(found) > 1:
            several.append(node)
        nearest[node] = min(found, default=-1)
    return nearest, several
