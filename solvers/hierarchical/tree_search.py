"""From the scores of nodes to a leaf."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def descend(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[np.float64],
    place: NDArray[np.int64],
    W: NDArray[Any],
    base: NDArray[np.float64],
    first_child: NDArray[np.int32],
    leaves: NDArray[np.int64],
    margins: NDArray[np.float64],
) -> None:
    """The recursive rule for every row (equation 1): the leaf, and the margin of each level's choice."""
    scores = np.empty(base.shape[0])
    for i in range(indptr.shape[0] - 1):
        node, level = -1, 0
        while first_child[node + 1] < first_child[node + 2]:
            low, high = first_child[node + 1], first_child[node + 2]
            n = high - low
            for j in range(n):
                scores[j] = base[low + j]
            for p in range(indptr[i], indptr[i + 1]):
                f = place[indices[p]]
                if f >= 0:
                    x, w = data[p], W[f]
                    for j in range(n):
                        scores[j] += x * w[low + j]
            best, second = 0, -np.inf
            for j in range(1, n):
                if scores[j] > scores[best]:
                    second, best = scores[best], j
                elif scores[j] > second:
                    second = scores[j]
            margins[i, level] = scores[best] - second
            node = low + best
            level += 1
        leaves[i] = node
