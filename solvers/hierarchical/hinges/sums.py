"""Sums over all hinges of a machine over a label tree: certificate, vectors of the dual variables, subgradient."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.hierarchical.hinges.rivals import Hinges, blank_scores, find_rivals, is_narrow, pair
from solvers.labels.tree_paths import TreeArrays
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """Over all hinges: losses, dual variables times their scales, and the largest violation of optimality."""

    losses: float
    linear: float
    violation: float


@njit(cache=True, nogil=True)
def certify(
    rows: Rows, tree: TreeArrays, hinges: Hinges, B: Floats, R: Floats, pool: Coefficients, gaps: Floats
) -> Sums:
    """The sums over the hinges with filled rows; ``gaps`` takes each hinge's part of the duality gap."""
    s = blank_scores(tree, R.shape[1], 1)
    nodes, level, violations, classes, values = tree.path_nodes, tree.level, s.violations, pool.classes, pool.values
    losses, linear, violation = 0.0, 0.0, 0.0
    for b in range(hinges.row.shape[0]):
        gaps[b] = 0.0
        if rows.squares[hinges.row[b]] == 0.0:
            continue
        found = find_rivals(rows, tree, hinges, B, b, R, is_narrow(tree, hinges, b, R.shape[1]), s)
        worst, product, total, lowest = 0.0, 0.0, 0.0, np.inf
        y = hinges.node[b]
        begin, n = tree.path_start[y], tree.path_start[y + 1] - tree.path_start[y]
        for t in range(found):
            worst = max(worst, violations[t])
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            _, scale, g = pair(nodes, level, begin, n, y, hinges.all_rival, s.shared, s.scores, classes[p])
            product += values[p] * g
            total += values[p]
            linear += values[p] * scale
            lowest = min(lowest, g)
        if total < hinges.bound[b] * (1.0 - 1e-13):
            lowest = min(lowest, 0.0)
        losses += hinges.bound[b] * worst
        gaps[b] = hinges.bound[b] * worst - product
        violation = max(violation, worst - min(worst, lowest))
    return Sums(losses, linear, violation)


@njit(cache=True, nogil=True)
def losses_at_zero(tree: TreeArrays, hinges: Hinges) -> Floats:
    """The loss of every hinge whose scores all vanish: its largest scale, 0 where it has no pair."""
    out = np.zeros(hinges.row.shape[0])
    shared = np.zeros(tree.parent.shape[0], np.int32)
    for b in range(out.shape[0]):
        y = hinges.node[b]
        n = tree.level[y]
        if hinges.all_rival:
            # furthest is a deepest node below another child of the root, or the deepest with the least in common
            for j in range(shared.shape[0]):
                on_path = tree.level[j] <= n and tree.path_nodes[tree.path_start[y] + tree.level[j] - 1] == j
                above = tree.parent[j]
                shared[j] = tree.level[j] if on_path else (shared[above] if above >= 0 else 0)
                out[b] = max(out[b], 0.5 * (n + tree.level[j] - 2 * shared[j]))
        else:
            for t in range(hinges.first[b], n):
                above = tree.parent[tree.path_nodes[tree.path_start[y] + t]]
                if tree.first_child[above + 2] - tree.first_child[above + 1] > 1:
                    out[b] = 1.0
    return out


@njit(inline="always")
def _pair_in_space(tree: TreeArrays, hinges: Hinges, b: int, j: int) -> tuple[int, float]:
    """Of the pair of hinge b in which j is the rival: the node and the scale, without any scores."""
    y = hinges.node[b]
    path, other, n = tree.path_start[y], tree.path_start[j], tree.level[y]
    if not hinges.all_rival:
        return tree.path_nodes[path + tree.level[j] - 1], 1.0
    shared = 0
    while shared < min(n, tree.level[j]) and tree.path_nodes[other + shared] == tree.path_nodes[path + shared]:
        shared += 1
    return y, 0.5 * (n + tree.level[j] - 2 * shared)


@njit(cache=True, nogil=True)
def to_vectors(rows: Rows, tree: TreeArrays, hinges: Hinges, pool: Coefficients, V: Floats) -> None:
    """V: for every pair (i, j) of a hinge its dual variable times its scale times x, added to v_i, taken from v_j."""
    V[:] = 0.0
    change, touched = np.zeros(tree.parent.shape[0]), np.empty(tree.parent.shape[0], np.int32)
    for b in range(hinges.row.shape[0]):
        row, count = hinges.row[b], 0
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            j = pool.classes[p]
            i, scale = _pair_in_space(tree, hinges, b, j)
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
        for p in range(rows.indptr[row], rows.indptr[row + 1]):
            x, v = rows.data[p], V[rows.indices[p]]
            for t in range(count):
                v[touched[t]] += x * change[touched[t]]
        for t in range(count):
            change[touched[t]] = 0.0


@njit(cache=True, nogil=True)
def add_subgradient(rows: Rows, tree: TreeArrays, hinges: Hinges, unit: Floats, W: Floats, G: Floats) -> float:
    """The losses of all hinges at the weights W (n_features, n_nodes); a subgradient of their sum is added to G.

    H of Zhou et al. 2011, equation 7, and section 4.1; ``unit`` holds along the paths what B is for the identity.
    """
    s = blank_scores(tree, W.shape[1], 1)
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
            y = hinges.node[b]
            begin, n = tree.path_start[y], tree.path_start[y + 1] - tree.path_start[y]
            i, scale, _ = pair(tree.path_nodes, tree.level, begin, n, y, hinges.all_rival, s.shared, s.scores, at)
            for p in range(rows.indptr[i_row], rows.indptr[i_row + 1]):
                x = hinges.bound[b] * scale * rows.data[p]
                G[rows.indices[p], i] -= x
                G[rows.indices[p], at] += x
    return losses
