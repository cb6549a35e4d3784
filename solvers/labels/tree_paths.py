"""Paths, levels and distances of a label tree whose parents come before their children."""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats, Ints, Ints32


class TreeArrays(NamedTuple):
    """A label tree as compiled code takes it; the fields are those of :class:`solvers.labels.taxonomy.Taxonomy`."""

    parent: Ints32
    first_child: Ints32
    level: Ints32
    path_start: Ints
    path_nodes: Ints32


class Adjacency(NamedTuple):
    """The parents of every node of a label graph, or the children: those of i from ``start[i]`` to ``start[i + 1]``.

    The root is none of them. Parents have smaller numbers, and the tree's own comes first.
    """

    start: Ints
    nodes: Ints32


@njit(cache=True, nogil=True)
def at_or_above(parents: Adjacency) -> tuple[Ints, Ints32]:
    """Every node's ancestors over all ways and the node itself, ascending, in compressed rows."""
    n_nodes = parents.start.shape[0] - 1
    seen = np.full(n_nodes, -1, np.int64)
    start, room = np.zeros(n_nodes + 1, np.int64), 4 * n_nodes
    nodes = np.empty(room, np.int32)
    n = 0
    for i in range(n_nodes):
        begin = n
        for e in range(parents.start[i], parents.start[i + 1]):
            above = parents.nodes[e]
            need = n + start[above + 1] - start[above] + 1
            if need > nodes.shape[0]:
                wider = np.empty(2 * need, np.int32)
                wider[:n] = nodes[:n]
                nodes = wider
            for t in range(start[above], start[above + 1]):
                if seen[nodes[t]] != i:
                    seen[nodes[t]] = i
                    nodes[n] = nodes[t]
                    n += 1
        nodes[begin:n].sort()
        if n == nodes.shape[0]:
            wider = np.empty(2 * n + 1, np.int32)
            wider[:n] = nodes[:n]
            nodes = wider
        nodes[n] = i
        n += 1
        start[i + 1] = n
    return start, nodes[:n].copy()


@njit(cache=True, nogil=True)
def levels(parent: Ints32) -> Ints32:
    """The distance of every node from the root."""
    level = np.empty(parent.shape[0], np.int32)
    for i in range(parent.shape[0]):
        level[i] = 1 if parent[i] < 0 else level[parent[i]] + 1
    return level


@njit(cache=True, nogil=True)
def paths(parent: Ints32, start: Ints) -> Ints32:
    """The path from the top down to every node, end to end."""
    nodes = np.empty(start[-1], np.int32)
    for i in range(parent.shape[0]):
        n = start[i + 1] - start[i] - 1
        for t in range(n):
            nodes[start[i] + t] = nodes[start[parent[i]] + t]
        nodes[start[i] + n] = i
    return nodes


@njit(cache=True, nogil=True)
def closure(start: Ints, nodes: Ints32, indptr: Ints, given: Ints32) -> tuple[Ints, Ints32]:
    """Sets of nodes with everything on their paths, each set ascending."""
    room = 0
    for p in range(given.shape[0]):
        room += start[given[p] + 1] - start[given[p]]
    ends, out = np.zeros(indptr.shape[0], np.int64), np.empty(room, np.int32)
    seen = np.full(start.shape[0] - 1, -1, np.int64)
    n = 0
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            for t in range(start[given[p]], start[given[p] + 1]):
                if seen[nodes[t]] != i:
                    seen[nodes[t]] = i
                    out[n] = nodes[t]
                    n += 1
        out[ends[i] : n].sort()
        ends[i + 1] = n
    return ends, out[:n].copy()


@njit(cache=True, nogil=True)
def shared(parents: Adjacency, counts: Ints) -> Floats:
    """What every node counts where each divides its own count among its children; counts begin with the root's."""
    weights = np.empty(parents.start.shape[0] - 1)
    for i in range(weights.shape[0]):
        begin, end = parents.start[i], parents.start[i + 1]
        weights[i] = 1.0 / counts[0] if begin == end else 0.0
        for e in range(begin, end):
            above = parents.nodes[e]
            weights[i] += weights[above] / counts[above + 1]
    return weights


@njit(cache=True, nogil=True)
def distances(parent: Ints32, level: Ints32, a: Ints32, b: Ints32) -> Floats:
    """Half the length of the path between a[p] and b[p]."""
    out = np.empty(a.shape[0])
    for p in range(a.shape[0]):
        i, j, steps = a[p], b[p], 0
        while i != j:
            # the later number is on the same level or a deeper one
            if i > j:
                i = parent[i]
            else:
                j = parent[j]
            steps += 1
        out[p] = 0.5 * steps
    return out


@njit(inline="always")
def shared_depth(level: Ints32, start: Ints, nodes: Ints32, i: int, j: int) -> int:
    """How many nodes the paths to nodes i and j have in common."""
    n = 0
    while n < min(level[i], level[j]) and nodes[start[i] + n] == nodes[start[j] + n]:
        n += 1
    return n
