"""The label tree: a parent array in breadth-first order, and what follows from it.

The top is called ``root`` and is no label; its number is -1. All other nodes are numbered level by level, children of
one node next to each other. So every parent comes before its children, the children of a node are a range, and so is
every level; no further order needs to be kept.

A label graph, whose nodes may have several parents, is the tree of the parents with the longest way up, and the other
edges beside it. All parents of a node come before it then, too.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.labels import tree_paths
from solvers.labels.several_parents import NO_OTHERS, all_parents, deepest_parents, other_edges
from solvers.labels.tree_paths import Adjacency, TreeArrays
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32

ROOT = "root"
NAMED = 5

Weighting = Literal["uniform", "sibling", "subtree"]


class TaxonomyError(ValueError):
    """Edges that are no tree, or labels that the tree does not have; the message names them."""


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A label tree, or a label graph.

    Attributes
    ----------
    names : tuple of str, length n_nodes
        Without the root; level by level, and children in the order in which they were given.
    parent : int32 array, shape (n_nodes,)
        The number of each node's parent, -1 for the children of the root; never falls. In a graph the parent with the
        longest way up, the first of equal ones.
    others : int32 array, shape (n_others, 2)
        Of a graph the edges beside those of ``parent``, (child, parent), ascending by child; the parent is a node of a
        smaller level.
    """

    names: tuple[str, ...]
    parent: Ints32
    others: Ints32 = field(default_factory=NO_OTHERS.copy)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]]) -> "Taxonomy":
        """The tree of (parent, child) pairs in any order; the top is called ``root``.

        Raises
        ------
        TaxonomyError
            There is no edge; a child is given twice or has two parents; the root is a child; nodes hang below none
            that leads to the root, or in a cycle.
        """
        above: dict[str, str] = {}
        for number, edge in enumerate(edges):
            parent, child = _ends(number, edge)
            if child in above:
                if above[child] == parent:
                    raise _given_twice(parent, child)
                raise TaxonomyError(f"{child!r:.80} has two parents: {above[child]!r:.80} and {parent!r:.80}")
            above[child] = parent
        return cls._sorted(above)

    @classmethod
    def from_graph(cls, edges: Iterable[tuple[str, str]]) -> "Taxonomy":
        """The graph of (parent, child) pairs in any order, in which a child may have several parents.

        An edge from the root to a child that has other parents says nothing, and is left out.

        Raises
        ------
        TaxonomyError
            As :meth:`from_edges`, but for nodes with two parents.
        """
        parents: dict[str, list[str]] = {}
        for number, edge in enumerate(edges):
            parent, child = _ends(number, edge)
            above = parents.setdefault(child, [])
            if parent in above:
                raise _given_twice(parent, child)
            above.append(parent)
        kept = deepest_parents(parents, ROOT)
        tree = cls._sorted(kept)
        others = {child: [parent for parent in above if parent != kept[child]] for child, above in parents.items()}
        return cls(tree.names, tree.parent, other_edges(tree._numbers, others))

    @classmethod
    def from_parents(cls, names: Sequence[str], parent: ArrayLike) -> "Taxonomy":
        """The tree of names in any order and the number of each one's parent among them, -1 for the root.

        Raises
        ------
        TaxonomyError
            Names repeat, numbers are out of range, or nodes are in a cycle.
        """
        numbers = np.asarray(parent)
        if numbers.shape != (len(names),) or not np.issubdtype(numbers.dtype, np.integer):
            raise TaxonomyError(
                f"parent has shape {numbers.shape}; expected one integer for each of {len(names)} names"
            )
        if len(names) and (numbers.min() < -1 or numbers.max() >= len(names)):
            raise TaxonomyError(f"parent runs from {numbers.min()} to {numbers.max()}; expected -1 to {len(names) - 1}")
        above: dict[str, str] = {}
        for name, number in zip(names, numbers.tolist(), strict=True):
            if name == ROOT:
                raise TaxonomyError(f"{ROOT!r} is the reserved name of the top; no other node can have it")
            if name in above:
                raise TaxonomyError(f"the name {name!r:.80} is given twice")
            above[name] = ROOT if number == -1 else names[number]
        return cls._sorted(above)

    @classmethod
    def flat(cls, names: Sequence[str]) -> "Taxonomy":
        """The tree in which every name is a child of the root."""
        return cls.from_parents(names, np.full(len(names), -1))

    @classmethod
    def _sorted(cls, above: dict[str, str]) -> "Taxonomy":
        """Number the nodes from the root downwards; whatever is not reached is no part of a tree."""
        below: dict[str, list[str]] = {}
        for child, parent in above.items():
            below.setdefault(parent, []).append(child)
        names, parents = list(below.get(ROOT, [])), [-1] * len(below.get(ROOT, []))
        at = 0
        while at < len(names):
            children = below.get(names[at], [])
            names += children
            parents += [at] * len(children)
            at += 1
        if len(names) < len(above) or not names:
            raise TaxonomyError(_fault(above))
        return cls(tuple(names), np.array(parents, np.int32))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Taxonomy)
            and self.names == other.names
            and np.array_equal(self.parent, other.parent)
            and np.array_equal(self.others, other.others)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.parent.tobytes(), self.others.tobytes()))

    @property
    def is_tree(self) -> bool:
        """Whether no node has several parents."""
        return len(self.others) == 0

    @property
    def several_parents(self) -> str:
        """Which node is the first to have several parents, as a clause; of a tree there is none."""
        node = int(self.others[0, 0])
        above = self.parents.nodes[self.parents.start[node] : self.parents.start[node + 1]].tolist()
        more = f" and {len(above) - NAMED} more" if len(above) > NAMED else ""
        return f"{self.names[node]!r:.80} has {len(above)} parents: " + (
            ", ".join(f"{self.names[each]!r:.80}" for each in above[:NAMED]) + more
        )

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """(parent, child) by name, in the order of the nodes; behind them those beside the tree."""
        own = [
            (ROOT if above < 0 else self.names[above], name)
            for name, above in zip(self.names, self.parent.tolist(), strict=True)
        ]
        return own + [(self.names[above], self.names[node]) for node, above in self.others.tolist()]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all nodes in order, a line of UTF-8 each: the parent's number, a space, the name.

        The edges beside the tree follow, a line each: the numbers of child and parent with ``<`` between them.
        """
        lines = [f"{above} {name}\n" for name, above in zip(self.names, self.parent.tolist(), strict=True)]
        lines += [f"{node}<{above}\n" for node, above in self.others.tolist()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def parents(self) -> Adjacency:
        """All parents of every node but the root."""
        return all_parents(self.parent, self.others)

    @cached_property
    def first_child(self) -> Ints32:
        """The children in compressed rows, shape (n_nodes + 2,).

        Those of node i are the numbers from ``first_child[i + 1]`` to ``first_child[i + 2]``; those of the root are
        in the first row, as its number is -1.
        """
        counts = np.bincount(self.parent + 1, minlength=self.n_nodes + 1)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def children(self, node: int) -> range:
        """The numbers of a node's children; -1 asks for those of the root."""
        return range(int(self.first_child[node + 1]), int(self.first_child[node + 2]))

    @cached_property
    def is_leaf(self) -> Bools:
        """Which nodes have no child, shape (n_nodes,)."""
        has_child = np.diff(self.first_child)[1:] > 0
        has_child[self.others[:, 1]] = True
        return np.asarray(~has_child)

    @cached_property
    def leaves(self) -> Ints32:
        """The nodes without a child, ascending."""
        return np.flatnonzero(self.is_leaf).astype(np.int32)

    @cached_property
    def level(self) -> Ints32:
        """Each node's distance from the root, shape (n_nodes,): 1 for its children."""
        return np.asarray(tree_paths.levels(self.parent))

    @property
    def depth(self) -> int:
        """The largest level."""
        return int(self.level[-1])

    @cached_property
    def path_start(self) -> Ints:
        """Where the path of each node begins in :attr:`path_nodes`, shape (n_nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.level, dtype=np.int64)])

    @cached_property
    def path_nodes(self) -> Ints32:
        """The paths of all nodes, end to end: from a child of the root down to the node itself."""
        return np.asarray(tree_paths.paths(self.parent, self.path_start))

    @cached_property
    def arrays(self) -> TreeArrays:
        """The tree for compiled code."""
        return TreeArrays(self.parent, self.first_child, self.level, self.path_start, self.path_nodes)

    def path(self, node: int) -> Ints32:
        """The nodes from a child of the root down to ``node``, itself the last."""
        return self.path_nodes[self.path_start[node] : self.path_start[node + 1]]

    @cached_property
    def at_or_above(self) -> tuple[Ints, Ints32]:
        """Every node's ancestors over all ways and the node, ascending, in compressed rows; of a tree the paths."""
        if self.is_tree:
            return self.path_start, self.path_nodes
        start, nodes = tree_paths.at_or_above(self.parents)
        return start, nodes

    def ancestors(self, node: int) -> Ints32:
        """The nodes above ``node`` over all ways without the root, ascending."""
        start, nodes = self.at_or_above
        return nodes[start[node] : start[node + 1] - 1]

    @cached_property
    def subtree_size(self) -> Ints:
        """The number of nodes below each node over all ways, itself counted, shape (n_nodes,)."""
        return np.bincount(self.at_or_above[1], minlength=self.n_nodes).astype(np.int64)

    def level_range(self, level: int) -> range:
        """The numbers of the nodes of one level, 1 to :attr:`depth`."""
        begin, end = np.searchsorted(self.level, [level, level + 1])
        return range(int(begin), int(end))

    def find(self, labels: Iterable[str]) -> Ints32:
        """The numbers of labels.

        Raises
        ------
        TaxonomyError
            Some are not in the tree, or are the root; the first few are named.
        """
        asked = list(labels)
        found = np.array([self._numbers.get(label, -1) for label in asked], np.int32)
        if (found < 0).any():
            unknown = list(dict.fromkeys(asked[at] for at in np.flatnonzero(found < 0)))
            more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
            named = ", ".join(f"{label!r:.80}" for label in unknown[:NAMED])
            labels = "1 label" if len(unknown) == 1 else f"{len(unknown)} labels"
            raise TaxonomyError(f"the label tree has no node for {labels}: {named}{more}")
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: node for node, name in enumerate(self.names)}

    def closure(self, indptr: NDArray[np.integer], nodes: Ints32) -> tuple[Ints, Ints32]:
        """Sets of labels with all their ancestors.

        Parameters
        ----------
        indptr : int array, shape (n_sets + 1,)
        nodes : int32 array
            The nodes of set i from ``indptr[i]`` to ``indptr[i + 1]``, in any order, repeated or not.

        Returns
        -------
        indptr : int64 array, shape (n_sets + 1,)
        nodes : int32 array
            As given, each set ascending and without repetition.
        """
        begin, closed = tree_paths.closure(*self.at_or_above, np.asarray(indptr, np.int64), nodes)
        return begin, closed

    def loss_weights(self, kind: Weighting) -> Floats:
        """What a mistake at each node counts in a hierarchical loss, shape (n_nodes,).

        Rousu et al. 2005, section 2: ``uniform`` is 1; ``sibling`` divides what the parent counts (the root: 1) among
        its children, and a node with several parents has a share of each; ``subtree`` is the share of all nodes, the
        root counted, that are below the node, itself counted.
        """
        if kind == "uniform":
            return np.ones(self.n_nodes)
        if kind == "subtree":
            return np.asarray(self.subtree_size / (self.n_nodes + 1))
        counts = np.diff(self.first_child).astype(np.int64)
        counts += np.bincount(self.others[:, 1] + 1, minlength=len(counts))
        return np.asarray(tree_paths.shared(self.parents, counts))

    def distance(self, a: ArrayLike, b: ArrayLike) -> Floats:
        """Half the length of the path between nodes, for every pair of two arrays of numbers; -1 is the root.

        Zhou et al. 2011, section 5. Leaves under one parent are 1 apart. In a graph the path is that of its tree.
        """
        left, right = np.broadcast_arrays(np.asarray(a, np.int32), np.asarray(b, np.int32))
        flat = tree_paths.distances(self.parent, self.level, left.ravel(), right.ravel())
        return np.asarray(flat.reshape(left.shape))


