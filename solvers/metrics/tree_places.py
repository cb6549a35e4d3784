"""The places of nodes of a label tree among a model's answers, and among the nodes of their level.

A model answers with some of the nodes. A node is as good as the best answer that is the node itself or below it: so a
true inner node is found where the first such answer is listed, and the nodes of a level can be listed, too.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import AnyFloats, Ints, Ints32


def tree_places(
    tree: Taxonomy,
    class_nodes: NDArray[np.integer],
    scores: AnyFloats,
    ties: AnyFloats | None,
    indptr: NDArray[np.integer],
    labels: NDArray[np.integer],
) -> tuple[Ints32, Ints32]:
    """Places of true nodes, 1 for the first and 0 for a node that no answer is at or below.

    Parameters
    ----------
    tree : Taxonomy
    class_nodes : int array, shape (n_classes,)
        The node of each class.
    scores, ties : float arrays, shape (n_samples, n_classes)
        As :class:`solvers.metrics.ranking.Ranking` has them.
    indptr : int array, shape (n_samples + 1,)
    labels : int array
        The true nodes of row i from ``indptr[i]`` to ``indptr[i + 1]``; what is not in [0, n_nodes) is unknown.

    Returns
    -------
    whole, level : int32 arrays, shape of ``labels``
        Among all answers, where there is one more than there are better ones than the node's best; and among the nodes
        of the node's level, no two of which share a place: of equally good ones the first comes first.
    """
    found = np.zeros((2, len(labels)), np.int32)
    values = np.ascontiguousarray(scores)
    second = np.empty((0, 0), values.dtype) if ties is None else np.ascontiguousarray(ties)
    begins = np.searchsorted(tree.level, np.arange(1, tree.depth + 2))
    _tree_places(
        values,
        second,
        np.asarray(class_nodes, np.int64),
        tree.parents,
        tree.level,
        begins,
        np.asarray(indptr, np.int64),
        np.asarray(labels, np.int64),
        found,
    )
    return found[0], found[1]


@njit(cache=True, nogil=True, inline="always")
def _better(values: Any, ties: Any, i: int, a: int, b: int) -> Any:
    """Whether class a comes before class b, which may be none."""
    if b < 0 or values[i, a] != values[i, b]:
        return b < 0 or values[i, a] > values[i, b]
    if ties.shape[0] > 0 and ties[i, a] != ties[i, b]:
        return ties[i, a] > ties[i, b]
    return a < b


@njit(cache=True, nogil=True)
def _tree_places(
    values: Any,
    ties: Any,
    class_nodes: Ints,
    parents: Adjacency,
    level: Ints32,
    begins: Ints,
    indptr: Ints,
    labels: Ints,
    found: Ints32,
) -> None:
    """The best answer at or below every node, and from these the places."""
    n_nodes, n_classes = level.shape[0], values.shape[1]
    start, above = parents
    best = np.empty(n_nodes, np.int64)
    for i in range(values.shape[0]):
        best[:] = -1
        for c in range(n_classes):
            if values[i, c] > -np.inf:
                node = class_nodes[c]
                if _better(values, ties, i, c, best[node]):
                    best[node] = c
        for node in range(n_nodes - 1, -1, -1):
            if best[node] >= 0:
                for e in range(start[node], start[node + 1]):
                    if _better(values, ties, i, best[node], best[above[e]]):
                        best[above[e]] = best[node]
        for e in range(indptr[i], indptr[i + 1]):
            node = labels[e]
            if node < 0 or node >= n_nodes or best[node] < 0:
                continue
            mine, before = best[node], 0
            for c in range(n_classes):
                if c != mine and values[i, c] > -np.inf and _better(values, ties, i, c, mine):
                    before += 1
            found[0, e] = before + 1
            before = 0
            for other in range(begins[level[node] - 1], begins[level[node]]):
                if best[other] < 0 or other == node:
                    continue
                # in a graph, nodes of a level may have the same answer below them
                if _better(values, ties, i, best[other], mine) or (best[other] == mine and other < node):
                    before += 1
            found[1, e] = before + 1
