"""Sums over all hinges of a machine over a label tree: certificate, vectors of the dual variables, subgradient."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.path_rivals import add_up, best_by_distance
from solvers.hierarchical.hinges.products import add, n_products, with_all
from solvers.hierarchical.hinges.rivals import Hinges, blank_scores, find_rivals, is_narrow, pair
from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.array_types import Floats, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows
from solvers.numerics.scaling_search import ONE, note


class Sums(NamedTuple):
    """Over all hinges: losses, dual variables times their scales, and the largest violation of optimality."""

    losses: float
    linear: float
    violation: float


@njit(cache=True, nogil=True)
def certify(
    rows: Any, tree: TreeArrays, hinges: Hinges, B: Floats, R: Floats, pool: Coefficients, gaps: Floats, terms: Floats
) -> Sums:
    """The sums over the hinges with filled rows; ``gaps`` takes each hinge's part of the duality gap.

    ``terms`` takes the losses at multiples of W from 1 on, as :mod:`solvers.numerics.scaling_search` has them.
    """
    width = n_products(rows, R)
    s = blank_scores(tree, R, width, 1)
    depth = tree.level[tree.level.shape[0] - 1]
    best, low, high = np.empty(2 * depth + 1), np.empty(depth + 1, np.int32), np.empty(depth + 1, np.int32)
    start, nodes, level = tree.path_start, tree.path_nodes, tree.level
    scores, violations, classes, values = s.scores, s.violations, pool.classes, pool.values
    losses, linear, violation = 0.0, 0.0, 0.0
    for b in range(hinges.row.shape[0]):
        gaps[b] = 0.0
        if rows.squares[hinges.row[b]] == 0.0:
            continue
        worst, product, total, lowest = 0.0, 0.0, 0.0, np.inf
        y = hinges.node[b]
        if hinges.all_rival:
            with_all(rows, hinges.row[b], R, s.products)
            add_up(tree.parent, tree.first_child, s.products, scores)
            best_by_distance(level, start, nodes, tree.first_child, y, scores, low, high, best)
            for q in range(1, best.shape[0]):
                best[q] -= scores[y]
                worst = max(worst, 0.5 * q * (1.0 + best[q]))
        else:
            found = find_rivals(rows, tree, hinges, B, b, R, is_narrow(tree, hinges, b, width), s)
            for t in range(found):
                worst = max(worst, violations[t])
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            i, scale = pair(level, start, nodes, y, hinges.all_rival, classes[p])
            g = scale * (1.0 - scores[i] + scores[classes[p]])
            product += values[p] * g
            total += values[p]
            linear += values[p] * scale
            lowest = min(lowest, g)
        if total < hinges.bound[b] * (1.0 - 1e-13):
            lowest = min(lowest, 0.0)
        losses += hinges.bound[b] * worst
        if worst > 0.0:
            if hinges.all_rival:
                _note_largest(hinges.bound[b], best, terms)
            else:
                note(1.0, worst - 1.0, hinges.bound[b], terms)
        gaps[b] = hinges.bound[b] * worst - product
        violation = max(violation, worst - min(worst, lowest))
    return Sums(losses, linear, violation)


@njit(inline="always")
def _share_paths(tree: TreeArrays, y: int, shared: Ints32) -> None:
    """How much of each node's path is that of the label y."""
    for j in range(shared.shape[0]):
        on_path = tree.level[j] <= tree.level[y] and tree.path_nodes[tree.path_start[y] + tree.level[j] - 1] == j
        above = tree.parent[j]
        shared[j] = tree.level[j] if on_path else (shared[above] if above >= 0 else 0)


