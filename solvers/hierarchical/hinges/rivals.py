"""The hinges of machines over a label tree: which nodes rival which, and the rivals that come closest.

A hinge belongs to an example. Its pairs are of a node i on the path of the example's label and a rival j, which i must
beat by a margin: i's siblings (Zhou et al. 2011, the constraints of equation 4), or all other nodes. The loss is the
largest of the pairs' violations, 0 if there is none; each is ``scale (1 - w_i . x + w_j . x)``.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows

Floats = NDArray[np.float64]


class Hinges(NamedTuple):
    """The hinges: row of X, node whose path is walked, the first level with pairs, the bound; whether all nodes rival.

    Where they do, the pairs are those of the label with every other node, their scale is half the length of the path
    between the two, and B is all ones along the paths, so that weights sum up as in Zhou et al. 2011, equation 3.
    """

    row: NDArray[np.int32]
    node: NDArray[np.int32]
    first: NDArray[np.int32]
    bound: NDArray[np.float64]
    all_rival: bool


class Scores(NamedTuple):
    """What is known of one hinge after :func:`find_rivals`; written afresh for every hinge.

    ``products`` are R' x, ``scores`` W' x of the nodes that matter, ``shared`` the depth of each node's common path
    with the label if all are rivals. ``rivals`` are up to ``most`` of each level, the worst first, with their
    ``violations``.
    """

    products: NDArray[np.float64]
    scores: NDArray[np.float64]
    shared: NDArray[np.int32]
    rivals: NDArray[np.int32]
    violations: NDArray[np.float64]
    most: int


@njit(inline="always")
def blank_scores(tree: TreeArrays, width: int, most: int) -> Scores:
    """Room for what is found of one hinge; ``width`` is that of R, padding included."""
    m = tree.parent.shape[0]
    found = most * tree.level[m - 1]
    return Scores(
        np.zeros(width), np.zeros(m), np.zeros(m, np.int32), np.empty(found, np.int32), np.empty(found), most
    )  # fmt: skip


@njit(inline="always")
def find_rivals(
    rows: Rows, tree: TreeArrays, hinges: Hinges, B: Floats, b: int, R: Floats, narrow: bool, s: Scores
) -> int:
    """Score hinge b with R, and find its worst rivals: how many there are.

    ``narrow`` reads of R only the groups of siblings along the path, else whole rows.
    """
    i = hinges.row[b]
    if narrow:
        _score_groups(rows, tree, hinges, b, R, s.products)
    else:
        sum_rows(R, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], s.products)
    y = hinges.node[b]
    found: int = _worst_of_all(tree, y, s) if hinges.all_rival else _worst_siblings(tree, B, y, hinges.first[b], s)
    return found


@njit(inline="always")
def is_narrow(tree: TreeArrays, hinges: Hinges, b: int, width: int) -> bool:
    """Whether the groups along the path of hinge b are so small a part of R that reading them alone is faster."""
    if hinges.all_rival:
        return False
    parent, nodes, first_child, spread = tree.parent, tree.path_nodes, tree.first_child, 0
    begin, end = tree.path_start[hinges.node[b]], tree.path_start[hinges.node[b] + 1]
    for t in range(begin, end):
        above = parent[nodes[t]]
        spread += first_child[above + 2] - first_child[above + 1]
    return bool(8 * (spread + 4 * (end - begin)) < width)


@njit(inline="always")
def _score_groups(rows: Rows, tree: TreeArrays, hinges: Hinges, b: int, R: Floats, products: Floats) -> None:
    """products = R' x, of the groups of siblings along the path of hinge b."""
    i, y = hinges.row[b], hinges.node[b]
    begin, n = tree.path_start[y], tree.path_start[y + 1] - tree.path_start[y]
    parent, nodes, first_child, first = tree.parent, tree.path_nodes, tree.first_child, hinges.first[b]
    indptr, indices, data, _ = rows
    for t in range(n):
        node = nodes[begin + t]
        low, high = first_child[parent[node] + 1], first_child[parent[node] + 2]
        if t < first or high - low == 1:
            # its own group has no pair here, but what is below needs the node itself
            low, high = node, node + 1
        for j in range(low, high):
            products[j] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, w = data[p], R[indices[p]]
            for j in range(high - low):
                products[low + j] += x * w[low + j]


