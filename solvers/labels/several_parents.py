"""Label graphs, whose nodes may have several parents: the tree that numbers them, and the edges beside it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Ints32

NO_OTHERS = np.empty((0, 2), np.int32)


def deepest_parents(parents: Mapping[str, Sequence[str]], root: str) -> dict[str, str]:
    """Of every node the parent with the longest way up, the first of equal ones.

    Along these a node's level is the length of its longest way up, so that all its parents are on higher levels. A node
    in or below a cycle, or below a name that leads nowhere, has a parent of that sort.
    """
    below: dict[str, list[str]] = {}
    for child, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(child)
    n_open = {child: len(above) for child, above in parents.items()}
    way, waiting = {root: 0}, [root]
    for node in waiting:  # grows on the way
        for child in below.get(node, ()):
            n_open[child] -= 1
            if n_open[child] == 0:
                way[child] = 1 + max(way[parent] for parent in parents[child])
                waiting.append(child)
    return {child: max(above, key=lambda parent: way.get(parent, len(parents) + 1)) for child, above in parents.items()}


def other_edges(numbers: Mapping[str, int], others: Mapping[str, Iterable[str]]) -> Ints32:
    """The edges (child, parent) to parents beside the tree, ascending by child, int32 array (n_edges, 2).

    Parameters
    ----------
    numbers : mapping of str to int
        Of all nodes, ascending.
    others : mapping of str to iterable of str
        The other parents of nodes; names that are no nodes, as that of the root, are left out.
    """
    pairs = [
        (number, numbers[parent])
        for child, number in numbers.items()
        for parent in others.get(child, ())
        if parent in numbers
    ]
    return np.array(pairs, np.int32).reshape(-1, 2)


def all_parents(parent: Ints32, others: Ints32) -> Adjacency:
    """The parents of every node, the tree's first."""
    n_nodes = len(parent)
    own = np.flatnonzero(parent >= 0)
    child = np.concatenate([own, others[:, 0]])
    above = np.concatenate([parent[own], others[:, 1]])
    order = np.argsort(child, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=n_nodes))]).astype(np.int64)
    return Adjacency(start, np.ascontiguousarray(above[order], np.int32))
