"""One example of H-M3 on a label graph: loss, gradient, best set and exact steps over closed sets.

As in ``closed_sets``, but a node may have several parents, and a closed set has all of them with the node. The masses
are ``0 <= p_j <= p_k <= bound`` for each parent k of j. Each edge has its four vectors: as all sets with j have k, too,
the masses of an edge still follow from those of its ends, and

    |w|^2 = sum |a_j|^2 + |a_k - a_j|^2 + |a_k|^2 = sum_j degree_j |a_j|^2 - sum 2 a_j . a_k,

over all edges (k, j); ``degree_j`` is twice the number of edges of node j, that from the root included. These masses
are the node marginals of distributions over closed sets: the matrix of ``p_j - p_k <= 0`` has a 1 and a -1 in each row,
so it is totally unimodular, and the corners are the closed sets. The best one is a minimum cut.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.closures import Cut, best_closure, blank_cut
from solvers.hierarchical.marginals.closed_sets import Groups
from solvers.hierarchical.marginals.example import Example, MarkovTree, Sets
from solvers.numerics.array_types import Floats, Ints32


class Search(NamedTuple):
    """What a search for the best set needs: all nodes, that they are one part, and scratch; nothing in a tree."""

    nodes: Ints32
    part: Ints32
    cut: Cut


@njit(cache=True, nogil=True)
def blank_search(tree: MarkovTree) -> Search:
    """Room for searches."""
    n_edges = tree.edges.below.shape[0]
    m = tree.parent.shape[0] if n_edges > 0 else 0
    return Search(np.arange(m).astype(np.int32), np.zeros(m, np.int32), blank_cut(m, n_edges))


@njit(cache=True, nogil=True)
def losses_in_graph(tree: MarkovTree, sets: Sets, i: int, example: Example) -> None:
    """The flags of the true set, and lam: the loss of a closed set u is ``sum_j lam_j (u_j - y_j)``.

    The hierarchical loss counts what a wrong node counts by the share of its parents that are right. So it is a sum
    over edges, and linear in the masses.
    """
    y, lam, worth, share = example.is_true, example.loss, sets.worth, tree.edges.share
    first, above = tree.edges.parents
    first_child, children = tree.edges.children
    for j in range(lam.shape[0]):
        y[j] = False
        lam[j] = worth[j] if not sets.hierarchical or first[j] == first[j + 1] else 0.0
    for at in range(sets.indptr[i], sets.indptr[i + 1]):
        j = sets.nodes[at]
        y[j] = True
        lam[j] = -worth[j]
        if sets.hierarchical:
            for e in range(first[j], first[j + 1]):
                lam[above[e]] += share[j] * worth[j]
            # true ones come later, and what they have here is replaced then
            for e in range(first_child[j], first_child[j + 1]):
                child = children[e]
                lam[child] += share[child] * worth[child]


@njit(cache=True, nogil=True)
def gradient_on_graph(tree: MarkovTree, example: Example) -> None:
    """The gradient in the masses from the scores s = A' x_i."""
    degree, below, above = tree.degree, tree.edges.below, tree.edges.above
    g, s, lam = example.gradient, example.scores, example.loss
    for j in range(g.shape[0]):
        g[j] = lam[j] + degree[j] * s[j]
    for e in range(below.shape[0]):
        g[below[e]] -= s[above[e]]
        g[above[e]] -= s[below[e]]


@njit(cache=True, nogil=True)
def best_set_of_graph(tree: MarkovTree, example: Example, search: Search) -> float:
    """The closed set u with the largest sum of the gradient, and that sum."""
    parents, nodes, part, cut = tree.edges.parents, search.nodes, search.part, search.cut
    found: float = best_closure(parents, example.gradient, nodes, part, 0, example.best, cut)
    return found


@njit(cache=True, nogil=True)
def ascend_on_graph(tree: MarkovTree, bound: float, K: float, gap: float, example: Example, groups: Groups) -> None:
    """Exact steps of the masses: towards the best set, of single nodes, and of groups of equal masses."""
    _towards_best(tree, bound, K, gap, example)
    _move_down(tree, bound, K, example)
    _make_groups(tree, example, groups)
    head, following = groups.head, groups.following
    for j in range(head.shape[0]):
        # a group of one node has had its step
        if head[j] == j and following[j] >= 0:
            _move_group(tree, bound, K, j, example, groups)


@njit(cache=True, nogil=True)
def _towards_best(tree: MarkovTree, bound: float, K: float, gap: float, example: Example) -> None:
    """Conditional gradient: the exact step towards all mass on the best set."""
    degree, below, above = tree.degree, tree.edges.below, tree.edges.above
    p, q, g, u = example.mass, example.direction, example.gradient, example.best
    first, parents = tree.edges.parents
    curvature = 0.0
    for j in range(p.shape[0]):
        q[j] = (bound if u[j] else 0.0) - p[j]
        curvature += degree[j] * q[j] * q[j]
    for e in range(below.shape[0]):
        curvature -= 2.0 * q[below[e]] * q[above[e]]
    whole = gap >= K * curvature
    step = 1.0 if whole else gap / (K * curvature)
    for j in range(p.shape[0]):
        if q[j] != 0.0:
            before = p[j]
            # the order of the masses must outlast rounding
            p[j] = (bound if u[j] else 0.0) if whole else min(p[j] + step * q[j], bound)
            for e in range(first[j], first[j + 1]):
                p[j] = min(p[j], p[parents[e]])
            q[j] = K * (p[j] - before)
            g[j] -= degree[j] * q[j]
    for e in range(below.shape[0]):
        g[below[e]] += q[above[e]]
        g[above[e]] += q[below[e]]


