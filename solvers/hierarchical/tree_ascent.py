"""Block ascent on the dual of machines over a label tree: visits, losses and the weights from the dual variables.

A block is one hinge: an example, and the pairs (i, j) of a node i on the path of its label and a node j that i must
beat by a margin; its dual variables are not negative and sum to at most its bound. The weights are W = R B', where B
holds the coupling of the nodes (``kernels/tree_factor.py``): in R the regulariser is half a squared norm, so that a
visit reads and writes no more of it than the groups of siblings along the path.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.labels.tree_factor import inverse
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import Rows

CANDIDATES = 3
INNER = 100
SMALL = 16


class Tree(NamedTuple):
    """What the kernels need of a tree: parents, levels, paths, and children in compressed rows."""

    parent: NDArray[np.int32]
    level: NDArray[np.int32]
    start: NDArray[np.int64]
    nodes: NDArray[np.int32]
    first_child: NDArray[np.int32]


class Blocks(NamedTuple):
    """The hinges: row of X, node whose path is walked, the first level with pairs, the bound; whether all nodes rival.

    Where they do, the pairs are those of the label with every other node, scaled by half the length of the path
    between them, and B is all ones along the paths (equation 3 of Zhou et al. 2011).
    """

    row: NDArray[np.int32]
    node: NDArray[np.int32]
    first: NDArray[np.int32]
    bound: NDArray[np.float64]
    all_rival: bool


@njit(inline="always")
def _score_groups(
    indptr: Any, indices: Any, data: Any, i: int, nodes: Any, first_child: Any, begin: int, n: int, first: int,
    R: Any, r: Any, narrow: bool,
) -> None:  # fmt: skip
    """r = R' x_i, of the groups of siblings along the path of n nodes from ``nodes[begin]`` on, or of all nodes."""
    if narrow:
        for t in range(n):
            parent = nodes[begin + t - 1] if t > 0 else -1
            low, high = first_child[parent + 1], first_child[parent + 2]
            if t < first or high - low == 1:
                # its own group has no pair here, but what is below needs the node itself
                low = nodes[begin + t]
                high = low + 1
            for j in range(low, high):
                r[j] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                x, w = data[p], R[indices[p]]
                for j in range(high - low):
                    r[low + j] += x * w[low + j]
    else:
        sum_rows(R, indices, data, indptr[i], indptr[i + 1], r)


@njit(inline="always")
def _margins(
    parent: Any, level: Any, start: Any, nodes: Any, first_child: Any, B: Any, y: int, first: int, all_rival: bool,
    most: int, r: Any, z: Any, shared: Any, best: Any, g: Any,
) -> int:  # fmt: skip
    """Scores z from r, and the worst violated pairs of every level with their violations: best and g, and how many.

    With all rivals they are those of the label; ``shared`` is then the depth of each node's common path with y.
    """
    begin, n, found = start[y], start[y + 1] - start[y], 0
    if all_rival:
        for j in range(parent.shape[0]):
            above = parent[j]
            z[j] = r[j] + (z[above] if above >= 0 else 0.0)
            if level[j] <= n and nodes[begin + level[j] - 1] == j:
                shared[j] = level[j]
            else:
                shared[j] = shared[above] if above >= 0 else 0
        own, lowest = z[y], -np.inf
        for j in range(parent.shape[0]):
            v = 0.5 * (n + level[j] - 2 * shared[j]) * (1.0 - own + z[j])
            if j != y and v > lowest:
                at = min(found, most - 1)
                while at > 0 and g[at - 1] < v:
                    g[at], best[at] = g[at - 1], best[at - 1]
                    at -= 1
                g[at], best[at] = v, j
                found = min(found + 1, most)
                if found == most:
                    lowest = g[found - 1]
        return found
    for t in range(first, n):
        i = nodes[begin + t]
        low, high = first_child[parent[i] + 1], first_child[parent[i] + 2]
        if high - low == 1:
            continue
        lowest, head, stop = -np.inf, found, found + most
        for j in range(low, high):
            q, total = start[j], 0.0
            for s in range(t):
                total += B[q + s] * r[nodes[begin + s]]
            total += B[q + t] * r[j]
            z[j] = total
            if j != i and total > lowest:
                at = min(found, stop - 1)
                while at > head and g[at - 1] < total:
                    g[at], best[at] = g[at - 1], best[at - 1]
                    at -= 1
                g[at], best[at] = total, j
                found = min(found + 1, stop)
                if found == stop:
                    lowest = g[found - 1]
        for at in range(head, found):
            g[at] += 1.0 - z[i]
    return found


