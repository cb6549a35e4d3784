"""Matrices that couple the nodes of a label tree with their ancestors alone: factors, inverses and products.

Such a matrix is kept along the paths: the entries of node i with the nodes of its path, itself the last, are where
the path is. Eliminating nodes from the leaves upwards only changes entries between ancestors of the eliminated node,
which are ancestors of one another; so the factor and its inverse have the same pattern, nothing is filled in, and all
costs are those of the pattern.

``K = U D U'`` with U unit and column i on the path of i. ``B = U^{-T} D^{-1/2}``, kept along the paths as well, gives
``K^{-1} = B B'``: weights W = V K^{-1} are R B' with R = V B, and their norm ``tr(V K^{-1} V')`` is ``|R|^2``.
"""

import numpy as np
from numba import njit

from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.copies import copy


@njit(cache=True, nogil=True)
def factor(tree: TreeArrays, K: Floats, shift: float, B: Floats) -> bool:
    """Make B from ``K - shift I``; False, and B of no use, where that is not positive definite."""
    start, nodes = tree.path_start, tree.path_nodes
    A = B
    copy(K, A)
    for i in range(start.shape[0] - 2, -1, -1):
        begin, last = start[i], start[i + 1] - 1
        A[last] -= shift
        d = A[last]
        if not d > 0.0:
            return False
        for t in range(last - begin):
            l = A[begin + t] / d
            if l != 0.0:
                above = start[nodes[begin + t]]
                for s in range(t + 1):
                    A[above + s] -= l * A[begin + s]
        for t in range(last - begin):
            A[begin + t] /= d
    # row i of B is e_i / sqrt(d_i) less the rows of its ancestors times l_i, those already made
    for i in range(start.shape[0] - 1):
        begin, last = start[i], start[i + 1] - 1
        for t in range(last - begin):
            l = A[begin + t]
            A[begin + t] = 0.0
            if l != 0.0:
                above = start[nodes[begin + t]]
                for s in range(t + 1):
                    B[begin + s] -= l * B[above + s]
        B[last] = 1.0 / np.sqrt(A[last])
    return True


@njit(inline="always")
def inverse(start: Ints, nodes: Ints32, B: Floats, i: int, j: int) -> float:
    """Entry (i, j) of ``K^{-1}``: the product of rows i and j of B, over the common part of their paths."""
    p, q, total = start[i], start[j], 0.0
    n = min(start[i + 1] - p, start[j + 1] - q)
    for t in range(n):
        if nodes[p + t] != nodes[q + t]:
            break
        total += B[p + t] * B[q + t]
    return total


@njit(cache=True, nogil=True)
def times_factor(tree: TreeArrays, B: Floats, V: Array) -> None:
    """V becomes R = V B in place, row by row."""
    start, nodes = tree.path_start, tree.path_nodes
    for f in range(V.shape[0]):
        row = V[f]
        # a node's own entry is read last by itself, and only added to by its descendants, which have larger numbers
        for i in range(start.shape[0] - 1):
            v = row[i]
            if v != 0.0:
                begin, last = start[i], start[i + 1] - 1
                for p in range(begin, last):
                    row[nodes[p]] += B[p] * v
                row[i] = B[last] * v


@njit(inline="always")
def weight(start: Ints, nodes: Ints32, B: Floats, row: Array, i: int) -> float:
    """The entry of node i in a row of W = R B', from that row of R."""
    total = 0.0
    for p in range(start[i], start[i + 1]):
        total += B[p] * row[nodes[p]]
    return total


@njit(cache=True, nogil=True)
def to_weights(tree: TreeArrays, B: Floats, R: Array, W: Array) -> None:
    """W = R B', row by row; W may be narrower than R, and must not be R."""
    start, nodes = tree.path_start, tree.path_nodes
    for f in range(R.shape[0]):
        row = R[f]
        for i in range(start.shape[0] - 1):
            W[f, i] = weight(start, nodes, B, row, i)


@njit(cache=True, nogil=True)
def inner_products(tree: TreeArrays, B: Floats, R: Array, G: Floats) -> None:
    """G, along the paths: ``w_i . w_a`` of every node i with each node a of its path, for W = R B'."""
    start, nodes = tree.path_start, tree.path_nodes
    m = tree.parent.shape[0]
    G[:] = 0.0
    w = np.empty(m)
    for f in range(R.shape[0]):
        row = R[f]
        some = False
        for i in range(m):
            some |= row[i] != 0.0
        if not some:
            continue
        for i in range(m):
            w[i] = weight(start, nodes, B, row, i)
            if w[i] != 0.0:
                for p in range(start[i], start[i + 1]):
                    G[p] += w[i] * w[nodes[p]]


@njit(cache=True, nogil=True)
def sign_step(tree: TreeArrays, K: Floats, B: Floats, G: Floats, S: Floats, new: Floats) -> None:
    """A diagonal Newton step on the signs S of the couplings ``S o K``, cut to [-1, 1].

    The dual has the slope ``K_ia w_i . w_a`` in S_ia and, taken alone, the curvature
    ``K_ia^2 (|w_i|^2 Kinv_aa + |w_a|^2 Kinv_ii + 2 w_i . w_a Kinv_ia)``.
    """
    start, nodes = tree.path_start, tree.path_nodes
    for i in range(start.shape[0] - 1):
        last = start[i + 1] - 1
        new[last] = S[last]
        own = inverse(start, nodes, B, i, i)
        for p in range(start[i], last):
            new[p] = S[p]
            if K[p] <= 0.0:
                continue
            a = nodes[p]
            end = start[a + 1] - 1
            curve = (
                G[last] * inverse(start, nodes, B, a, a) + G[end] * own + 2.0 * G[p] * inverse(start, nodes, B, i, a)
            )
            curve *= K[p]
            if curve > 0.0:
                new[p] = min(1.0, max(-1.0, S[p] + G[p] / curve))


@njit(cache=True, nogil=True)
def add_product(tree: TreeArrays, A: Floats, W: Array, out: Array) -> None:
    """out += W A, row by row, for a symmetric matrix along the paths."""
    start, nodes = tree.path_start, tree.path_nodes
    for f in range(W.shape[0]):
        for i in range(start.shape[0] - 1):
            last = start[i + 1] - 1
            out[f, i] += A[last] * W[f, i]
            for p in range(start[i], last):
                a = nodes[p]
                out[f, i] += A[p] * W[f, a]
                out[f, a] += A[p] * W[f, i]
