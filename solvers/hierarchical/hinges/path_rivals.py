"""The rivals of a label that has all other nodes as rivals: the scores of all nodes, and the worst ones.

Of a pair the scale is half the length of the path between label and rival, which is that of the rival's level and of
how much of its path is the label's. The nodes of a level are consecutive, and so are those below each node of the
label's path: between these ends the scale stays, and scores alone are compared.
"""

import numpy as np
from numba import njit

from solvers.hierarchical.hinges.rivals import insert
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.rows import ALIGNMENT
from solvers.numerics.simd import above_mask, lowest_bit


@njit(inline="always")
def add_up(parent: Ints32, first_child: Ints32, products: Array, scores: Array) -> None:
    """The scores of all nodes: their products summed down the paths."""
    for j in range(first_child[1]):
        scores[j] = products[j]
    for j in range(first_child[1], parent.shape[0]):
        # an index without sign is not looked at for counting from the end, which takes a third of the time
        here = np.uint64(j)
        scores[here] = products[here] + scores[np.uint64(parent[here])]


@njit(inline="always")
def worst_of_all(
    level: Ints32, start: Ints, nodes: Ints32, y: int, z: Array, most: int, rivals: Ints32, violations: Floats
) -> int:  # fmt: skip
    """The worst rivals of the label y among all nodes with the scores z that violate their margin: how many.

    z is as long as whole vectors are, -inf behind the last node. The deepest nodes come first: at the same score they
    are the worst. A vector of scores is compared with what the largest scale of its nodes would let through.
    """
    own, n, begin, found, lowest = z[y], level[y], start[y], 0, 0.0
    width = ALIGNMENT // z.itemsize
    for first in range(z.shape[0] - width, -1, -width):
        scale = 0.5 * (n + level[min(first + width, level.shape[0]) - 1])
        mask = above_mask(z, first, z.dtype.type(lowest / scale - 1.0 + own))
        while mask:
            j = first + lowest_bit(mask)
            mask &= mask - np.uint32(1)
            shared, deepest, at = 0, min(n, level[j]), start[j]
            while shared < deepest and nodes[begin + shared] == nodes[at + shared]:
                shared += 1
            violation = 0.5 * (n + level[j] - 2 * shared) * (1.0 - own + z[j])
            if violation > lowest:
                found = insert(violation, j, 0, found, most, rivals, violations)
                if found == most:
                    lowest = violations[found - 1]
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
                top = _largest(z, lo, hi, top)
            best[n + l - 2 * q] = top
        for q in range(deepest + 1):
            low[q], high[q] = first_child[low[q] + 1], first_child[high[q] + 1]


@njit(inline="always")
def _largest(z: Floats, first: int, last: int, top: float) -> float:
    """The largest of ``top`` and ``z[first:last]``."""
    width, j = ALIGNMENT // z.itemsize, first
    while j + width <= last:
        mask = above_mask(z, j, top)
        while mask:
            top = max(top, z[j + lowest_bit(mask)])
            mask &= mask - np.uint32(1)
        j += width
    for rest in range(j, last):
        top = max(top, z[rest])
    return top
