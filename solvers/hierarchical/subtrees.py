"""From scores of a label tree's nodes to the margins by which they are in the predicted set."""

import numpy as np
from numba import njit

from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32


def nodes_of_least(tree: Taxonomy, scores: Floats, node: int) -> Ints:
    """The one node whose score is the margin of ``node`` by :func:`least_above`."""
    start, nodes = tree.at_or_above
    ways = nodes[start[node] : start[node + 1]]
    return np.array([ways[int(scores[ways].argmin())]])


def nodes_of_best_set(parent: Ints32, scores: Floats, node: int) -> Ints:
    """The nodes whose scores add up to the margin of ``node`` by :func:`best_set`, ascending.

    Where it is in the best set, those that would leave it with the node; else those that would join it.
    """
    worth = scores.astype(np.float64)
    _best_parts(parent, worth)
    heads: list[int] = []
    margin = np.inf
    for j in _path(parent, node):
        if worth[j] > 0.0:
            heads = [j] if worth[j] <= margin else heads
            margin = min(worth[j], margin)
        else:
            heads = [j, *(heads if margin < 0.0 else [])]
            margin = worth[j] + min(0.0, margin)
    chosen = np.zeros(len(parent), np.bool_)
    chosen[heads] = True
    _with_best_parts(parent, worth, chosen)
    return np.flatnonzero(chosen)


def _path(parent: Ints32, node: int) -> list[int]:
    """From a child of the root down to a node."""
    path = [node]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    return path[::-1]


@njit(cache=True, nogil=True)
def least_above(parents: Adjacency, F: Floats) -> None:
    """Every score becomes the least one at or above its node, over all ways; F is (n_samples, n_nodes)."""
    start, above = parents
    for i in range(F.shape[0]):
        f = F[i]
        for j in range(f.shape[0]):
            for e in range(start[j], start[j + 1]):
                if f[above[e]] < f[j]:
                    f[j] = f[above[e]]


@njit(cache=True, nogil=True)
def best_below(parents: Adjacency, F: Floats) -> None:
    """Every score becomes the best one at or below its node; F is (n_samples, n_nodes)."""
    start, above = parents
    for i in range(F.shape[0]):
        f = F[i]
        for j in range(f.shape[0] - 1, -1, -1):
            for e in range(start[j], start[j + 1]):
                if f[above[e]] < f[j]:
                    f[above[e]] = f[j]


@njit(cache=True, nogil=True)
def best_set(parent: Ints32, F: Floats) -> None:
    """Every score becomes by how much the best closed set with its node is worth more than the best one without it.

    A set is worth the sum of its nodes' scores. Upwards, f_j takes what the best part of its subtree is worth, itself
    in it. Downwards, that part is in the best set with the parent if it is worth more than nothing.
    """
    for i in range(F.shape[0]):
        f = F[i]
        _best_parts(parent, f)
        for j in range(parent.shape[0]):
            if parent[j] >= 0:
                margin = f[parent[j]]
                f[j] = min(f[j], margin) if f[j] > 0.0 else f[j] + min(0.0, margin)


@njit(cache=True, nogil=True)
def _best_parts(parent: Ints32, f: Floats) -> None:
    """f_j becomes what the best part of the subtree of j is worth that has j in it."""
    for j in range(parent.shape[0] - 1, -1, -1):
        if parent[j] >= 0 and f[j] > 0.0:
            f[parent[j]] += f[j]


@njit(cache=True, nogil=True)
def _with_best_parts(parent: Ints32, worth: Floats, chosen: Bools) -> None:
    """To the chosen nodes come those below them that are worth more than nothing."""
    for j in range(parent.shape[0]):
        if parent[j] >= 0 and worth[j] > 0.0 and chosen[parent[j]]:
            chosen[j] = True