@njit(inline="always")
def _note_largest(bound: float, pulls: Floats, terms: Floats) -> None:
    """Note a loss whose pairs have scales of their own: ``max_j scale_j (1 + t (z_j - z_y))``, for t from 1 on.

    Of the pairs with one scale the one with the largest score alone matters, by which the pulls are known. The largest
    of lines is convex, so the one that holds at a point gives way to steeper ones alone.
    """
    last = terms.shape[1] - 1
    at = ONE
    while at <= last:
        # the line that is the largest at this point and, where several are, the steepest
        best, top, slope = -1, 0.0, -np.inf
        for q in range(1, pulls.shape[0]):
            value = 0.5 * q * (1.0 + at / ONE * pulls[q])
            if value > top or (best >= 0 and value == top and 0.5 * q * pulls[q] > slope):
                best, top, slope = q, value, 0.5 * q * pulls[q]
        if best < 0:
            break
        until, margin = last, 0.5 * best
        if slope < 0.0:
            until = int(min(ONE * margin / -slope, float(last)))
        for q in range(1, pulls.shape[0]):
            other = 0.5 * q * pulls[q]
            if other > slope:
                until = min(until, int(min(max(ONE * (margin - 0.5 * q) / (other - slope), float(at)), float(last))))
        terms[0, until] += bound * margin
        terms[1, until] += bound * slope
        terms[0, at - 1] -= bound * margin
        terms[1, at - 1] -= bound * slope
        at = until + 1


@njit(cache=True, nogil=True)
def losses_at_zero(tree: TreeArrays, hinges: Hinges) -> Floats:
    """The loss of every hinge whose scores all vanish: its largest scale, 0 where it has no pair."""
    out = np.zeros(hinges.row.shape[0])
    shared, known = np.zeros(tree.parent.shape[0], np.int32), np.full(tree.parent.shape[0], -1.0)
    for b in range(out.shape[0]):
        y = hinges.node[b]
        n = tree.level[y]
        if hinges.all_rival:
            # furthest is a deepest node below another child of the root, or the deepest with the least in common
            if known[y] < 0.0:
                _share_paths(tree, y, shared)
                for j in range(shared.shape[0]):
                    known[y] = max(known[y], 0.5 * (n + tree.level[j] - 2 * shared[j]))
            out[b] = known[y]
        else:
            for t in range(hinges.first[b], n):
                above = tree.parent[tree.path_nodes[tree.path_start[y] + t]]
                if tree.first_child[above + 2] - tree.first_child[above + 1] > 1:
                    out[b] = 1.0
    return out


@njit(cache=True, nogil=True)
def to_vectors(rows: Any, tree: TreeArrays, hinges: Hinges, pool: Coefficients, V: Floats) -> None:
    """V: for every pair (i, j) of a hinge its dual variable times its scale times x, added to v_i, taken from v_j."""
    V[:] = 0.0
    change, touched = np.zeros(tree.parent.shape[0]), np.empty(tree.parent.shape[0], np.int32)
    for b in range(hinges.row.shape[0]):
        row, count = hinges.row[b], 0
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            j = pool.classes[p]
            i, scale = pair(tree.level, tree.path_start, tree.path_nodes, hinges.node[b], hinges.all_rival, j)
            value = pool.values[p] * scale
            # the label's side is never another pair's rival, so no change comes back to 0
            for side in range(2):
                a = j if side else i
                if change[a] == 0.0:
                    touched[count] = a
                    count += 1
                change[a] += -value if side else value
        if count == 0:
            continue
        add(rows, row, touched, count, change, V)
        for t in range(count):
            change[touched[t]] = 0.0


@njit(cache=True, nogil=True)
def add_subgradient(rows: Rows, tree: TreeArrays, hinges: Hinges, unit: Floats, W: Floats, G: Floats) -> float:
    """The losses of all hinges at the weights W (n_features, n_nodes); a subgradient of their sum is added to G.

    H of Zhou et al. 2011, equation 7, and section 4.1; ``unit`` holds along the paths what B is for the identity.
    """
    s = blank_scores(tree, W, W.shape[1], 1)
    losses = 0.0
    for b in range(hinges.row.shape[0]):
        i_row = hinges.row[b]
        found = find_rivals(rows, tree, hinges, unit, b, W, True, s)
        worst, at = 0.0, -1
        for t in range(found):
            if s.violations[t] > worst:
                worst, at = s.violations[t], s.rivals[t]
        if at >= 0:
            losses += hinges.bound[b] * worst
            i, scale = pair(tree.level, tree.path_start, tree.path_nodes, hinges.node[b], hinges.all_rival, at)
            for p in range(rows.indptr[i_row], rows.indptr[i_row + 1]):
                x = hinges.bound[b] * scale * rows.data[p]
                G[rows.indices[p], i] -= x
                G[rows.indices[p], at] += x
    return losses