@njit(cache=True, nogil=True)
def _move_down(tree: MarkovTree, bound: float, K: float, example: Example) -> None:
    """The exact step of each mass between its largest child's and its smallest parent's, parents first."""
    degree, p, g = tree.degree, example.mass, example.gradient
    first, above = tree.edges.parents
    first_child, children = tree.edges.children
    for j in range(p.shape[0]):
        top = bound
        for e in range(first[j], first[j + 1]):
            top = min(top, p[above[e]])
        if top == 0.0 or (p[j] == 0.0 and g[j] <= 0.0) or (p[j] == top and g[j] >= 0.0):
            continue
        low = 0.0
        if g[j] < 0.0:
            for e in range(first_child[j], first_child[j + 1]):
                low = max(low, p[children[e]])
        new = min(max(p[j] + g[j] / (K * degree[j]), low), top)
        if new != p[j]:
            change = K * (new - p[j])
            p[j] = new
            g[j] -= degree[j] * change
            for e in range(first[j], first[j + 1]):
                g[above[e]] += change
            for e in range(first_child[j], first_child[j + 1]):
                g[children[e]] += change


@njit(cache=True, nogil=True)
def _make_groups(tree: MarkovTree, example: Example, groups: Groups) -> None:
    """Group the nodes with a mass: a node joins those of its parents whose masses equal its own."""
    degree, p = tree.degree, example.mass
    head, following, last, curvature = groups.head, groups.following, groups.last, groups.curvature
    first, above = tree.edges.parents
    for j in range(p.shape[0]):
        head[j] = j if p[j] > 0.0 else -1
        following[j], last[j], curvature[j] = -1, j, degree[j]
        if p[j] == 0.0:
            continue
        for e in range(first[j], first[j + 1]):
            k = above[e]
            if p[k] == p[j]:
                if head[k] != head[j]:
                    _unite(head[k], head[j], head, following, last, curvature)
                curvature[head[j]] -= 2.0


@njit(cache=True, nogil=True)
def _unite(one: int, other: int, head: Ints32, following: Ints32, last: Ints32, curvature: Floats) -> None:
    """Put the other group behind the one."""
    following[last[one]] = other
    last[one] = last[other]
    curvature[one] += curvature[other]
    j = other
    while j >= 0:
        head[j] = one
        j = following[j]


@njit(cache=True, nogil=True)
def _move_group(tree: MarkovTree, bound: float, K: float, one: int, example: Example, groups: Groups) -> None:
    """The exact step of a group, as a unit, between the largest mass below it and the smallest above it."""
    degree, p, g, head, following = tree.degree, example.mass, example.gradient, groups.head, groups.following
    first, above = tree.edges.parents
    first_child, children = tree.edges.children
    top, slope, bottom, j = bound, 0.0, 0.0, np.int64(one)
    while j >= 0:
        slope += g[j]
        for e in range(first[j], first[j + 1]):
            if head[above[e]] != one:
                top = min(top, p[above[e]])
        for e in range(first_child[j], first_child[j + 1]):
            if head[children[e]] != one:
                bottom = max(bottom, p[children[e]])
        j = np.int64(following[j])
    new = min(max(p[one] + slope / (K * groups.curvature[one]), bottom), top)
    change = K * (new - p[one])
    if change == 0.0:
        return
    j = np.int64(one)
    while j >= 0:
        p[j] = new
        g[j] -= degree[j] * change
        # both ends of an edge within the group have a step of the other
        for e in range(first[j], first[j + 1]):
            g[above[e]] += change
        for e in range(first_child[j], first_child[j + 1]):
            g[children[e]] += change
        j = np.int64(following[j])


@njit(cache=True, nogil=True)
def square_norm(tree: MarkovTree, A: Floats) -> float:
    """|w|^2 of A."""
    degree, below, above, total = tree.degree, tree.edges.below, tree.edges.above, 0.0
    for f in range(A.shape[0]):
        a, part = A[f], 0.0
        for j in range(degree.shape[0]):
            part += degree[j] * a[j] * a[j]
        for e in range(below.shape[0]):
            part -= 2.0 * a[below[e]] * a[above[e]]
        total += part
    return total


@njit(cache=True, nogil=True)
def to_nodes(tree: MarkovTree, A: Floats, W: Floats) -> None:
    """W (n_features, n_nodes): the score of a closed set is a constant more than the sum of ``W_j . x`` over it."""
    degree, below, above = tree.degree, tree.edges.below, tree.edges.above
    for f in range(A.shape[0]):
        a, w = A[f], W[f]
        for j in range(degree.shape[0]):
            w[j] = degree[j] * a[j]
        for e in range(below.shape[0]):
            w[below[e]] -= a[above[e]]
            w[above[e]] -= a[below[e]]
