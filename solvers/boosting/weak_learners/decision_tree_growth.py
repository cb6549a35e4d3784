"""Small trees for all classes at once, level by level.

A tree of depth D asks D questions ``is the bin of feature f at most b?``. The nodes of a level are numbered so that the
left child of node j is j and its right child j + 2^level; a node's split is the stump with the best value on its rows.
Every class has its own tree, so at each node other rows take part for each class; but a row's weights for 16 classes
still are one vector, where a class is zero whose tree has sent the row elsewhere. So a level costs as many passes as
there are left children, each as fast as the search for stumps; what the right child has is what the left one leaves.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.boosting.simd import LANES, interleave, scan_lanes
from solvers.boosting.weak_learners.stump_search import histograms, sides

TILE = 1024


@njit(cache=True, nogil=True)
def apart(U: NDArray[Any], begin: int, end: int, Q: NDArray[Any]) -> None:
    """Q[lane, i] = the lanes of the rows [begin, end)."""
    for block in range(U.shape[0]):
        u = U[block]
        for lane in range(min(LANES, Q.shape[0] - block * LANES)):
            q = Q[block * LANES + lane]
            for i in range(begin, end):
                q[i] = u[i * LANES + lane]


@njit(cache=True, nogil=True)
def _keep(q: NDArray[Any], nodes: NDArray[np.uint8], node: int, out: NDArray[Any]) -> int:
    """out = q where a row is in the node, else 0; returns its sum."""
    total = 0
    for i in range(len(q)):
        value = q[i]
        kept = value if nodes[i] == node else 0
        out[i] = kept
        total += kept
    return total


@njit(cache=True, nogil=True)
def mask(
    Q: NDArray[Any],
    nodes: NDArray[np.uint8],
    n_nodes: int,
    begin: int,
    end: int,
    U: NDArray[Any],
    totals: NDArray[np.int64],
) -> None:
    """Weights of the rows [begin, end) in each of the first nodes.

    Those of class c at a node go to block ``node * n_blocks + c // 16`` of U, lane c % 16. Q holds the weights by
    class, shape (k, n), ``nodes`` where each class's tree has sent each row. Adds to the totals, shape
    (n_nodes * n_blocks * 16,).
    """
    k = Q.shape[0]
    n_blocks = -(-k // LANES)
    kept = np.empty((k, TILE), Q.dtype)
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        for node in range(n_nodes):
            at = node * n_blocks
            for c in range(k):
                totals[at * LANES + c] += _keep(Q[c][first:last], nodes[c][first:last], node, kept[c][: last - first])
            interleave(kept, first, last - first, U[at : at + n_blocks])


@njit(cache=True, nogil=True)
def grow(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    begin: int,
    end: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    above: NDArray[Any],
    H: NDArray[Any],
    best: NDArray[Any],
    where: NDArray[Any],
    signed: NDArray[Any],
    store: NDArray[Any],
) -> None:
    """The best split of every node of a level, over the features [begin, end).

    U holds the weights in the nodes block by block, totals, best, where and signed are those of
    :func:`solvers.boosting.weak_learners.stump_search.search`.
    If ``above`` holds the histograms of their parents, shape
    (n_blocks, 16 * bins), U is that of the left children alone, and the other arrays have as many blocks again for the
    right ones. ``store`` takes the histograms, unless it is empty.
    """
    stride = len(H) // 5
    spare = 4 * stride
    n_dense, n_blocks = dense.shape[0], U.shape[0]
    halves, stores = above.shape[0] > 0, store.shape[0] > 0
    for block in range(n_blocks):
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(dense, indptr, rows, codes, zero, n_bins, f, many, U[block], totals[block], stride, H)
            for q in range(many):
                at, size = (first[f + q] + f + q) * LANES, n_bins[f + q] * LANES
                h = H[q * stride : q * stride + size]
                if stores:
                    store[block][at : at + size] = h
                if halves:
                    right = block + n_blocks
                    g, whole = H[spare : spare + size], above[block][at : at + size]
                    for j in range(size):
                        g[j] = whole[j] - h[j]
                    if stores:
                        store[right][at : at + size] = g
                    scan_lanes(
                        H, spare, n_bins[f + q] - 1, totals[right], first[f + q],
                        best[right], where[right], signed[right],
                    )  # fmt: skip
                scan_lanes(
                    H, q * stride, n_bins[f + q] - 1, totals[block], first[f + q],
                    best[block], where[block], signed[block],
                )  # fmt: skip
            f += many


@njit(cache=True, nogil=True)
def _send(side: NDArray[np.int8], node: int, right: int, nodes: NDArray[np.uint8]) -> None:
    """Move the rows of a node that are on the right side."""
    for i in range(len(side)):
        at = nodes[i]
        nodes[i] = right if at == node and side[i] < 0 else at


@njit(cache=True, nogil=True)
def descend(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    features: NDArray[np.int64],
    bins: NDArray[Any],
    nodes: NDArray[np.uint8],
) -> None:
    """Send rows down one level; features and bins, shape (n_trees, 2^level), are the splits of each tree's nodes.

    Feature -1 sends all rows to the left. ``nodes``, shape (n_trees, n), changes in place.
    """
    side = np.empty((1, nodes.shape[1]), np.int8)
    for t in range(nodes.shape[0]):
        for node in range(features.shape[1]):
            if features[t, node] >= 0:
                sides(dense, indptr, rows, codes, zero, features[t, node : node + 1], bins[t, node : node + 1], side)
                _send(side[0], node, node + features.shape[1], nodes[t])


@njit(cache=True, nogil=True)
def read_leaves(nodes: NDArray[np.uint8], leaves: NDArray[np.int8], out: NDArray[np.int8]) -> None:
    """out[t, i] = what the leaf says that row i has reached in tree t."""
    for t in range(nodes.shape[0]):
        said, at, leaf = out[t], nodes[t], leaves[t]
        for i in range(len(said)):
            said[i] = leaf[at[i]]


@njit(cache=True, nogil=True)
def score_trees(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[np.float64],
    place: NDArray[np.int32],
    n_places: int,
    splits: NDArray[np.int32],
    thresholds: NDArray[np.float64],
    leaves: NDArray[np.int8],
    ends: NDArray[np.int64],
    outputs: NDArray[np.int32],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[i, c] = sum over trees t and outputs c of the weight times what t says of row i.

    ``splits[t, node]`` is the place of a feature, ``place[j]`` that of feature j, -1 if no tree asks for it; the votes
    of tree t stand at ``ends[t] : ends[t + 1]`` of outputs and weights.
    """
    x = np.zeros(n_places)
    depth = 0
    while (1 << depth) < leaves.shape[1]:
        depth += 1
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if place[indices[p]] >= 0:
                x[place[indices[p]]] = data[p]
        for t in range(splits.shape[0]):
            split, threshold = splits[t], thresholds[t]
            node = 0
            for level in range(depth):
                at = (1 << level) - 1 + node
                if not x[split[at]] <= threshold[at]:
                    node += 1 << level
            said = leaves[t, node]
            for v in range(ends[t], ends[t + 1]):
                row[outputs[v]] += said * weights[v]
        for p in range(indptr[i], indptr[i + 1]):
            if place[indices[p]] >= 0:
                x[place[indices[p]]] = 0.0
