"""One example of H-M3 where all labelings, closed or not, compete with the true set: Rousu et al. 2005, equation 7.

Beside the masses p_j of the nodes there are those of the edges: r_j for node j and its parent together, behind those of
the nodes. They are the marginals of a distribution if ``max(0, p_j + p_parent - bound) <= r_j <= min(p_j, p_parent)``.
With ``a_j`` as for closed sets and ``b_j = sum_i (bound_i y_ij - r_ij) x_i``, in the second half of the columns,

    |w|^2 = sum_j |b_j|^2 + |a_parent - b_j|^2 + |a_j - b_j|^2 + |b_j - a_parent - a_j|^2,

a child of the root has ``2 |a_j|^2`` and no r.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.marginals.example import Example, MarkovTree, Sets
from solvers.numerics.array_types import Bools, Floats, Ints32
from solvers.numerics.copies import copy

SWEEPS = 2


class Edges(NamedTuple):
    """Scratch of a step: by mass a product with the norm's matrix, by node whether the edge above goes along."""

    product: Floats
    along: Bools


@njit(cache=True, nogil=True)
def blank_edges(m: int) -> Edges:
    """Room for the edges of m nodes."""
    return Edges(np.empty(2 * m), np.zeros(m, np.bool_))


@njit(cache=True, nogil=True)
def losses_of_labelings(tree: MarkovTree, sets: Sets, i: int, example: Example) -> None:
    """The flags of the true set, and lam: a labeling u loses ``sum lam_j (u_j - y_j)``, and the same of its edges."""
    parent, y, lam, worth, nodes = tree.parent, example.is_true, example.loss, sets.worth, sets.nodes
    m = parent.shape[0]
    for j in range(m):
        y[j] = False
    for at in range(sets.indptr[i], sets.indptr[i + 1]):
        y[nodes[at]] = True
    for j in range(m):
        y[m + j] = y[j] and parent[j] >= 0
        lam[j], lam[m + j] = 0.0, 0.0
    for j in range(m):
        above, count = parent[j], worth[j]
        if above < 0 or not sets.hierarchical:
            lam[j] += -count if y[j] else count
        elif y[j]:
            lam[above] += count
            lam[m + j] = -count
        elif y[above]:
            lam[m + j] = count
        else:
            lam[j] += count
            lam[m + j] = -count


@njit(cache=True, nogil=True)
def gradient_on_labelings(tree: MarkovTree, example: Example) -> None:
    """The gradient in the masses from the scores s = A' x_i: ``loss - K mu`` of Rousu et al. 2005, section 3."""
    copy(example.loss, example.gradient)
    _add_product(tree.parent, example.scores, example.gradient)


@njit(inline="always")
def _add_product(parent: Ints32, s: Floats, g: Floats) -> None:
    """g += the matrix of the squared norm times s."""
    m = parent.shape[0]
    for j in range(m):
        above = parent[j]
        if above < 0:
            g[j] += 2.0 * s[j]
        else:
            a, b, c = s[above], s[j], s[m + j]
            g[j] += 2.0 * b - 2.0 * c + a
            g[above] += 2.0 * a - 2.0 * c + b
            g[m + j] += 4.0 * c - 2.0 * a - 2.0 * b


@njit(cache=True, nogil=True)
def best_labeling(tree: MarkovTree, example: Example) -> float:
    """The labeling u with the largest sum of the gradient, and that sum (Rousu et al. 2005, Algorithm 2, line 4)."""
    parent, g, u = tree.parent, example.gradient, example.best
    m, total = parent.shape[0], 0.0
    on, off = example.direction[:m], example.direction[m:]
    for j in range(m):
        on[j], off[j] = g[j], 0.0
    for j in range(m - 1, -1, -1):
        if parent[j] >= 0:
            on[parent[j]] += max(off[j], on[j] + g[m + j])
            off[parent[j]] += max(off[j], on[j])
    for j in range(m):
        above = parent[j]
        edge = g[m + j] if above >= 0 and u[above] else 0.0
        u[j] = on[j] + edge > off[j]
        if u[j]:
            total += g[j] + edge
    return total


@njit(cache=True, nogil=True)
def ascend_on_labelings(tree: MarkovTree, bound: float, K: float, gap: float, example: Example, edges: Edges) -> None:
    """Exact steps of the masses: towards the best labeling, then of single ones, up and down the tree."""
    _towards_best(tree, bound, K, gap, example, edges.product)
    parent, first_child, degree, p, g = tree.parent, tree.first_child, tree.degree, example.mass, example.gradient
    along, m = edges.along, parent.shape[0]
    for _ in range(SWEEPS):
        for j in range(m - 1, -1, -1):
            _move(parent, first_child, degree, bound, K, j, p, g, along)
            _move_edge(parent, bound, K, j, p, g)
        for j in range(m):
            _move(parent, first_child, degree, bound, K, j, p, g, along)


