"""The rivals of a label that has all other nodes as rivals: the scores of all nodes, and the worst ones.

Of a pair the scale is half the length of the path between label and rival, which is that of the rival's level and of
how much of its path is the label's. The nodes of a level stand in a row, and so do those below each node of the label's
path: between these ends the scale stays, and scores alone are compared.
"""

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.rivals import insert
from solvers.numerics.array_types import Array, Floats, Ints, Ints32


@njit(inline="always")
def add_up(parent: Ints32, first_child: Ints32, products: Array, scores: Floats) -> None:
    """The scores of all nodes: their products summed down the paths."""
    for j in range(first_child[1]):
        scores[j] = products[j]
    for j in range(first_child[1], parent.shape[0]):
        scores[j] = products[j] + scores[parent[j]]


@njit(inline="always")
def worst_of_all(
    level: Ints32, start: Ints, nodes: Ints32, first_child: Ints32, y: int, z: Floats, most: int, low: Ints32,
    high: Ints32, rivals: Ints32, violations: Floats
) -> int:  # fmt: skip
    """The worst rivals of the label y among all nodes with the scores z: how many; ``low`` and ``high`` are room."""
    begin, n, found, lowest, own = start[y], level[y], 0, -np.inf, z[y]
    low[0], high[0] = first_child[0], first_child[1]
    for l in range(1, level[level.shape[0] - 1] + 1):
        if l <= n:
            low[l], high[l] = nodes[begin + l - 1], nodes[begin + l - 1] + 1
        deepest = min(l, n)
        for q in range(deepest + 1):
            scale = 0.5 * (n + l - 2 * q)
            for side in range(2 if q < deepest else 1):
                # what shares q nodes with the path stands on both sides of what shares more
                lo = high[q + 1] if side else low[q]
                hi = high[q] if side or q == deepest else low[q + 1]
                least = lowest / scale - 1.0 + own if scale > 0.0 else np.inf
                for j in range(lo, hi):
                    if z[j] > least:
                        found = insert(scale * (1.0 - own + z[j]), j, 0, found, most, rivals, violations)
                        if found == most:
                            lowest = violations[found - 1]
                            least = lowest / scale - 1.0 + own
        for q in range(deepest + 1):
            low[q], high[q] = first_child[low[q] + 1], first_child[high[q] + 1]
    return found


@njit(inline="always")
def best_by_distance(
    level: Ints32, start: Ints, nodes: Ints32, first_child: Ints32, y: int, z: Floats, low: Ints32, high: Ints32,
    best: Floats
) -> None:  # fmt: skip
    """The largest scores among the nodes whose paths to the label y have one length, twice the scale; -inf of none."""
    begin, n = start[y], level[y]
    for l in range(best.shape[0]):
        best[l] = -np.inf
    low[0], high[0] = first_child[0], first_child[1]
    for l in range(1, level[level.shape[0] - 1] + 1):
        if l <= n:
            low[l], high[l] = nodes[begin + l - 1], nodes[begin + l - 1] + 1
        deepest = min(l, n)
        for q in range(deepest + 1):
            top = best[n + l - 2 * q]
            for side in range(2 if q < deepest else 1):
                lo = high[q + 1] if side else low[q]
                hi = high[q] if side or q == deepest else low[q + 1]
                for j in range(lo, hi):
                    top = max(top, z[j])
            best[n + l - 2 * q] = top
        for q in range(deepest + 1):
            low[q], high[q] = first_child[low[q] + 1], first_child[high[q] + 1]
