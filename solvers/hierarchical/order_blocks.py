"""Block ascent on the dual of H-M3 over closed label sets: visits, losses and norms.

A block is one example. Its dual point is the mass p_j that its distribution over closed sets gives to those with node
j: ``0 <= p_j <= p_parent(j) <= bound``. With ``a_j = sum_i (bound_i y_ij - p_ij) x_i`` and 0 above the top,

    |w|^2 = sum_j |a_j|^2 + |a_parent(j) - a_j|^2 + |a_parent(j)|^2 = sum_j degree_j |a_j|^2 - 2 a_j . a_parent(j),

where ``degree_j = 2 (1 + number of children)``. All that changes with one example is x_i times a change of p.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows


class Forest(NamedTuple):
    """What the kernels need of a tree: parents, children in compressed rows, and the degrees."""

    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    degree: NDArray[np.float64]


class Sets(NamedTuple):
    """The true sets in compressed rows, the bounds, what each node counts, and whether only under a right parent."""

    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    bound: NDArray[np.float64]
    worth: NDArray[np.float64]
    hierarchical: bool


@njit(inline="always")
def _loss(parent: Any, first_child: Any, sets: Any, i: int, y: Any, lam: Any) -> None:
    """Flags y of the true set, and lam: the loss of a closed set u is ``sum_j lam_j (u_j - y_j)``."""
    for j in range(parent.shape[0]):
        y[j] = False
        lam[j] = sets.worth[j] if not sets.hierarchical or parent[j] < 0 else 0.0
    for at in range(sets.indptr[i], sets.indptr[i + 1]):
        j = sets.nodes[at]
        y[j] = True
        lam[j] = -sets.worth[j]
        if sets.hierarchical:
            if parent[j] >= 0:
                lam[parent[j]] += sets.worth[j]
            for child in range(first_child[j + 1], first_child[j + 2]):
                lam[child] = sets.worth[child]


@njit(inline="always")
def _load(sets: Any, pool: Any, i: int, y: Any, p: Any) -> None:
    """The masses p of example i: those of the pool, else all on the true set."""
    for j in range(p.shape[0]):
        p[j] = sets.bound[i] if y[j] else 0.0
    for at in range(pool.start[i], pool.start[i] + pool.length[i]):
        p[pool.classes[at]] = pool.values[at]


@njit(inline="always")
def _gradient(parent: Any, degree: Any, lam: Any, s: Any, g: Any) -> None:
    """g of the masses from the scores s = A' x_i."""
    for j in range(parent.shape[0]):
        g[j] = lam[j] + degree[j] * s[j]
    for j in range(parent.shape[0]):
        if parent[j] >= 0:
            g[j] -= s[parent[j]]
            g[parent[j]] -= s[j]


@njit(inline="always")
def _best(parent: Any, g: Any, value: Any, u: Any) -> float:
    """The closed set u with the largest sum of g, and that sum."""
    total = 0.0
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


@njit(inline="always")
def _towards(parent: Any, degree: Any, bound: float, K: float, gap: float, u: Any, p: Any, q: Any, g: Any) -> None:
    """Conditional gradient: the exact step of p towards all mass on u; q is scratch."""
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
def _move(parent: Any, first_child: Any, degree: Any, bound: float, K: float, j: int, p: Any, g: Any) -> None:
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
def _append_children(first_child: Any, j: int, reach: Any, n: int) -> int:
    """Put the children of a node, of the virtual root for -1, at the end of a list of n nodes; its new length."""
    for child in range(first_child[j + 1], first_child[j + 2]):
        reach[n] = child
        n += 1
    return n


@njit(inline="always")
def _move_down(parent: Any, first_child: Any, degree: Any, bound: float, K: float, p: Any, g: Any, reach: Any) -> int:
    """Steps of single masses, parents first; ``reach`` becomes the nodes under one with mass, the only ones to move.

    They ascend, as nodes are numbered level by level. Returns how many they are.
    """
    n, at = _append_children(first_child, -1, reach, 0), 0
    while at < n:
        j = reach[at]
        _move(parent, first_child, degree, bound, K, j, p, g)
        if p[j] > 0.0:
            n = _append_children(first_child, j, reach, n)
        at += 1
    return int(n)


