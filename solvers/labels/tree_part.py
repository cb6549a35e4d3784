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
    whole : Taxonomy
    nodes : int32 array, shape (n_nodes_of_part,)
        Their numbers in the whole tree, ascending; with a node its parent.
    """

    whole: Taxonomy
    nodes: Ints32

    @classmethod
    def of_sets(cls, tree: Taxonomy, labels: sp.csr_matrix) -> "TreePart":
        """The nodes that some row has.

        Parameters
        ----------
        tree : Taxonomy
        labels : csr_matrix of bool, shape (n_samples, n_nodes)
            Closed upwards.
        """
        return cls(tree, np.unique(labels.indices[labels.data]).astype(np.int32))

    @property
    def is_whole(self) -> bool:
        """Whether no node is left out."""
        return len(self.nodes) == self.whole.n_nodes

    @cached_property
    def tree(self) -> Taxonomy:
        """The part as a tree; its nodes are in the order of the whole one."""
        if self.is_whole:
            return self.whole
        names = self.whole.names
        return Taxonomy(tuple(names[node] for node in self.nodes.tolist()), self._places[self.whole.parent[self.nodes]])

    @cached_property
    def n_hanging(self) -> Ints:
        """How many of the other nodes have no nearer node of the part above them, shape (n_nodes_of_part + 1,).

        First those that have none but the root, then those below each node of the part.
        """
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
