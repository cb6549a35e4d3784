"""Margins in a label graph: the isotonic regression of the nodes' scores, which says at which price each is chosen.

If every node costs t, a closed set u is worth ``sum_j (s_j - t) u_j``. The best of these sets, each the smallest of
equal ones, shrink as t grows; the margin v_j is the price at which node j leaves them. So ``v_j > 0`` is the best set
itself, and v never rises on the way down. It is the point closest to s among those that never do: the isotonic
regression, which successive minimum cuts make (Maxwell and Muckstadt 1985): the best set at the mean of a part's scores
divides the part, until it is empty.
"""

import numpy as np
from numba import njit

from solvers.hierarchical.closures import best_closure, blank_cut
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32


def nodes_of_part(parents: Adjacency, scores: Floats, node: int) -> Ints:
    """The nodes whose mean score is the margin of ``node``, ascending."""
    part = np.empty(len(scores), np.int32)
    _regress(parents, scores.astype(np.float64), part)
    return np.flatnonzero(part == part[node])


@njit(cache=True, nogil=True)
def leave_prices(parents: Adjacency, F: Floats) -> None:
    """Every score becomes the price at which its node leaves the best closed set; F is (n_samples, n_nodes)."""
    part = np.empty(F.shape[1], np.int32)
    for i in range(F.shape[0]):
        _regress(parents, F[i], part)


@njit(cache=True, nogil=True)
def _regress(parents: Adjacency, f: Floats, part: Ints32) -> None:
    """f becomes its isotonic regression; ``part`` numbers the sets of nodes of which each value is the mean."""
    m = f.shape[0]
    cut, chosen = blank_cut(m, parents.nodes.shape[0]), np.empty(m, np.bool_)
    order, moved, weights = np.arange(m).astype(np.int32), np.empty(m, np.int32), np.empty(m)
    begins, ends, n_open, n_parts = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64), 1, 1
    begins[0], ends[0] = 0, m
    part[:] = 0
    while n_open > 0:
        n_open -= 1
        begin, end = begins[n_open], ends[n_open]
        if end == begin:
            continue
        nodes = order[begin:end]
        mean = 0.0
        for j in nodes:
            mean += f[j]
        mean /= end - begin
        for j in nodes:
            weights[j] = f[j] - mean
        number = part[nodes[0]]
        best_closure(parents, weights, nodes, part, number, chosen, cut)
        middle = _divide(nodes, chosen, moved)
        if middle == 0 or middle == end - begin:
            for j in nodes:
                f[j] = mean
            continue
        for j in nodes[:middle]:
            part[j] = n_parts
        n_parts += 1
        begins[n_open], ends[n_open] = begin, begin + middle
        begins[n_open + 1], ends[n_open + 1] = begin + middle, end
        n_open += 2
    # the order of the values must outlast rounding
    for j in range(m):
        for e in range(parents.start[j], parents.start[j + 1]):
            f[j] = min(f[j], f[parents.nodes[e]])


@njit(cache=True, nogil=True)
def _divide(nodes: Ints32, chosen: Bools, moved: Ints32) -> int:
    """Put the chosen nodes first, both sides ascending; returns how many they are."""
    n, n_others = 0, 0
    for at in range(len(nodes)):
        j = nodes[at]
        if chosen[j]:
            nodes[n] = j
            n += 1
        else:
            moved[n_others] = j
            n_others += 1
    nodes[n:] = moved[:n_others]
    return n