@njit(inline="always")
def _move_tied(
    parent: Any, first_child: Any, degree: Any, bound: float, K: float, p: Any, g: Any, reach: Any, n: int, head: Any,
    following: Any, last: Any, curvature: Any,
) -> None:  # fmt: skip
    """One exact step of every group of equal masses that hang together, as a unit; ``head`` and on are scratch.

    ``reach[:n]`` are the nodes under one with mass, ascending.
    """
    for at in range(n):
        j = reach[at]
        above = parent[j]
        if p[j] == 0.0:
            head[j] = -1
            continue
        if above >= 0 and p[above] == p[j]:
            unit = head[above]
            head[j] = unit
            following[last[unit]] = j
            curvature[unit] += degree[j] - 2.0
        else:
            unit = j
            head[j], curvature[j] = j, degree[j]
        last[unit], following[j] = j, -1
    for place in range(n):
        j = reach[place]
        # a unit of one node has had its step
        if head[j] != j or following[j] < 0:
            continue
        above = parent[j]
        top, pull, bottom, at = p[above] if above >= 0 else bound, 0.0, 0.0, j
        while at >= 0:
            pull += g[at]
            for child in range(first_child[at + 1], first_child[at + 2]):
                if head[child] != j:
                    bottom = max(bottom, p[child])
            at = following[at]
        new = min(max(p[j] + pull / (K * curvature[j]), bottom), top)
        change = K * (new - p[j])
        if change == 0.0:
            continue
        if above >= 0:
            g[above] += change
        at = j
        while at >= 0:
            p[at] = new
            g[at] -= degree[at] * change
            if at != j:
                g[at] += change
                g[parent[at]] += change
            for child in range(first_child[at + 1], first_child[at + 2]):
                if head[child] != j:
                    g[child] += change
            at = following[at]


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    forest: Forest,
    sets: Sets,
    damp: float,
    trifle: float,
    order: NDArray[np.int32],
    begin: int,
    stop: int,
    E: NDArray[np.float64],
    pool: Coefficients,
    rest: NDArray[np.uint8],
    tally: NDArray[np.float64],
) -> int:
    """Exact steps on the examples order[begin:stop], until the pool is full; the place of the first not visited.

    E (n_features, n_nodes) gives the scores, and follows the masses ``damp`` times. Of ``tally`` the sum of the gaps
    and the largest gap per bound are brought up to date.
    """
    parent, first_child, degree = forest.parent, forest.first_child, forest.degree
    m = parent.shape[0]
    s, lam, g, p, old, q = np.empty(E.shape[1]), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    y, u = np.zeros(m, np.bool_), np.zeros(m, np.bool_)
    head, following, last = np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m, np.int32)
    changed, held, values = np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m)
    reach = np.empty(m, np.int32)
    curvature = np.empty(m)
    for at in range(begin, stop):
        if pool.used[0] + m > pool.classes.shape[0]:
            return at
        i = order[at]
        bound, K = sets.bound[i], rows.squares[i] * damp
        sum_rows(E, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], s)
        _loss(parent, first_child, sets, i, y, lam)
        _load(sets, pool, i, y, p)
        _gradient(parent, degree, lam, s, g)
        gap = bound * _best(parent, g, q, u)
        for j in range(m):
            gap -= p[j] * g[j]
            old[j] = p[j]
        tally[0] += max(gap, 0.0)
        tally[1] = max(tally[1], gap / bound)
        if gap <= trifle:
            rest[i] = min(rest[i], 254) + 1
            continue
        rest[i] = 0
        _towards(parent, degree, bound, K, gap, u, p, q, g)
        n = _move_down(parent, first_child, degree, bound, K, p, g, reach)
        _move_tied(parent, first_child, degree, bound, K, p, g, reach, n, head, following, last, curvature)
        n_changed, n_held = 0, 0
        for j in range(m):
            if p[j] != old[j]:
                changed[n_changed] = j
                q[n_changed] = damp * (old[j] - p[j])
                n_changed += 1
            if p[j] != (bound if y[j] else 0.0):
                held[n_held], values[n_held] = j, p[j]
                n_held += 1
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            a, x = E[rows.indices[e]], rows.data[e]
            for t in range(n_changed):
                a[changed[t]] += x * q[t]
        put(pool, i, held, values, n_held)
    return stop


