"""Small decision trees for all classes at once, level by level.

A tree of depth D asks D questions ``is the bin of feature f at most b?``. The nodes of a level are numbered so that the
left child of node j is j and its right child j + 2^level; a node's split is the stump with the best value on its rows.
Every class has its own tree, so at each node other rows take part for each class; but a row's weights for 16 classes
still are one vector, where a class is zero whose tree has sent the row elsewhere. So a level costs as many passes as
there are left children, each as fast as the search for stumps; what the right child has is what the left one leaves.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.boosting.simd import LANES, interleave, scan_bins
from solvers.boosting.weak_learners.bin_codes import BinArrays
from solvers.boosting.weak_learners.stump_search import Best, histograms, predict_one
from solvers.numerics.array_types import Array, Bytes, Ints, Ints8
from solvers.numerics.copies import copy

TILE = 1024


class Level(NamedTuple):
    """The nodes of one level of all trees.

    Attributes
    ----------
    U : int array, shape (n_blocks, 16 n)
        Weights of the rows in the nodes; of the left children alone, if there are histograms of their parents.
    totals : int array, shape (n_blocks, 16)
        Their sums; as many blocks again for the right children follow.
    parents : int array, shape (n_blocks, 16 * bins)
        The histograms of the parents, or none.
    store : int array, shape (len(totals), 16 * bins)
        Where the histograms of this level go, unless it is empty.
    """

    U: Array
    totals: Array
    parents: Array
    store: Array


@njit(cache=True, nogil=True)
def deinterleave(U: Array, begin: int, end: int, Q: Array) -> None:
    """Q[lane, i] = the lanes of the rows [begin, end)."""
    for block in range(U.shape[0]):
        u = U[block]
        for lane in range(min(LANES, Q.shape[0] - block * LANES)):
            q = Q[block * LANES + lane]
            for i in range(begin, end):
                q[i] = u[i * LANES + lane]


@njit(cache=True, nogil=True)
def _keep(q: Array, nodes: Bytes, node: int, out: Array) -> int:
    """out = q where a row is in the node, else 0; returns its sum."""
    total = 0
    for i in range(len(q)):
        value = q[i]
        kept = value if nodes[i] == node else 0
        out[i] = kept
        total += kept
    return total


@njit(cache=True, nogil=True)
def mask(Q: Array, nodes: Bytes, n_nodes: int, begin: int, end: int, U: Array, totals: Ints) -> None:
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
def grow(bins: BinArrays, begin: int, end: int, level: Level, H: Array, best: Best, j: int) -> None:
    """The best split of every node of a level, over the features [begin, end), as the j-th of several searches."""
    stride, n_dense = len(H) // 5, bins.dense.shape[0]
    for block in range(level.U.shape[0]):
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(bins, f, many, level.U[block], level.totals[block], stride, H)
            for q in range(many):
                _split(bins, f + q, level, block, H, q * stride, best, j)
            f += many


@njit(cache=True, nogil=True)
def _split(bins: BinArrays, f: int, level: Level, block: int, H: Array, offset: int, best: Best, j: int) -> None:
    """The best split by one feature, whose histogram is at ``offset`` of H; the last fifth of H is free."""
    at, size = (bins.first[f] + f) * LANES, bins.n_bins[f] * LANES
    h = H[offset : offset + size]
    if level.store.shape[0] > 0:
        copy(h, level.store[block][at:])
    if level.parents.shape[0] > 0:
        right, spare = block + level.U.shape[0], 4 * (len(H) // 5)
        g, whole = H[spare : spare + size], level.parents[block][at : at + size]
        for i in range(size):
            g[i] = whole[i] - h[i]
        if level.store.shape[0] > 0:
            copy(g, level.store[right][at:])
        scan_bins(
            H, spare, bins.n_bins[f] - 1, level.totals[right], bins.first[f],
            best.size[j, right], best.where[j, right], best.value[j, right],
        )  # fmt: skip
    scan_bins(
        H, offset, bins.n_bins[f] - 1, level.totals[block], bins.first[f],
        best.size[j, block], best.where[j, block], best.value[j, block],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _send(response: Ints8, node: int, right: int, nodes: Bytes) -> None:
    """Move the rows of a node that are on the right."""
    for i in range(len(response)):
        at = nodes[i]
        nodes[i] = right if at == node and response[i] < 0 else at


@njit(cache=True, nogil=True)
def descend(bins: BinArrays, features: Ints, cuts: Ints, nodes: Bytes) -> None:
    """Send rows down one level; features and cuts, shape (n_trees, 2^level), are the splits of each tree's nodes.

    Feature -1 sends all rows to the left. ``nodes``, shape (n_trees, n), changes in place.
    """
    response = np.empty(nodes.shape[1], np.int8)
    for t in range(nodes.shape[0]):
        for node in range(features.shape[1]):
            if features[t, node] >= 0:
                predict_one(bins, features[t, node], cuts[t, node], response)
                _send(response, node, node + features.shape[1], nodes[t])


@njit(cache=True, nogil=True)
def read_leaves(nodes: Bytes, leaves: Ints8, out: Ints8) -> None:
    """out[t, i] = what the leaf says that row i has reached in tree t."""
    for t in range(nodes.shape[0]):
        response, at, leaf = out[t], nodes[t], leaves[t]
        for i in range(len(response)):
            response[i] = leaf[at[i]]