@njit(inline="always")
def _worst_siblings(tree: TreeArrays, B: Floats, y: int, first: int, s: Scores) -> int:
    """The scores of the groups along the path of y, and the worst rivals of every level from ``first`` on."""
    start, nodes, first_child, parent = tree.path_start, tree.path_nodes, tree.first_child, tree.parent
    r, z, rivals, violations, most = s.products, s.scores, s.rivals, s.violations, s.most
    begin, n, found = start[y], start[y + 1] - start[y], 0
    for t in range(first, n):
        i = nodes[begin + t]
        low, high = first_child[parent[i] + 1], first_child[parent[i] + 2]
        if high - low == 1:
            continue
        lowest, head, stop = -np.inf, found, found + most
        for j in range(low, high):
            q, total = start[j], 0.0
            for a in range(t):
                total += B[q + a] * r[nodes[begin + a]]
            total += B[q + t] * r[j]
            z[j] = total
            if j != i and total > lowest:
                found = _insert(total, j, head, found, stop, rivals, violations)
                if found == stop:
                    lowest = violations[found - 1]
        for at in range(head, found):
            violations[at] += 1.0 - z[i]
    return found


@njit(inline="always")
def _worst_of_all(tree: TreeArrays, y: int, s: Scores) -> int:
    """The scores of all nodes, summed down the paths, and the worst rivals of the label y."""
    parent, level, nodes, r, z, shared = tree.parent, tree.level, tree.path_nodes, s.products, s.scores, s.shared
    begin, n, found = tree.path_start[y], tree.path_start[y + 1] - tree.path_start[y], 0
    rivals, violations, most = s.rivals, s.violations, s.most
    for j in range(parent.shape[0]):
        above = parent[j]
        z[j] = r[j] + (z[above] if above >= 0 else 0.0)
        if level[j] <= n and nodes[begin + level[j] - 1] == j:
            shared[j] = level[j]
        else:
            shared[j] = shared[above] if above >= 0 else 0
    own, lowest = z[y], -np.inf
    for j in range(parent.shape[0]):
        v = 0.5 * (n + level[j] - 2 * shared[j]) * (1.0 - own + z[j])
        if j != y and v > lowest:
            found = _insert(v, j, 0, found, most, rivals, violations)
            if found == most:
                lowest = violations[found - 1]
    return found


@njit(inline="always")
def _insert(
    v: float, j: int, head: int, found: int, stop: int, rivals: NDArray[np.int32], violations: Floats
) -> int:  # fmt: skip
    """Put rival j in its place among those from ``head`` on, which fall; the last goes if there are ``stop``."""
    at = min(found, stop - 1)
    while at > head and violations[at - 1] < v:
        violations[at], rivals[at] = violations[at - 1], rivals[at - 1]
        at -= 1
    violations[at], rivals[at] = v, j
    return min(found + 1, stop)


@njit(inline="always")
def pair(
    nodes: NDArray[np.int32], level: NDArray[np.int32], begin: int, n: int, y: int, all_rival: bool,
    shared: NDArray[np.int32], scores: Floats, j: int,
) -> tuple[int, float, float]:  # fmt: skip
    """Of the pair in which j is the rival: the node, the scale, and the violation times the scale.

    The path of y are the n ``nodes`` from ``begin`` on.
    """
    if all_rival:
        scale = 0.5 * (n + level[j] - 2 * shared[j])
        return y, scale, scale * (1.0 - scores[y] + scores[j])
    i = nodes[begin + level[j] - 1]
    return i, 1.0, 1.0 - scores[i] + scores[j]
