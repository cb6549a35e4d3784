"""The hinges of machines over a label tree: which nodes rival which, and the rivals that come closest.

A hinge belongs to an example. Its pairs are of a node i on the path of the example's label and a rival j, which i must
beat by a margin: i's siblings (Zhou et al. 2011, the constraints of equation 4), or all other nodes. The loss is the
largest of the pairs' violations, 0 if there is none; each is ``scale (1 - w_i . x + w_j . x)``.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.products import with_all, with_range, with_some
from solvers.labels.tree_factor import weight
from solvers.labels.tree_paths import TreeArrays, shared_depth
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients


class Hinges(NamedTuple):
    """The hinges: row of X, node whose path is walked, the first level with pairs, the bound; whether all nodes rival.

    Where they do, the pairs are those of the label with every other node, their scale is half the length of the path
    between the two, and B is all ones along the paths, so that weights sum up as in Zhou et al. 2011, equation 3.
    """

    row: Ints32
    node: Ints32
    first: Ints32
    bound: Floats
    all_rival: bool


class Scores(NamedTuple):
    """What is known of one hinge after :func:`find_rivals`; written afresh for every hinge.

    ``products`` are R' x, ``scores`` W' x of the nodes that matter. ``rivals`` are up to ``most`` of each level, the
    worst first, with their ``violations``. :func:`score_pairs` gathers the products of the nodes ``needed``, in
    ``sums``.
    """

    products: Array
    scores: Floats
    rivals: Ints32
    violations: Floats
    most: int
    needed: Ints32
    is_needed: Bools
    sums: Floats


@njit(inline="always")
def blank_scores(tree: TreeArrays, R: Floats, width: int, most: int) -> Scores:
    """Room for what is found of one hinge; ``width`` is how many products with R there are, padding included."""
    m, depth = tree.parent.shape[0], tree.level[tree.parent.shape[0] - 1]
    return Scores(
        np.zeros(width, R.dtype), np.zeros(m), np.empty(most * depth, np.int32), np.empty(most * depth), most,
        np.empty(m, np.int32), np.zeros(m, np.bool_), np.empty(m),
    )  # fmt: skip


@njit(inline="always")
def find_rivals(
    rows: Any, tree: TreeArrays, hinges: Hinges, B: Floats, b: int, R: Floats, narrow: bool, s: Scores
) -> int:
    """Score hinge b, whose rivals are siblings, with R, and find the worst of each level: how many there are.

    ``narrow`` takes the products with the groups of siblings along the path alone, else with all nodes.
    """
    i = hinges.row[b]
    if narrow:
        _score_groups(rows, tree, hinges, b, R, s.products)
    else:
        with_all(rows, i, R, s.products)
    y = hinges.node[b]
    found: int = _worst_siblings(tree, B, y, hinges.first[b], s)
    return found


@njit(inline="always")
def score_pairs(
    rows: Any, tree: TreeArrays, hinges: Hinges, pool: Coefficients, b: int, B: Floats, R: Floats, s: Scores
) -> None:
    """Score with R the nodes of the pairs of hinge b that have a dual variable, and no others."""
    start, nodes, level, classes = tree.path_start, tree.path_nodes, tree.level, pool.classes
    products, scores, needed, is_needed = s.products, s.scores, s.needed, s.is_needed
    i, y = hinges.row[b], hinges.node[b]
    first, last = pool.start[b], pool.start[b] + pool.length[b]
    n = on_paths(start, nodes, y, classes, first, last, needed, is_needed)
    with_some(rows, i, R, needed, n, s.sums, products)
    for t in range(level[y]):
        scores[nodes[start[y] + t]] = weight(start, nodes, B, products, nodes[start[y] + t])
    for at in range(first, last):
        scores[classes[at]] = weight(start, nodes, B, products, classes[at])


@njit(inline="always")
def on_paths(
    start: Ints, nodes: Ints32, y: int, rivals: Ints32, first: int, last: int, needed: Ints32, is_needed: Bools
) -> int:
    """The nodes on the paths of y and of ``rivals[first:last]``, each once in ``needed``: how many.

    ``is_needed`` is False of every node, before and after.
    """
    n = 0
    for at in range(first - 1, last):
        j = rivals[at] if at >= first else y
        p = start[j + 1] - 1
        while p >= start[j] and not is_needed[np.uint64(nodes[p])]:
            needed[n] = nodes[p]
            is_needed[np.uint64(nodes[p])] = True
            n += 1
            p -= 1
    for t in range(n):
        is_needed[needed[t]] = False
    return n


@njit(inline="always")
def is_narrow(tree: TreeArrays, hinges: Hinges, b: int, width: int) -> bool:
    """Whether the groups along the path of hinge b are so small a part of R that reading them alone is faster."""
    parent, nodes, first_child, spread = tree.parent, tree.path_nodes, tree.first_child, 0
    begin, end = tree.path_start[hinges.node[b]], tree.path_start[hinges.node[b] + 1]
    for t in range(begin, end):
        above = parent[nodes[t]]
        spread += first_child[above + 2] - first_child[above + 1]
    return bool(8 * (spread + 4 * (end - begin)) < width)


@njit(inline="always")
def _score_groups(rows: Any, tree: TreeArrays, hinges: Hinges, b: int, R: Floats, products: Floats) -> None:
    """products = R' x, of the groups of siblings along the path of hinge b."""
    i, y = hinges.row[b], hinges.node[b]
    begin, n = tree.path_start[y], tree.path_start[y + 1] - tree.path_start[y]
    parent, nodes, first_child, first = tree.parent, tree.path_nodes, tree.first_child, hinges.first[b]
    for t in range(n):
        node = nodes[begin + t]
        low, high = first_child[parent[node] + 1], first_child[parent[node] + 2]
        if t < first or high - low == 1:
            # its own group has no pair here, but what is below needs the node itself
            low, high = node, node + 1
        with_range(rows, i, R, low, high, 0, products)


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
                found = insert(total, j, head, found, stop, rivals, violations)
                if found == stop:
                    lowest = violations[found - 1]
        for at in range(head, found):
            violations[at] += 1.0 - z[i]
    return found


@njit(inline="always")
def insert(v: float, j: int, head: int, found: int, stop: int, rivals: Ints32, violations: Floats) -> int:
    """Put rival j in its place among those from ``head`` on, which fall; the last goes if there are ``stop``."""
    at = min(found, stop - 1)
    while at > head and violations[at - 1] < v:
        violations[at], rivals[at] = violations[at - 1], rivals[at - 1]
        at -= 1
    violations[at], rivals[at] = v, j
    return min(found + 1, stop)


@njit(inline="always")
def pair(level: Ints32, start: Ints, nodes: Ints32, y: int, all_rival: bool, j: int) -> tuple[int, float]:
    """Of the pair in which j is the rival: the node, and the scale."""
    if all_rival:
        return y, 0.5 * (level[y] + level[j] - 2 * shared_depth(level, start, nodes, y, j))
    return nodes[start[y] + level[j] - 1], 1.0
