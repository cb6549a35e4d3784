"""Exact steps on the hinges whose label has all other nodes as rivals, with weights summed along paths.

B is all ones along the paths, so that ``K^{-1}`` has the depth that two nodes share. The pair of the label y with j has
the scale ``s_j``, half the length of the path between them, and two pairs have the curvature
``|x|^2 s_j s_k (|y| - max(a_j, a_k))``, a the depth shared with y, where these differ: what j and k share with each
other is then the smaller of the two. Only where they are equal are paths compared, and only for the pairs that a step
is made on. As in the flat machines' visits, arrays are unpacked once, as each reading of a field counts references.
"""

from typing import Any

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.path_rivals import add_up, worst_of_all
from solvers.hierarchical.hinges.products import add, n_products, with_all, with_some
from solvers.hierarchical.hinges.rivals import Hinges, on_paths
from solvers.hierarchical.hinges.steps import CANDIDATES, INNER_STEPS, SMALL, Progress, Visits, furthest_apart, keep
from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.rows import ALIGNMENT


@njit(cache=True, nogil=True)
def visit(
    rows: Any, tree: TreeArrays, hinges: Hinges, visits: Visits, share: float, R: Array, pool: Coefficients,
    progress: Progress
) -> int:  # fmt: skip
    """As :func:`solvers.hierarchical.hinges.steps.visit`, where all nodes rival.

    R holds this ``share`` of the vectors of the dual variables, and what does not change: see
    :mod:`solvers.hierarchical.hinges.acceleration`.
    """
    order, begin, end, all_pairs = visits
    unchanged, gains, visited = progress.unchanged, progress.gains, progress.visited[0]
    hinge_rows, hinge_nodes, bounds, squares = hinges.row, hinges.node, hinges.bound, rows.squares
    parent, first_child, level, path_start, nodes = tree
    pool_start, length, listed, values, used = pool.start, pool.length, pool.classes, pool.values, pool.used
    m = parent.shape[0]
    width = ALIGNMENT // R.itemsize
    r, sums = np.zeros(n_products(rows, R), R.dtype), np.empty(m)
    z = np.full((m + width - 1) // width * width, -np.inf, R.dtype)
    touched, is_touched, by_node = np.empty(m, np.int32), np.zeros(m, np.bool_), np.zeros(m)
    found_rivals, found_violations = np.empty(CANDIDATES, np.int32), np.empty(CANDIDATES)
    rival, common = np.empty(m + 1, np.int32), np.empty(m + 1, np.int32)
    alpha, before, scale, g = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    H = np.empty((SMALL, SMALL))
    for at in range(begin, end):
        if used[0] + m > listed.shape[0]:
            return at
        h = order[at]
        i, y, C, first, w = hinge_rows[h], hinge_nodes[h], bounds[h], pool_start[h], length[h]
        K = share * squares[i]
        for q in range(w):
            rival[q], alpha[q] = listed[first + q], values[first + q]
        found = 0
        if all_pairs:
            with_all(rows, i, R, r)
            add_up(parent, first_child, r, z)
            found = worst_of_all(level, path_start, nodes, y, z, CANDIDATES, found_rivals, found_violations)
        else:
            n = on_paths(path_start, nodes, y, rival, 0, w, touched, is_touched)
            with_some(rows, i, R, touched, n, sums, r)
            _add_up_paths(path_start, nodes, rival, w, y, r, z)
        w = _with_new(found, found_rivals, found_violations, w, rival, alpha)
        worst, product, lowest = _open(level, path_start, nodes, y, z, C, w, rival, common, scale, alpha, g)
        if found > 0:
            worst = max(worst, found_violations[0])
        apart = worst - lowest if lowest < np.inf else worst
        gains[h] = 0.0
        if all_pairs:
            visited.gap += C * worst - product
            visited.losses += C * worst
            visited.violation = max(visited.violation, apart)
        if w == 0 or apart <= 1e-14:
            if all_pairs:
                unchanged[h] = min(unchanged[h], 254) + 1
            continue
        if w > H.shape[0]:
            H = np.empty((2 * w, 2 * w))
        for q in range(w):
            before[q] = alpha[q]
        gain = _ascend(w, K, level[y], path_start, nodes, rival, common, scale, alpha, g, 1e-2 * apart, H)
        gains[h] = gain
        visited.gain += gain
        n = _changes(path_start, nodes, y, w, rival, common, scale, alpha, before, touched, is_touched, by_node)
        for t in range(n):
            by_node[touched[t]] *= share
        add(rows, i, touched, n, by_node, R)
        kept, changed = keep(C, w, rival, alpha, before)
        if changed:
            unchanged[h] = 0
        elif all_pairs:
            unchanged[h] = min(unchanged[h], 254) + 1
        put(pool, h, rival, alpha, kept)
    return end


@njit(inline="always")
def _add_up_paths(start: Ints, nodes: Ints32, rival: Ints32, w: int, y: int, r: Array, z: Array) -> None:
    """The scores z of y and of w rivals, from the products r of the nodes on their paths."""
    for q in range(w + 1):
        j = rival[q] if q < w else y
        total = 0.0
        for p in range(start[j], start[j + 1]):
            total += r[nodes[p]]
        z[j] = total


@njit(inline="always")
def _with_new(n_found: int, found: Ints32, violations: Floats, w: int, rival: Ints32, alpha: Floats) -> int:
    """Put those found that violate their margin behind the w rivals that have a dual variable: how many are then."""
    held = w
    for t in range(n_found):
        new = violations[t] > 0.0
        for q in range(held):
            new &= rival[q] != found[t]
        if new:
            rival[w], alpha[w] = found[t], 0.0
            w += 1
    return w


@njit(inline="always")
def _open(
    level: Ints32, start: Ints, nodes: Ints32, y: int, z: Array, C: float, w: int, rival: Ints32, common: Ints32,
    scale: Floats, alpha: Floats, g: Floats
) -> tuple[float, float, float]:  # fmt: skip
    """What the pairs of y with w rivals share, their scales and violations g, and the slack behind them.

    Returns the largest violation, the dual variables times the violations, and the least violation that can fall.
    """
    worst, product, total, lowest = 0.0, 0.0, 0.0, np.inf
    for q in range(w):
        j = rival[q]
        shared, most = 0, min(level[y], level[j])
        while shared < most and nodes[start[y] + shared] == nodes[start[j] + shared]:
            shared += 1
        common[q], scale[q] = shared, 0.5 * (level[y] + level[j] - 2 * shared)
        g[q] = scale[q] * (1.0 - z[y] + z[j])
        worst = max(worst, g[q])
        total += alpha[q]
        product += alpha[q] * g[q]
        if alpha[q] > 0.0:
            lowest = min(lowest, g[q])
    # the slack is what the dual variables leave of their bound, and not what rounding leaves of one that is met
    alpha[w] = C - total if C - total >= 1e-13 * C else 0.0
    if alpha[w] > 0.0:
        lowest = min(lowest, 0.0)
    return worst, product, lowest


@njit(cache=True, nogil=True)
def _ascend(
    w: int, K: float, depth: int, start: Ints, nodes: Ints32, rival: Ints32, common: Ints32, scale: Floats,
    alpha: Floats, g: Floats, goal: float, H: Floats
) -> float:  # fmt: skip
    """Steps from the pair with the least violation to that with the largest, until those are ``goal`` apart.

    The slack is pair w. Returns by how much the dual has risen.
    """
    gain = 0.0
    for q in range(w):
        # no row yet
        H[q, q] = -1.0
    for _ in range(INNER_STEPS + 10 * w):
        up, down, high, low = furthest_apart(w, alpha, g)
        if high - low <= max(goal, 1e-15) or up == down:
            break
        for l in (up, down):
            if l < w and H[l, l] < 0.0:
                for q in range(w):
                    both = max(common[q], common[l])
                    if common[q] == common[l]:
                        a, b = start[rival[q]] + both, start[rival[l]] + both
                        while a < start[rival[q] + 1] and b < start[rival[l] + 1] and nodes[a] == nodes[b]:
                            a, b, both = a + 1, b + 1, both - 1
                    H[l, q] = K * scale[l] * scale[q] * (depth - both)
        curve = 0.0
        if up < w:
            curve += H[up, up]
        if down < w:
            curve += H[down, down]
        if up < w and down < w:
            curve -= 2.0 * H[up, down]
        room = alpha[down]
        step = min(room, (high - low) / curve) if curve > 0.0 else room
        gain += step * (high - low - 0.5 * step * curve)
        alpha[up] += step
        alpha[down] = alpha[down] - step if step < room else 0.0
        if up < w:
            for q in range(w):
                g[q] -= step * H[up, q]
        if down < w:
            for q in range(w):
                g[q] += step * H[down, q]
    return gain


@njit(inline="always")
def _changes(
    start: Ints, nodes: Ints32, y: int, w: int, rival: Ints32, common: Ints32, scale: Floats, alpha: Floats,
    before: Floats, touched: Ints32, is_touched: Bools, by_node: Floats
) -> int:  # fmt: skip
    """What the step adds to the nodes below those that the pairs share: how many they are."""
    n = 0
    for q in range(w):
        delta = (alpha[q] - before[q]) * scale[q]
        if delta == 0.0:
            continue
        for side in range(2):
            j, by = (rival[q], -delta) if side else (y, delta)
            for p in range(start[j] + common[q], start[j + 1]):
                a = nodes[p]
                if not is_touched[a]:
                    is_touched[a], by_node[a] = True, 0.0
                    touched[n] = a
                    n += 1
                by_node[a] += by
    for t in range(n):
        is_touched[touched[t]] = False
    return n
