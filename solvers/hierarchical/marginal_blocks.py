"""Block ascent on the dual of H-M3 over all labelings, closed or not: visits, losses and norms.

Beside the masses p_j of the nodes (``kernels/order_blocks.py``) a dual point has those of its edges: r_j for node j and
its parent together. They are the marginals of a distribution if ``max(0, p_j + p_parent - bound) <= r_j <= min(p_j,
p_parent)``. With ``b_j = sum_i (bound_i y_ij - r_ij) x_i``, in the second half of the columns,

    |w|^2 = sum_j |b_j|^2 + |a_parent - b_j|^2 + |a_j - b_j|^2 + |b_j - a_parent - a_j|^2,

a child of the root has ``2 |a_j|^2`` and no r.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.hierarchical.order_blocks import Forest, Sets, rebuild
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows

__all__ = ["certify", "rebuild", "square", "to_nodes", "visit"]

SWEEPS = 2


@njit(inline="always")
def _loss(parent: Any, sets: Any, i: int, y: Any, lam: Any) -> None:
    """Flags y of the true set, and lam: a labeling u loses ``sum lam_j (u_j - y_j)``, and the same of its edges."""
    m = parent.shape[0]
    for j in range(m):
        y[j] = False
    for at in range(sets.indptr[i], sets.indptr[i + 1]):
        y[sets.nodes[at]] = True
    for j in range(m):
        lam[j], lam[m + j] = 0.0, 0.0
    for j in range(m):
        above, count = parent[j], sets.worth[j]
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


@njit(inline="always")
def _load(parent: Any, sets: Any, pool: Any, i: int, y: Any, p: Any) -> None:
    """The masses p of example i, nodes and edges: those of the pool, else all on the true set."""
    m = parent.shape[0]
    for j in range(m):
        p[j] = sets.bound[i] if y[j] else 0.0
        p[m + j] = p[j] if parent[j] >= 0 else 0.0
    for at in range(pool.start[i], pool.start[i] + pool.length[i]):
        p[pool.classes[at]] = pool.values[at]


@njit(inline="always")
def _add_products(parent: Any, s: Any, times: float, g: Any) -> None:
    """g += times the matrix of the squared norm times s."""
    m = parent.shape[0]
    for j in range(m):
        above = parent[j]
        if above < 0:
            g[j] += times * 2.0 * s[j]
        else:
            a, b, c = s[above], s[j], s[m + j]
            g[j] += times * (2.0 * b - 2.0 * c + a)
            g[above] += times * (2.0 * a - 2.0 * c + b)
            g[m + j] += times * (4.0 * c - 2.0 * a - 2.0 * b)


@njit(inline="always")
def _best(parent: Any, g: Any, on: Any, off: Any, u: Any) -> float:
    """The labeling u with the largest sum of g over its nodes and edges, and that sum."""
    m, total = parent.shape[0], 0.0
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


@njit(inline="always")
def _towards(parent: Any, bound: float, K: float, gap: float, u: Any, p: Any, q: Any, z: Any, g: Any) -> None:
    """Conditional gradient: the exact step of p towards all mass on u; q and z are scratch."""
    m, curvature = parent.shape[0], 0.0
    for j in range(m):
        above = parent[j]
        q[j] = (bound if u[j] else 0.0) - p[j]
        q[m + j] = (bound if above >= 0 and u[j] and u[above] else 0.0) - p[m + j]
        z[j], z[m + j] = 0.0, 0.0
    _add_products(parent, q, 1.0, z)
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
def _shift(parent: Any, first_child: Any, K: float, j: int, step: float, p: Any, g: Any, along: Any) -> None:
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
    parent: Any, first_child: Any, degree: Any, bound: float, K: float, j: int, p: Any, g: Any, along: Any
) -> None:
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
def _move_edge(parent: Any, bound: float, K: float, j: int, p: Any, g: Any) -> None:
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
    """As ``order_blocks.visit``; E has a column for every node and one for every edge."""
    parent, first_child, degree = forest.parent, forest.first_child, forest.degree
    m = parent.shape[0]
    s, lam, g, p = np.empty(E.shape[1]), np.empty(2 * m), np.empty(2 * m), np.empty(2 * m)
    old, q, z = np.empty(2 * m), np.empty(2 * m), np.empty(2 * m)
    y, u, along = np.zeros(m, np.bool_), np.zeros(m, np.bool_), np.zeros(m, np.bool_)
    changed, held, values = np.empty(2 * m, np.int32), np.empty(2 * m, np.int32), np.empty(2 * m)
    for at in range(begin, stop):
        if pool.used[0] + 2 * m > pool.classes.shape[0]:
            return at
        i = order[at]
        bound, K = sets.bound[i], rows.squares[i] * damp
        sum_rows(E, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], s)
        _loss(parent, sets, i, y, lam)
        _load(parent, sets, pool, i, y, p)
        g[:] = lam
        _add_products(parent, s, 1.0, g)
        gap = bound * _best(parent, g, q, z, u)
        for j in range(2 * m):
            gap -= p[j] * g[j]
            old[j] = p[j]
        tally[0] += max(gap, 0.0)
        tally[1] = max(tally[1], gap / bound)
        if gap <= trifle:
            rest[i] = min(rest[i], 254) + 1
            continue
        rest[i] = 0
        _towards(parent, bound, K, gap, u, p, q, z, g)
        for _ in range(SWEEPS):
            for j in range(m - 1, -1, -1):
                _move(parent, first_child, degree, bound, K, j, p, g, along)
                _move_edge(parent, bound, K, j, p, g)
            for j in range(m):
                _move(parent, first_child, degree, bound, K, j, p, g, along)
        n_changed, n_held = 0, 0
        for j in range(2 * m):
            true = y[j] if j < m else y[j - m] and parent[j - m] >= 0
            if p[j] != old[j]:
                changed[n_changed] = j
                q[n_changed] = damp * (old[j] - p[j])
                n_changed += 1
            if p[j] != (bound if true else 0.0):
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
    """As ``order_blocks.certify``."""
    parent, m = forest.parent, forest.parent.shape[0]
    s, lam, g, p = np.zeros(A.shape[1]), np.empty(2 * m), np.empty(2 * m), np.empty(2 * m)
    on, off, y, u = np.empty(m), np.empty(m), np.zeros(m, np.bool_), np.zeros(m, np.bool_)
    losses, linear, constant, largest = 0.0, 0.0, 0.0, 0.0
    for i in range(sets.bound.shape[0]):
        bound = sets.bound[i]
        sum_rows(A, rows.indices, rows.data, rows.indptr[i], rows.indptr[i + 1], s)
        _loss(parent, sets, i, y, lam)
        _load(parent, sets, pool, i, y, p)
        g[:] = lam
        _add_products(parent, s, 1.0, g)
        loss = _best(parent, g, on, off, u)
        won, gap = 0.0, 0.0
        for j in range(2 * m):
            true = y[j] if j < m else y[j - m] and parent[j - m] >= 0
            if true:
                loss -= g[j]
            shift = p[j] - (bound if true else 0.0)
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
def square(forest: Forest, A: NDArray[np.float64]) -> float:
    """|w|^2 of A."""
    m, total = forest.parent.shape[0], 0.0
    for f in range(A.shape[0]):
        a, part = A[f], 0.0
        for j in range(m):
            above = forest.parent[j]
            if above < 0:
                part += 2.0 * a[j] * a[j]
            else:
                b, c, d = a[above], a[j], a[m + j]
                part += d * d + (b - d) ** 2 + (c - d) ** 2 + (d - b - c) ** 2
        total += part
    return total


@njit(cache=True, nogil=True)
def to_nodes(forest: Forest, A: NDArray[np.float64], W: NDArray[np.float64]) -> None:
    """W (n_features, n_nodes): the score of a closed set is a constant more than the sum of ``W_j . x`` over it."""
    m = forest.parent.shape[0]
    for f in range(A.shape[0]):
        a, w = A[f], W[f]
        for j in range(m):
            above = forest.parent[j]
            if above < 0:
                w[j] = 2.0 * a[j]
            else:
                w[j] = 2.0 * a[m + j] - a[above]
                w[above] += 2.0 * a[above] + a[j] - 2.0 * a[m + j]
