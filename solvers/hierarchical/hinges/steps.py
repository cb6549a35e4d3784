"""Exact steps on single hinges of a machine over a label tree: ascent on the dual of Zhou et al. 2011, equation 4.

A hinge's dual variables, one a pair, are not negative and sum to at most its bound. The weights are W = R B', where B
holds the coupling of the nodes (:mod:`solvers.labels.tree_factor`): in R the regulariser is half a squared norm, so
that a visit reads and writes no more of it than the groups of siblings along the path.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.hierarchical.hinges.products import add, n_products
from solvers.hierarchical.hinges.rivals import Hinges, Scores, blank_scores, find_rivals, is_narrow, pair, score_pairs
from solvers.labels.tree_factor import inverse
from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.array_types import Bools, Bytes, Floats, Floats32, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.copies import copy

# rivals that join a hinge's pairs at a visit, over all levels
CANDIDATES = 3
INNER_STEPS = 100
SMALL = 16


# what the visits of an epoch have met: the hinges' parts of the duality gap, their losses, the largest violation; and
# by how much those of the present pass have raised the dual
VISITED = np.dtype([("gap", "f8"), ("losses", "f8"), ("violation", "f8"), ("gain", "f8")])


class Pairs(NamedTuple):
    """The pairs of one hinge: node, rival, dual variable now and before the visit, violation, and its scale.

    After the last pair comes the slack, what the dual variables leave of their bound, with neither gain nor cost.
    """

    node: Ints32
    rival: Ints32
    alpha: Floats
    before: Floats
    violation: Floats
    scale: Floats


class Visits(NamedTuple):
    """The hinges ``order[begin:end]``, visited with all their pairs, or with those alone that have a dual variable."""

    order: Ints32
    begin: int
    end: int
    all_pairs: bool


class Progress(NamedTuple):
    """How far the hinges are, each by itself, and what the present epoch has met, a record of ``VISITED``.

    ``unchanged`` counts the visits in a row that changed nothing, ``gains`` is by how much the last visit raised the
    dual.
    """

    unchanged: Bytes
    gains: Floats32
    visited: NDArray[np.void]


class Change(NamedTuple):
    """What is added to the rows of R for one feature's value of 1: by node, and which nodes are touched."""

    by_node: Floats
    touched: Ints32
    is_touched: Bools


@njit(inline="always")
def _load(tree: TreeArrays, hinges: Hinges, pool: Coefficients, b: int, s: Scores, found: int, p: Pairs) -> int:
    """The pairs of hinge b that have a dual variable, then those of the found rivals that have none: how many."""
    start, nodes, level, scores, rivals, violations = (
        tree.path_start, tree.path_nodes, tree.level, s.scores, s.rivals, s.violations
    )  # fmt: skip
    node, rival, alpha, violation, scale, classes, values = (
        p.node, p.rival, p.alpha, p.violation, p.scale, pool.classes, pool.values
    )  # fmt: skip
    y, every, w = hinges.node[b], hinges.all_rival, 0
    for at in range(pool.start[b], pool.start[b] + pool.length[b]):
        j = classes[at]
        node[w], scale[w] = pair(level, start, nodes, y, every, j)
        violation[w] = scale[w] * (1.0 - scores[node[w]] + scores[j])
        rival[w], alpha[w] = j, values[at]
        w += 1
    held = w
    for t in range(found):
        new = violations[t] > 0.0
        for q in range(held):
            new &= rival[q] != rivals[t]
        if new:
            node[w], scale[w] = pair(level, start, nodes, y, every, rivals[t])
            rival[w], alpha[w], violation[w] = rivals[t], 0.0, violations[t]
            w += 1
    return w