@njit(cache=True, nogil=True)
def _towards_best(tree: MarkovTree, bound: float, K: float, gap: float, example: Example, z: Floats) -> None:
    """Conditional gradient: the exact step towards all mass on the best labeling (Algorithm 2, lines 5 to 12)."""
    parent, p, q, g, u = tree.parent, example.mass, example.direction, example.gradient, example.best
    m, curvature = parent.shape[0], 0.0
    for j in range(m):
        above = parent[j]
        q[j] = (bound if u[j] else 0.0) - p[j]
        q[m + j] = (bound if above >= 0 and u[j] and u[above] else 0.0) - p[m + j]
        z[j], z[m + j] = 0.0, 0.0
    _add_product(parent, q, z)
    for j in range(2 * m):
        curvature += q[j] * z[j]
    whole = gap >= K * curvature
    step = 1.0 if whole else gap / (K * curvature)
    for j in range(m):
        above = parent[j]
        if whole:
            p[j] = bound if u[j] else 0.0
            p[m + j] = bound if above >= 0 and u[j] and u[above] else 0.0
        else:
            p[j] += step * q[j]
            p[m + j] += step * q[m + j]
    for j in range(2 * m):
        g[j] -= K * step * z[j]


@njit(inline="always")
def _choose(up: bool, bound: float, r: float, other: float, own: float, slope: float) -> tuple[bool, float]:
    """Whether an edge's mass goes along with that of its end ``own``, which moves up or down, and how far that goes."""
    if up:
        with_other, without = other - r, bound - other - own + r
        along = (slope > 0.0 and with_other > 0.0) or without <= 0.0
    else:
        with_other, without = r, own - r
        along = (slope < 0.0 and with_other > 0.0) or without <= 0.0
    return along, max(0.0, with_other if along else without)


@njit(inline="always")
def _move(
    parent: Ints32, first_child: Ints32, degree: Floats, bound: float, K: float, j: int, p: Floats, g: Floats,
    along: Bools,
) -> None:  # fmt: skip
    """The exact step of one mass up or down, each edge's mass going along or not as it gains more."""
    m = parent.shape[0]
    for way in range(2):
        up = way == 0
        room, slope = bound - p[j] if up else p[j], g[j]
        if parent[j] >= 0:
            along[j], far = _choose(up, bound, p[m + j], p[parent[j]], p[j], g[m + j])
            room = min(room, far)
            slope += g[m + j] if along[j] else 0.0
        for child in range(first_child[j + 1], first_child[j + 2]):
            along[child], far = _choose(up, bound, p[m + child], p[child], p[j], g[m + child])
            room = min(room, far)
            slope += g[m + child] if along[child] else 0.0
        if not up:
            slope = -slope
        if slope > 0.0 and room > 0.0:
            step = min(slope / (K * degree[j]), room)
            _shift(parent, first_child, K, j, step if up else -step, p, g, along)
            return


@njit(inline="always")
def _shift(
    parent: Ints32, first_child: Ints32, K: float, j: int, step: float, p: Floats, g: Floats, along: Bools
) -> None:
    """Move p_j by step, and with it the masses of those of its edges that ``along`` flags, by child."""
    m = parent.shape[0]
    p[j] += step
    if parent[j] < 0:
        g[j] -= K * 2.0 * step
    else:
        edge = step if along[j] else 0.0
        p[m + j] += edge
        g[j] -= K * (2.0 * step - 2.0 * edge)
        g[parent[j]] -= K * (step - 2.0 * edge)
        g[m + j] -= K * (4.0 * edge - 2.0 * step)
    for child in range(first_child[j + 1], first_child[j + 2]):
        edge = step if along[child] else 0.0
        p[m + child] += edge
        g[j] -= K * (2.0 * step - 2.0 * edge)
        g[child] -= K * (step - 2.0 * edge)
        g[m + child] -= K * (4.0 * edge - 2.0 * step)


@njit(inline="always")
def _move_edge(parent: Ints32, bound: float, K: float, j: int, p: Floats, g: Floats) -> None:
    """The exact step of the mass of the edge above j alone."""
    m, above = parent.shape[0], parent[j]
    if above < 0:
        return
    low, high = max(0.0, p[j] + p[above] - bound), min(p[j], p[above])
    step = min(max(p[m + j] + g[m + j] / (4.0 * K), low), high) - p[m + j]
    if step != 0.0:
        p[m + j] += step
        g[m + j] -= K * 4.0 * step
        g[j] += K * 2.0 * step
        g[above] += K * 2.0 * step


@njit(cache=True, nogil=True)
def square_norm(tree: MarkovTree, A: Floats) -> float:
    """|w|^2 of A."""
    parent, total = tree.parent, 0.0
    m = parent.shape[0]
    for f in range(A.shape[0]):
        a, part = A[f], 0.0
        for j in range(m):
            above = parent[j]
            if above < 0:
                part += 2.0 * a[j] * a[j]
            else:
                b, c, d = a[above], a[j], a[m + j]
                part += d * d + (b - d) ** 2 + (c - d) ** 2 + (d - b - c) ** 2
        total += part
    return total


@njit(cache=True, nogil=True)
def to_nodes(tree: MarkovTree, A: Floats, W: Floats) -> None:
    """W (n_features, n_nodes): the score of a closed set is a constant more than the sum of ``W_j . x`` over it."""
    parent, m = tree.parent, tree.parent.shape[0]
    for f in range(A.shape[0]):
        a, w = A[f], W[f]
        for j in range(m):
            above = parent[j]
            if above < 0:
                w[j] = 2.0 * a[j]
            else:
                w[j] = 2.0 * a[m + j] - a[above]
                w[above] += 2.0 * a[above] + a[j] - 2.0 * a[m + j]
