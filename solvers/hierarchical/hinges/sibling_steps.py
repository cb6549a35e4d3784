"""Exact steps on the hinges of machines at inner nodes that nothing couples: Crammer and Singer's, among siblings.

Where K is the identity, R is W, and a hinge's pairs are of one node with its siblings: its dual variables have the
block step of the flat machine in closed form (:mod:`solvers.linear.steps.block_step`), all of them at once, where
coupled pairs need steps on two at a time. As there, arrays are unpacked once, as each reading of a field counts
references.
"""

from typing import Any

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.products import add, n_products, with_range, with_some
from solvers.hierarchical.hinges.rivals import Hinges
from solvers.hierarchical.hinges.steps import Progress, Visits
from solvers.labels.tree_paths import TreeArrays
from solvers.linear.steps.block_step import candidates, changes, solve, violation_of
from solvers.numerics.array_types import Array
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import ALIGNMENT, PARTS


@njit(cache=True, nogil=True)
def visit(
    rows: Any, tree: TreeArrays, hinges: Hinges, visits: Visits, R: Array, pool: Coefficients, progress: Progress
) -> int:
    """As :func:`solvers.hierarchical.hinges.steps.visit`, where K is the identity and every level has its own loss.

    The gains are those of steps that meet no bound: with bounds the dual rises by more.
    """
    order, begin, end, all_pairs = visits
    unchanged, gains, visited = progress.unchanged, progress.gains, progress.visited[0]
    hinge_rows, hinge_nodes, bounds = hinges.row, hinges.node, hinges.bound
    parent, first_child, squares = tree.parent, tree.first_child, rows.squares
    start, length, capacity = pool.start, pool.length, pool.capacity
    listed, values, used = pool.classes, pool.values, pool.used
    m, lanes = parent.shape[0], ALIGNMENT // R.itemsize
    f, z, by_node = np.empty(n_products(rows, R) + lanes, R.dtype), np.empty(m), np.zeros(m)
    classes, moved, which = np.empty(m + 2, np.int32), np.empty(m + 2, np.int32), np.empty(m + 2, np.int32)
    b, old, new = np.empty(m + 2 + PARTS), np.empty(m + 2), np.empty(m + 2)
    sums, steps = np.empty(m + 2), np.empty(m + 2)
    for at in range(begin, end):
        if used[0] + m > listed.shape[0]:
            return at
        h = order[at]
        i, y, C, first, n = hinge_rows[h], hinge_nodes[h], bounds[h], start[h], length[h]
        low, high, K, S0 = first_child[parent[y] + 1], first_child[parent[y] + 2], squares[i], 0.0
        size = high - low
        for t in range(n):
            old[t] = values[first + t]
            S0 += old[t]
        if all_pairs:
            for t in range(n):
                classes[t] = listed[first + t] - low
            with_range(rows, i, R, low, high, low, f)
            f_y = np.float64(f[y - low])
            f[y - low] = -np.inf
            group = f[: -(-size // lanes) * lanes]
            n, loss, held = candidates(group, f_y, C, K, S0, n, size, size, True, classes, b, old)
            visited.gap += C * loss - held
            visited.losses += C * loss
            visited.violation = max(visited.violation, violation_of(b, old, n, S0, K, C, True))
            for t in range(n):
                classes[t] += low
        else:
            for t in range(n):
                classes[t] = listed[first + t]
            classes[n] = y
            with_some(rows, i, R, classes, n + 1, sums, z)
            for t in range(n):
                b[t] = (1.0 - z[y] + z[classes[t]]) / K + old[t] + S0
        solve(b, n, C, S0, True, new)
        count, own, square, kept, _ = changes(old, new, n, classes, moved, steps, which)
        gains[h] = 0.0
        if count == 0:
            if all_pairs:
                unchanged[h] = min(unchanged[h], 254) + 1
            continue
        unchanged[h] = 0
        gain = 0.5 * K * (square + own * own)
        gains[h] = gain
        visited.gain += gain
        for t in range(count):
            by_node[moved[t]] = steps[t]
        moved[count], by_node[y] = y, own
        add(rows, i, moved, count + 1, by_node, R)
        if kept > capacity[h]:
            start[h], capacity[h] = used[0], kept
            used[0] += kept
        first, length[h] = start[h], kept
        for t in range(kept):
            listed[first + t], values[first + t] = classes[t], new[t]
    return end