@njit(inline="always")
def _violation(
    nodes: Any, level: Any, begin: int, n: int, y: int, all_rival: bool, shared: Any, z: Any, j: int
) -> tuple[int, float, float]:
    """Of the pair in which j is the rival: the other node, the scale, and the violation times the scale."""
    if all_rival:
        scale = 0.5 * (n + level[j] - 2 * shared[j])
        return y, scale, scale * (1.0 - z[y] + z[j])
    i = nodes[begin + level[j] - 1]
    return i, 1.0, 1.0 - z[i] + z[j]


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    blocks: Blocks,
    tree: Tree,
    B: NDArray[np.float64],
    order: NDArray[np.int32],
    begin: int,
    end: int,
    R: NDArray[np.float64],
    pool: Coefficients,
    rest: NDArray[np.uint8],
    tally: NDArray[np.float64],
) -> int:
    """Ascend on the blocks ``order[begin:end]``; returns where it stopped, before ``end`` when out of room.

    ``rest`` counts the visits in a row that changed nothing; ``tally`` gathers gap, losses, the worst violation.
    """
    indptr, indices, data, squares = rows
    b_row, b_node, b_first, b_bound, all_rival = blocks
    parent, level, start, nodes, first_child = tree
    p_start, p_length, _, p_nodes, p_values, p_used = pool
    m, width = parent.shape[0], R.shape[1]
    r, z, shared = np.zeros(width), np.zeros(m), np.zeros(m, np.int32)
    most = max(1, CANDIDATES // level[m - 1]) if not all_rival else CANDIDATES
    depth = most * level[m - 1]
    best, g_best = np.empty(depth, np.int32), np.empty(depth)
    size = SMALL
    j_of, i_of = np.empty(m + 1, np.int32), np.empty(m + 1, np.int32)
    alpha, old, g, scale = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    H = np.empty((size, size))
    move, touched, listed_at = np.zeros(m), np.empty(m, np.int32), np.full(m, -1, np.int64)
    for at in range(begin, end):
        b = order[at]
        if p_used[0] + p_length[b] + depth + 1 > p_nodes.shape[0]:
            return at
        i_row, y, first, C = b_row[b], b_node[b], b_first[b], b_bound[b]
        path, n = start[y], start[y + 1] - start[y]
        spread = 0
        if not all_rival:
            for t in range(n):
                above = parent[nodes[path + t]]
                spread += first_child[above + 2] - first_child[above + 1]
        narrow = not all_rival and 8 * (spread + 4 * n) < width
        _score_groups(indptr, indices, data, i_row, nodes, first_child, path, n, first, R, r, narrow)
        found = _margins(
            parent, level, start, nodes, first_child, B, y, first, all_rival, most, r, z, shared, best, g_best
        )  # fmt: skip

        # the pairs that have a dual variable, then the worst of every level where it has none yet
        w, total, worst, drift = 0, 0.0, 0.0, 0.0
        for p in range(p_start[b], p_start[b] + p_length[b]):
            j = p_nodes[p]
            i_of[w], scale[w], g[w] = _violation(nodes, level, path, n, y, all_rival, shared, z, j)
            j_of[w], alpha[w] = j, p_values[p]
            total += alpha[w]
            drift += alpha[w] * g[w]
            w += 1
        listed = w
        for t in range(found):
            worst = max(worst, g_best[t])
            new = g_best[t] > 0.0
            for q in range(listed):
                new &= j_of[q] != best[t]
            if new:
                i_of[w], scale[w], g[w] = _violation(nodes, level, path, n, y, all_rival, shared, z, best[t])
                j_of[w], alpha[w] = best[t], 0.0
                w += 1
        tally[0] += C * worst - drift
        tally[1] += C * worst
        slack = C - total
        if slack < 1e-13 * C:
            slack = 0.0
        lowest = 0.0 if slack > 0.0 else np.inf
        for q in range(w):
            if alpha[q] > 0.0:
                lowest = min(lowest, g[q])
        tally[2] = max(tally[2], worst - lowest if lowest < np.inf else worst)
        if w == 0 or worst - lowest <= 1e-14:
            if rest[b] < 255:
                rest[b] += 1
            continue

        if w > size:
            size = 2 * w
            H = np.empty((size, size))
        K = squares[i_row]
        for p in range(w):
            old[p] = alpha[p]
            for q in range(p + 1):
                i, j, k, l = i_of[p], j_of[p], i_of[q], j_of[q]
                h = inverse(start, nodes, B, i, k) - inverse(start, nodes, B, i, l)
                h += inverse(start, nodes, B, j, l) - inverse(start, nodes, B, j, k)
                H[p, q] = H[q, p] = K * scale[p] * scale[q] * h
        # steps along the pair of pairs that violates most; -1 is what is left of the bound, with neither gain nor cost
        goal = 1e-2 * (worst - lowest) if lowest < np.inf else 1e-2 * worst
        for _ in range(INNER + 10 * w):
            up, down, high, low = -1, -1, 0.0, 0.0 if slack > 0.0 else np.inf
            for q in range(w):
                if g[q] > high:
                    up, high = q, g[q]
                if alpha[q] > 0.0 and g[q] < low:
                    down, low = q, g[q]
            if high - low <= max(goal, 1e-15) or up == down:
                break
            curve = 0.0
            if up >= 0:
                curve += H[up, up]
            if down >= 0:
                curve += H[down, down]
            if up >= 0 and down >= 0:
                curve -= 2.0 * H[up, down]
            room = alpha[down] if down >= 0 else slack
            step = min(room, (high - low) / curve) if curve > 0.0 else room
            if up >= 0:
                alpha[up] += step
            else:
                slack += step
            if down >= 0:
                alpha[down] = alpha[down] - step if step < room else 0.0
            else:
                slack = slack - step if step < room else 0.0
            for q in range(w):
                change = 0.0
                if up >= 0:
                    change += H[q, up]
                if down >= 0:
                    change -= H[q, down]
                g[q] -= step * change

        n_touched, kept, changed = 0, 0, False
        for q in range(w):
            delta = (alpha[q] - old[q]) * scale[q]
            changed |= abs(alpha[q] - old[q]) > 1e-12 * C
            if delta != 0.0:
                for end_of_pair in range(2):
                    i = j_of[q] if end_of_pair else i_of[q]
                    by = -delta if end_of_pair else delta
                    for p in range(start[i], start[i + 1]):
                        if B[p] != 0.0:
                            a = nodes[p]
                            if listed_at[a] != at:
                                listed_at[a] = at
                                touched[n_touched] = a
                                n_touched += 1
                                move[a] = 0.0
                            move[a] += by * B[p]
            if alpha[q] > 0.0:
                j_of[kept], alpha[kept] = j_of[q], alpha[q]
                kept += 1
        put(pool, b, j_of, alpha, kept)
        rest[b] = 0 if changed else min(255, rest[b] + 1)
        live = 0
        for t in range(n_touched):
            if move[touched[t]] != 0.0:
                touched[live] = touched[t]
                live += 1
        for p in range(indptr[i_row], indptr[i_row + 1]):
            x, w_row = data[p], R[indices[p]]
            for t in range(live):
                w_row[touched[t]] += x * move[touched[t]]
    return end


@njit(cache=True, nogil=True)
def certify(
    rows: Rows,
    blocks: Blocks,
    tree: Tree,
    B: NDArray[np.float64],
    R: NDArray[np.float64],
    pool: Coefficients,
    gaps: NDArray[np.float64],
) -> tuple[float, float, float]:
    """The losses of all blocks with filled rows, their dual variables times their scales, the worst violation.

    ``gaps`` takes each block's part of the duality gap.
    """
    indptr, indices, data, squares = rows
    b_row, b_node, b_first, b_bound, all_rival = blocks
    parent, level, start, nodes, first_child = tree
    m, width = parent.shape[0], R.shape[1]
    r, z, shared = np.zeros(width), np.zeros(m), np.zeros(m, np.int32)
    most, best, g_best = 1, np.empty(level[m - 1], np.int32), np.empty(level[m - 1])
    losses, linear, violation = 0.0, 0.0, 0.0
    for b in range(b_row.shape[0]):
        gaps[b] = 0.0
        i_row, y, first = b_row[b], b_node[b], b_first[b]
        if squares[i_row] == 0.0:
            continue
        path, n = start[y], start[y + 1] - start[y]
        spread = 0
        if not all_rival:
            for t in range(n):
                above = parent[nodes[path + t]]
                spread += first_child[above + 2] - first_child[above + 1]
        narrow = not all_rival and 8 * (spread + 4 * n) < width
        _score_groups(indptr, indices, data, i_row, nodes, first_child, path, n, first, R, r, narrow)
        found = _margins(
            parent, level, start, nodes, first_child, B, y, first, all_rival, most, r, z, shared, best, g_best
        )  # fmt: skip
        worst, drift, total, lowest = 0.0, 0.0, 0.0, np.inf
        for t in range(found):
            worst = max(worst, g_best[t])
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            _, scale, g = _violation(nodes, level, path, n, y, all_rival, shared, z, pool.classes[p])
            drift += pool.values[p] * g
            total += pool.values[p]
            linear += pool.values[p] * scale
            lowest = min(lowest, g)
        if total < b_bound[b] * (1.0 - 1e-13):
            lowest = min(lowest, 0.0)
        losses += b_bound[b] * worst
        gaps[b] = b_bound[b] * worst - drift
        violation = max(violation, worst - min(worst, lowest))
    return losses, linear, violation


@njit(cache=True, nogil=True)
def losses_at_zero(blocks: Blocks, tree: Tree) -> NDArray[np.float64]:
    """The loss of every block whose scores all vanish: its largest scale, 0 where it has no pair."""
    out = np.zeros(blocks.row.shape[0])
    for b in range(out.shape[0]):
        y = blocks.node[b]
        n = tree.level[y]
        if blocks.all_rival:
            # furthest is a deepest node below another child of the root, or the deepest with the least in common
            common, worst = 0, 0.0
            z = np.zeros(tree.parent.shape[0], np.int32)
            for j in range(z.shape[0]):
                on = tree.level[j] <= n and tree.nodes[tree.start[y] + tree.level[j] - 1] == j
                above = tree.parent[j]
                common = tree.level[j] if on else (z[above] if above >= 0 else 0)
                z[j] = common
                worst = max(worst, 0.5 * (n + tree.level[j] - 2 * common))
            out[b] = worst
        else:
            for t in range(blocks.first[b], n):
                above = tree.parent[tree.nodes[tree.start[y] + t]]
                if tree.first_child[above + 2] - tree.first_child[above + 1] > 1:
                    out[b] = 1.0
    return out


@njit(cache=True, nogil=True)
def to_rates(rows: Rows, blocks: Blocks, tree: Tree, pool: Coefficients, V: NDArray[np.float64]) -> None:
    """V: for every pair (i, j) of a block its dual variable times its scale times x, added to v_i, taken from v_j."""
    V[:] = 0.0
    parent, level, start, nodes, _ = tree
    change, touched = np.zeros(parent.shape[0]), np.empty(parent.shape[0], np.int32)
    for b in range(blocks.row.shape[0]):
        if pool.length[b] == 0:
            continue
        y, row, count = blocks.node[b], blocks.row[b], 0
        path, n = start[y], start[y + 1] - start[y]
        for p in range(pool.start[b], pool.start[b] + pool.length[b]):
            j, value = pool.classes[p], pool.values[p]
            if blocks.all_rival:
                common = 0
                while common < n and common < level[j] and nodes[start[j] + common] == nodes[path + common]:
                    common += 1
                i = y
                value *= 0.5 * (n + level[j] - 2 * common)
            else:
                i = nodes[path + level[j] - 1]
            for end_of_pair in range(2):
                a = j if end_of_pair else i
                if change[a] == 0.0:
                    touched[count] = a
                    count += 1
                change[a] += -value if end_of_pair else value
        for p in range(rows.indptr[row], rows.indptr[row + 1]):
            x, v = rows.data[p], V[rows.indices[p]]
            for t in range(count):
                v[touched[t]] += x * change[touched[t]]
        for t in range(count):
            change[touched[t]] = 0.0


@njit(cache=True, nogil=True)
def hinge(
    rows: Rows,
    blocks: Blocks,
    tree: Tree,
    unit: NDArray[np.float64],
    W: NDArray[np.float64],
    G: NDArray[np.float64],
) -> float:
    """The losses of all blocks at the weights W (n_features, n_nodes); a subgradient of their sum is added to G.

    Zhou et al. 2011, section 4.1; ``unit`` holds along the paths what B is for the identity.
    """
    indptr, indices, data, _ = rows
    b_row, b_node, b_first, b_bound, all_rival = blocks
    parent, level, start, nodes, first_child = tree
    m, width = parent.shape[0], W.shape[1]
    r, z, shared = np.zeros(width), np.zeros(m), np.zeros(m, np.int32)
    most, best, g_best = 1, np.empty(level[m - 1], np.int32), np.empty(level[m - 1])
    losses = 0.0
    for b in range(b_row.shape[0]):
        i_row, y, first = b_row[b], b_node[b], b_first[b]
        path, n = start[y], start[y + 1] - start[y]
        _score_groups(indptr, indices, data, i_row, nodes, first_child, path, n, first, W, r, True)
        found = _margins(
            parent, level, start, nodes, first_child, unit, y, first, all_rival, most, r, z, shared, best, g_best
        )  # fmt: skip
        worst, at = 0.0, -1
        for t in range(found):
            if g_best[t] > worst:
                worst, at = g_best[t], best[t]
        if at >= 0:
            losses += b_bound[b] * worst
            i, scale, _ = _violation(nodes, level, path, n, y, all_rival, shared, z, at)
            for p in range(indptr[i_row], indptr[i_row + 1]):
                x = b_bound[b] * scale * data[p]
                G[indices[p], i] -= x
                G[indices[p], at] += x
    return losses
