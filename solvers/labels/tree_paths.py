"""Paths, levels and distances of a label tree whose parents come before their children."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class TreeArrays(NamedTuple):
    """A label tree as compiled code takes it; the fields are those of :class:`solvers.labels.taxonomy.Taxonomy`."""

    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    level: NDArray[np.int32]
    path_start: NDArray[np.int64]
    path_nodes: NDArray[np.int32]


@njit(cache=True, nogil=True)
def levels(parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """The distance of every node from the root."""
    level = np.empty(parent.shape[0], np.int32)
    for i in range(parent.shape[0]):
        level[i] = 1 if parent[i] < 0 else level[parent[i]] + 1
    return level


@njit(cache=True, nogil=True)
def paths(parent: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """The path from the top down to every node, end to end."""
    nodes = np.empty(start[-1], np.int32)
    for i in range(parent.shape[0]):
        n = start[i + 1] - start[i] - 1
        for t in range(n):
            nodes[start[i] + t] = nodes[start[parent[i]] + t]
        nodes[start[i] + n] = i
    return nodes


@njit(cache=True, nogil=True)
def closure(
    start: NDArray[np.int64], nodes: NDArray[np.int32], indptr: NDArray[np.int64], given: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
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
def shared(parent: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """What every node counts where each divides its own count among its children; counts begin with the root's."""
    weights = np.empty(parent.shape[0])
    for i in range(parent.shape[0]):
        weights[i] = (1.0 if parent[i] < 0 else weights[parent[i]]) / counts[parent[i] + 1]
    return weights


@njit(cache=True, nogil=True)
def distances(
    parent: NDArray[np.int32], level: NDArray[np.int32], a: NDArray[np.int32], b: NDArray[np.int32]
) -> NDArray[np.float64]:
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