@njit(inline="always")
def _spread(bound: float, w: int, p: Pairs) -> tuple[float, float]:
    """Set the slack behind w pairs; the dual variables times the violations, and the least violation that can fall."""
    alpha, violation, total, product = p.alpha, p.violation, 0.0, 0.0
    for q in range(w):
        total += alpha[q]
        product += alpha[q] * violation[q]
    slack = bound - total
    # what rounding leaves of a bound that is met
    if slack < 1e-13 * bound:
        slack = 0.0
    alpha[w], violation[w] = slack, 0.0
    lowest = np.inf
    for q in range(w + 1):
        if alpha[q] > 0.0:
            lowest = min(lowest, violation[q])
    return product, lowest


@njit(inline="always")
def _curvatures(tree: TreeArrays, B: Floats, square: float, w: int, p: Pairs, H: Floats) -> None:
    """H of the dual in the pairs' variables; 0 in the row and the column of the slack."""
    start, nodes, upper, rival, scale = tree.path_start, tree.path_nodes, p.node, p.rival, p.scale
    for r in range(w):
        for q in range(r + 1):
            i, j, k, l = upper[r], rival[r], upper[q], rival[q]
            h = inverse(start, nodes, B, i, k) - inverse(start, nodes, B, i, l)
            h += inverse(start, nodes, B, j, l) - inverse(start, nodes, B, j, k)
            H[r, q] = H[q, r] = square * scale[r] * scale[q] * h
    for q in range(w + 1):
        H[w, q] = H[q, w] = 0.0


@njit(inline="always")
def furthest_apart(w: int, alpha: Floats, g: Floats) -> tuple[int, int, float, float]:
    """Of w pairs, and the slack behind them, with violations g: the largest, and the least that can fall.

    Returns both pairs, then both violations; that of the slack is 0.
    """
    up, down, high, low = w, w, 0.0, 0.0 if alpha[w] > 0.0 else np.inf
    for q in range(w):
        if g[q] > high:
            up, high = q, g[q]
        if alpha[q] > 0.0 and g[q] < low:
            down, low = q, g[q]
    return up, down, high, low


@njit(inline="always")
def _ascend(w: int, p: Pairs, H: Floats, goal: float) -> float:
    """Steps from the pair with the least violation to that with the largest, until those are ``goal`` apart.

    Returns by how much the dual has risen.
    """
    alpha, g, gain = p.alpha, p.violation, 0.0
    for _ in range(INNER_STEPS + 10 * w):
        up, down, high, low = furthest_apart(w, alpha, g)
        if high - low <= max(goal, 1e-15) or up == down:
            break
        curve, room = H[up, up] + H[down, down] - 2.0 * H[up, down], alpha[down]
        step = min(room, (high - low) / curve) if curve > 0.0 else room
        gain += step * (high - low - 0.5 * step * curve)
        alpha[up] += step
        alpha[down] = alpha[down] - step if step < room else 0.0
        for q in range(w):
            g[q] -= step * (H[q, up] - H[q, down])
    return gain


@njit(inline="always")
def _add_row(tree: TreeArrays, B: Floats, i: int, by: float, n: int, change: Change) -> int:
    """Add row i of B times ``by`` to the change, of which n nodes are touched; how many are then."""
    nodes, by_node, touched, is_touched = tree.path_nodes, change.by_node, change.touched, change.is_touched
    for p in range(tree.path_start[i], tree.path_start[i + 1]):
        if B[p] != 0.0:
            a = nodes[p]
            if not is_touched[a]:
                is_touched[a] = True
                touched[n] = a
                n += 1
                by_node[a] = 0.0
            by_node[a] += by * B[p]
    return n


@njit(inline="always")
def _node_changes(tree: TreeArrays, B: Floats, w: int, p: Pairs, change: Change) -> int:
    """The change that the step on w pairs makes, and how many nodes it is of."""
    node, rival, alpha, before, scale = p.node, p.rival, p.alpha, p.before, p.scale
    by_node, touched, is_touched = change.by_node, change.touched, change.is_touched
    n, n_moved = 0, 0
    for q in range(w):
        delta = (alpha[q] - before[q]) * scale[q]
        if delta != 0.0:
            n = _add_row(tree, B, node[q], delta, n, change)
            n = _add_row(tree, B, rival[q], -delta, n, change)
    for t in range(n):
        a = touched[t]
        is_touched[a] = False
        if by_node[a] != 0.0:
            touched[n_moved] = a
            n_moved += 1
    return n_moved


