"""One example of H-M3 where closed sets alone compete with the true one: loss, gradient, best set and exact steps.

The masses are ``0 <= p_j <= p_parent(j) <= bound``, p_j being what the distribution gives to the sets with node j. With
``a_j = sum_i (bound_i y_ij - p_ij) x_i`` and 0 above the top,

    |w|^2 = sum_j |a_j|^2 + |a_parent(j) - a_j|^2 + |a_parent(j)|^2 = sum_j degree_j |a_j|^2 - 2 a_j . a_parent(j),

where ``degree_j = 2 (1 + number of children)``. All that changes with one example is x_i times a change of p.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.marginals.example import Example, MarkovTree, Sets
from solvers.numerics.array_types import Floats, Ints32


class Groups(NamedTuple):
    """Nodes that may move, and the groups of equal masses that hang together among them.

    ``head`` is the first node of each node's group, -1 without a mass; ``following`` the next one, -1 behind the last;
    ``last`` and ``curvature`` are of a group, by its head.
    """

    reach: Ints32
    head: Ints32
    following: Ints32
    last: Ints32
    curvature: Floats


@njit(cache=True, nogil=True)
def blank_groups(m: int) -> Groups:
    """Room for the groups of m nodes."""
    return Groups(
        np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m)
    )


@njit(cache=True, nogil=True)
def losses_of_sets(tree: MarkovTree, sets: Sets, i: int, example: Example) -> None:
    """The flags of the true set, and lam: the loss of a closed set u is ``sum_j lam_j (u_j - y_j)``.

    Rousu et al. 2005, section 2.1: the symmetric difference, or the hierarchical loss, one for closed sets with its
    simpler form over edges.
    """
    y, lam, parent, first_child = example.is_true, example.loss, tree.parent, tree.first_child
    indptr, nodes, worth = sets.indptr, sets.nodes, sets.worth
    for j in range(parent.shape[0]):
        y[j] = False
        lam[j] = worth[j] if not sets.hierarchical or parent[j] < 0 else 0.0
    for at in range(indptr[i], indptr[i + 1]):
        j = nodes[at]
        y[j] = True
        lam[j] = -worth[j]
        if sets.hierarchical:
            if parent[j] >= 0:
                lam[parent[j]] += worth[j]
            for child in range(first_child[j + 1], first_child[j + 2]):
                lam[child] = worth[child]


@njit(cache=True, nogil=True)
def gradient_on_sets(tree: MarkovTree, example: Example) -> None:
    """The gradient in the masses from the scores s = A' x_i: ``loss - K mu`` of Rousu et al. 2005, section 3."""
    parent, degree, g, s, lam = tree.parent, tree.degree, example.gradient, example.scores, example.loss
    for j in range(parent.shape[0]):
        g[j] = lam[j] + degree[j] * s[j]
    for j in range(parent.shape[0]):
        if parent[j] >= 0:
            g[j] -= s[parent[j]]
            g[parent[j]] -= s[j]


@njit(cache=True, nogil=True)
def best_set(tree: MarkovTree, example: Example) -> float:
    """The closed set u with the largest sum of the gradient, and that sum (Rousu et al. 2005, Algorithm 2, line 4)."""
    parent, g, value, u, total = tree.parent, example.gradient, example.direction, example.best, 0.0
    for j in range(parent.shape[0]):
        value[j] = g[j]
    for j in range(parent.shape[0] - 1, -1, -1):
        if parent[j] >= 0:
            value[parent[j]] += max(value[j], 0.0)
    for j in range(parent.shape[0]):
        u[j] = value[j] > 0.0 and (parent[j] < 0 or u[parent[j]])
        if u[j]:
            total += g[j]
    return total


@njit(cache=True, nogil=True)
def ascend_on_sets(tree: MarkovTree, bound: float, K: float, gap: float, example: Example, groups: Groups) -> None:
    """Exact steps of the masses: towards the best set, of single nodes, and of groups of equal masses."""
    _towards_best(tree, bound, K, gap, example)
    n = _move_down(tree, bound, K, example, groups.reach)
    _make_groups(tree, example, n, groups)
    parent, first_child, degree, p, g = tree.parent, tree.first_child, tree.degree, example.mass, example.gradient
    reach, head, following, curvature = groups.reach, groups.head, groups.following, groups.curvature
    for at in range(n):
        j = reach[at]
        # a group of one node has had its step
        if head[j] == j and following[j] >= 0:
            _move_group(parent, first_child, degree, bound, K, j, p, g, head, following, curvature)


@njit(cache=True, nogil=True)
def _towards_best(tree: MarkovTree, bound: float, K: float, gap: float, example: Example) -> None:
    """Conditional gradient: the exact step towards all mass on the best set (Algorithm 2, lines 5 to 12)."""
    parent, degree = tree.parent, tree.degree
    p, q, g, u = example.mass, example.direction, example.gradient, example.best
    curvature = 0.0
    for j in range(parent.shape[0]):
        q[j] = (bound if u[j] else 0.0) - p[j]
        if q[j] != 0.0:
            curvature += degree[j] * q[j] * q[j]
            if parent[j] >= 0:
                curvature -= 2.0 * q[j] * q[parent[j]]
    whole = gap >= K * curvature
    step = 1.0 if whole else gap / (K * curvature)
    for j in range(parent.shape[0]):
        above = parent[j]
        if q[j] != 0.0:
            before = p[j]
            # the order of the masses must outlast rounding
            p[j] = (bound if u[j] else 0.0) if whole else min(p[j] + step * q[j], bound)
            if above >= 0:
                p[j] = min(p[j], p[above])
            q[j] = K * (p[j] - before)
            g[j] -= degree[j] * q[j]
        if above >= 0:
            g[j] += q[above]
            g[above] += q[j]