@njit(cache=True, nogil=True)
def certify(
    rows: Rows, forest: Forest, sets: Sets, A: NDArray[np.float64], pool: Coefficients, gaps: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Losses by their bounds, the linear part of the dual, a constant of both, the largest gap per bound; all gaps.

    The constant is that of examples without a length: at their optimum all mass is on the worst set.
    """
    parent, first_child, degree = forest.parent, forest.first_child, forest.degree
    m = parent.shape[0]
    s, lam, g, p, value = np.zeros(A.shape[1]), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    y, u = np.zeros(m, np.bool_), np.zeros(m, np.bool_)
    losses, linear, constant, largest = 0.0, 0.0, 0.0, 0.0
    for i in range(sets.bound.shape[0]):
        bound = sets.bound[i]
        sum_rows(A, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], s)
        _loss(parent, first_child, sets, i, y, lam)
        _load(sets, pool, i, y, p)
        _gradient(parent, degree, lam, s, g)
        loss = _best(parent, g, value, u)
        won, gap = 0.0, 0.0
        for j in range(m):
            if y[j]:
                loss -= g[j]
            shift = p[j] - (bound if y[j] else 0.0)
            won += lam[j] * shift
            gap -= g[j] * shift
        if rows.squares[i] == 0.0:
            constant += bound * loss
            gaps[i] = 0.0
            continue
        losses += bound * loss
        linear += won
        gaps[i] = max(gap + bound * loss, 0.0)
        largest = max(largest, gaps[i] / bound)
    return losses, linear, constant, largest


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, forest: Forest, sets: Sets, pool: Coefficients, A: NDArray[np.float64]) -> None:
    """A afresh from the masses, free of the rounding that many small changes have left.

    Columns beyond those of the nodes are of masses that start where the node's does.
    """
    n_nodes = forest.parent.shape[0]
    A[:] = 0.0
    y = np.zeros(n_nodes, np.bool_)
    for i in range(sets.bound.shape[0]):
        for at in range(sets.indptr[i], sets.indptr[i + 1]):
            y[sets.nodes[at]] = True
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            a, x = A[rows.indices[e]], rows.data[e]
            for at in range(pool.start[i], pool.start[i] + pool.length[i]):
                j = pool.classes[at]
                a[j] += x * ((sets.bound[i] if y[j % n_nodes] else 0.0) - pool.values[at])
        for at in range(sets.indptr[i], sets.indptr[i + 1]):
            y[sets.nodes[at]] = False


@njit(cache=True, nogil=True)
def square(forest: Forest, A: NDArray[np.float64]) -> float:
    """|w|^2 of A."""
    parent, total = forest.parent, 0.0
    for f in range(A.shape[0]):
        a, part = A[f], 0.0
        for j in range(parent.shape[0]):
            part += forest.degree[j] * a[j] * a[j]
            if parent[j] >= 0:
                part -= 2.0 * a[j] * a[parent[j]]
        total += part
    return total


@njit(cache=True, nogil=True)
def to_nodes(forest: Forest, A: NDArray[np.float64], W: NDArray[np.float64]) -> None:
    """W (n_features, n_nodes): the score of a closed set is a constant more than the sum of ``W_j . x`` over it."""
    for f in range(A.shape[0]):
        a, w = A[f], W[f]
        for j in range(forest.parent.shape[0]):
            w[j] = forest.degree[j] * a[j]
        for j in range(forest.parent.shape[0]):
            above = forest.parent[j]
            if above >= 0:
                w[j] -= a[above]
                w[above] -= a[j]


@njit(cache=True, nogil=True)
def scale(forest: Forest, sets: Sets, ratio: float, factor: float, ordered: bool, pool: Coefficients) -> None:
    """Make masses of bounds ``ratio`` times smaller those of the bounds of ``sets``, A then ``factor`` times as long.

    The factor is at most the ratio. ``ordered`` keeps a child's mass from rising above its parent's by rounding.
    """
    m = forest.parent.shape[0]
    p, y = np.zeros(2 * m), np.zeros(m, np.bool_)
    for i in range(sets.bound.shape[0]):
        bound = sets.bound[i]
        for at in range(sets.indptr[i], sets.indptr[i + 1]):
            y[sets.nodes[at]] = True
            p[sets.nodes[at]] = bound
        for at in range(pool.start[i], pool.start[i] + pool.length[i]):
            j = pool.classes[at]
            true = bound if y[j % m] else 0.0
            p[j] = min(max(true - factor * (true / ratio - pool.values[at]), 0.0), bound)
        # what is held ascends, so that parents come first
        for at in range(pool.start[i], pool.start[i] + pool.length[i]):
            j = pool.classes[at]
            if j < m and ordered and forest.parent[j] >= 0:
                p[j] = min(p[j], p[forest.parent[j]])
            pool.values[at] = p[j]
        for at in range(sets.indptr[i], sets.indptr[i + 1]):
            y[sets.nodes[at]] = False
            p[sets.nodes[at]] = 0.0
        for at in range(pool.start[i], pool.start[i] + pool.length[i]):
            p[pool.classes[at]] = 0.0