@njit(inline="always")
def keep(bound: float, w: int, rival: Ints32, alpha: Floats, before: Floats) -> tuple[int, bool]:
    """Move the rivals that have a dual variable to the front: how many; and whether any has changed."""
    kept, changed = 0, False
    for q in range(w):
        changed |= abs(alpha[q] - before[q]) > 1e-12 * bound
        if alpha[q] > 0.0:
            rival[kept], alpha[kept] = rival[q], alpha[q]
            kept += 1
    return kept, changed


@njit(cache=True, nogil=True)
def visit(
    rows: Any,
    tree: TreeArrays,
    hinges: Hinges,
    B: Floats,
    visits: Visits,
    R: Floats,
    pool: Coefficients,
    progress: Progress,
) -> int:
    """Ascend on the hinges of ``visits``; returns where it stopped, before their end when out of room."""
    m, width, all_pairs = tree.parent.shape[0], n_products(rows, R), visits.all_pairs
    order, unchanged, gains, visited = visits.order, progress.unchanged, progress.gains, progress.visited[0]
    most = max(1, CANDIDATES // tree.level[m - 1])
    s = blank_scores(tree, R, width, most)
    p = Pairs(
        np.empty(m + 1, np.int32), np.empty(m + 1, np.int32),
        np.empty(m + 1), np.empty(m + 1), np.empty(m + 1), np.empty(m + 1),
    )  # fmt: skip
    change = Change(np.zeros(m), np.empty(m, np.int32), np.zeros(m, np.bool_))
    H = np.empty((SMALL, SMALL))
    # numba counts references to an array each time a field is read: fields are read once before inner loops
    by_node, touched, violations = change.by_node, change.touched, s.violations
    for at in range(visits.begin, visits.end):
        b = order[at]
        if pool.used[0] + pool.length[b] + s.rivals.shape[0] + 1 > pool.classes.shape[0]:
            return at
        i, bound, found, worst = hinges.row[b], hinges.bound[b], 0, 0.0
        if all_pairs:
            found = find_rivals(rows, tree, hinges, B, b, R, is_narrow(tree, hinges, b, width), s)
        else:
            score_pairs(rows, tree, hinges, pool, b, B, R, s)
        w = _load(tree, hinges, pool, b, s, found, p)
        for t in range(found):
            worst = max(worst, violations[t])
        for q in range(0 if all_pairs else w):
            worst = max(worst, p.violation[q])
        product, lowest = _spread(bound, w, p)
        apart = worst - lowest if lowest < np.inf else worst
        gains[b] = 0.0
        if all_pairs:
            visited.gap += bound * worst - product
            visited.losses += bound * worst
            visited.violation = max(visited.violation, apart)
        if w == 0 or worst - lowest <= 1e-14:
            if all_pairs:
                unchanged[b] = min(unchanged[b], 254) + 1
            continue
        if w >= H.shape[0]:
            H = np.empty((2 * w, 2 * w))
        _curvatures(tree, B, rows.squares[i], w, p, H)
        copy(p.alpha[:w], p.before)
        gain = _ascend(w, p, H, 1e-2 * apart)
        gains[b] = gain
        visited.gain += gain
        n_moved = _node_changes(tree, B, w, p, change)
        kept, changed = keep(bound, w, p.rival, p.alpha, p.before)
        put(pool, b, p.rival, p.alpha, kept)
        if changed:
            unchanged[b] = 0
        elif all_pairs:
            unchanged[b] = min(unchanged[b], 254) + 1
        add(rows, i, touched, n_moved, by_node, R)
    return visits.end