@njit(inline="always")
def _move(
    parent: Ints32, first_child: Ints32, degree: Floats, bound: float, K: float, j: int, p: Floats, g: Floats
) -> None:
    """The exact step of one mass between its largest child's and its parent's."""
    above = parent[j]
    top = p[above] if above >= 0 else bound
    if top == 0.0 or (p[j] == 0.0 and g[j] <= 0.0) or (p[j] == top and g[j] >= 0.0):
        return
    low = 0.0
    if g[j] < 0.0:
        for child in range(first_child[j + 1], first_child[j + 2]):
            low = max(low, p[child])
    new = min(max(p[j] + g[j] / (K * degree[j]), low), top)
    if new != p[j]:
        change = K * (new - p[j])
        p[j] = new
        g[j] -= degree[j] * change
        if above >= 0:
            g[above] += change
        for child in range(first_child[j + 1], first_child[j + 2]):
            g[child] += change


@njit(inline="always")
def _append_children(first_child: Ints32, j: int, reach: Ints32, n: int) -> Any:
    """Put the children of a node, of the root for -1, at the end of a list of n nodes; its new length."""
    for child in range(first_child[j + 1], first_child[j + 2]):
        reach[n] = child
        n += 1
    return n


@njit(cache=True, nogil=True)
def _move_down(tree: MarkovTree, bound: float, K: float, example: Example, reach: Ints32) -> Any:
    """Steps of single masses, parents first; ``reach`` becomes the nodes under one with mass, the only ones to move.

    They ascend, as nodes are numbered level by level. Returns how many they are.
    """
    parent, first_child, degree, p, g = tree.parent, tree.first_child, tree.degree, example.mass, example.gradient
    n, at = _append_children(first_child, -1, reach, 0), 0
    while at < n:
        j = reach[at]
        _move(parent, first_child, degree, bound, K, j, p, g)
        if p[j] > 0.0:
            n = _append_children(first_child, j, reach, n)
        at += 1
    return n


@njit(cache=True, nogil=True)
def _make_groups(tree: MarkovTree, example: Example, n: int, groups: Groups) -> None:
    """Group the first n nodes of ``reach``: a node joins its parent's group where their masses are equal."""
    parent, degree, p = tree.parent, tree.degree, example.mass
    head, following, last, curvature = groups.head, groups.following, groups.last, groups.curvature
    reach = groups.reach
    for at in range(n):
        j = reach[at]
        above = parent[j]
        if p[j] == 0.0:
            head[j] = -1
            continue
        if above >= 0 and p[above] == p[j]:
            first = head[above]
            head[j] = first
            following[last[first]] = j
            curvature[first] += degree[j] - 2.0
        else:
            first = j
            head[j], curvature[j] = j, degree[j]
        last[first], following[j] = j, -1


@njit(cache=True, nogil=True)
def _move_group(
    parent: Ints32, first_child: Ints32, degree: Floats, bound: float, K: float, first: int, p: Floats, g: Floats,
    head: Ints32, following: Ints32, curvature: Floats
) -> None:  # fmt: skip
    """The exact step of a group, as a unit, between the largest mass below and that of its first node's parent."""
    above = parent[first]
    top, slope, bottom, j = p[above] if above >= 0 else bound, 0.0, 0.0, first
    while j >= 0:
        slope += g[j]
        for child in range(first_child[j + 1], first_child[j + 2]):
            if head[child] != first:
                bottom = max(bottom, p[child])
        j = following[j]
    new = min(max(p[first] + slope / (K * curvature[first]), bottom), top)
    change = K * (new - p[first])
    if change == 0.0:
        return
    if above >= 0:
        g[above] += change
    j = first
    while j >= 0:
        p[j] = new
        g[j] -= degree[j] * change
        if j != first:
            g[j] += change
            g[parent[j]] += change
        for child in range(first_child[j + 1], first_child[j + 2]):
            if head[child] != first:
                g[child] += change
        j = following[j]


@njit(cache=True, nogil=True)
def square_norm(tree: MarkovTree, A: Floats) -> float:
    """|w|^2 of A."""
    parent, degree, total = tree.parent, tree.degree, 0.0
    for f in range(A.shape[0]):
        a, part = A[f], 0.0
        for j in range(parent.shape[0]):
            part += degree[j] * a[j] * a[j]
            if parent[j] >= 0:
                part -= 2.0 * a[j] * a[parent[j]]
        total += part
    return total


@njit(cache=True, nogil=True)
def to_nodes(tree: MarkovTree, A: Floats, W: Floats) -> None:
    """W (n_features, n_nodes): the score of a closed set is a constant more than the sum of ``W_j . x`` over it."""
    parent, degree = tree.parent, tree.degree
    for f in range(A.shape[0]):
        a, w = A[f], W[f]
        for j in range(parent.shape[0]):
            w[j] = degree[j] * a[j]
        for j in range(parent.shape[0]):
            above = parent[j]
            if above >= 0:
                w[j] -= a[above]
                w[above] -= a[j]