def _ends(number: int, edge: tuple[str, str]) -> tuple[str, str]:
    """Parent and child of an edge that was given as the number-th; raises TaxonomyError."""
    if isinstance(edge, str) or len(edge) != 2:
        raise TaxonomyError(f"edge {number} is {edge!r:.80}; expected a pair (parent, child)")
    parent, child = map(str, edge)
    if child == ROOT:
        raise TaxonomyError(f"{parent!r:.80} has {ROOT!r} as a child; the top has no parent")
    return parent, child


def _given_twice(parent: str, child: str) -> TaxonomyError:
    return TaxonomyError(f"{child!r:.80} is given twice as a child of {parent!r:.80}")


def _fault(above: dict[str, str]) -> str:
    """Why these nodes with the parents they name are no tree."""
    if not above:
        return "the label tree has no edges; expected at least one"
    resolved: dict[str, bool] = {ROOT: True}
    for begin in above:
        trail, node = [], begin
        while node in above and node not in resolved:
            resolved[node] = False
            trail.append(node)
            node = above[node]
        if node in trail:
            cycle = trail[trail.index(node) :]
            shown = " < ".join(
                f"{name:.80}" for name in [*cycle[: NAMED + 1], *(["..."] if len(cycle) > NAMED else [])]
            )
            return f"{len(cycle)} node(s) are in a cycle: {shown} < {node:.80}"
        if node not in above and node != ROOT:
            return (
                f"{node!r:.80} is the parent of {trail[-1]!r:.80}, but hangs below no other node; is it below {ROOT!r}?"
            )
        for name in trail:
            resolved[name] = True
    raise AssertionError("every node leads to the root")
