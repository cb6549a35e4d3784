"""From the scores of nodes to a leaf."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.predicted_scores import widened


@njit(cache=True, nogil=True)
def descend(
    indptr: Array,
    indices: Array,
    data: Floats,
    place: Ints,
    W: Array,
    base: Floats,
    first_child: Ints32,
    leaves: Ints,
    margins: Floats,
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
                        scores[j] += x * widened(w[low + j])
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


@njit(cache=True, nogil=True)
def worth(parent: Ints32, first_child: Ints32, values: Floats, ties: Floats) -> None:
    """Scores become what a leaf is worth, its least margin on the path, and minus infinity at inner nodes.

    Leaves of one worth go by ``ties``: minus how far their paths fall behind in sum. Where no path does, equal scores
    were met, and the one with the fewest turns away from the first best comes first; what is added for them is lost in
    any other sum.
    """
    n_nodes = len(parent)
    margins = np.empty(n_nodes)
    for i in range(values.shape[0]):
        for p in range(-1, n_nodes):
            low, high = first_child[p + 1], first_child[p + 2]
            if low == high:
                continue
            best, second = low, -np.inf
            for j in range(low + 1, high):
                if values[i, j] > values[i, best]:
                    second, best = values[i, best], j
                elif values[i, j] > second:
                    second = values[i, j]
            top = values[i, best]
            for j in range(low, high):
                margin = values[i, j] - (second if j == best else top)
                lag = (values[i, j] - top) - (0.0 if j == best else 1e-300)
                margins[j] = margin if p < 0 else min(margin, margins[p])
                ties[i, j] = lag if p < 0 else ties[i, p] + lag
        for j in range(n_nodes):
            values[i, j] = margins[j] if first_child[j + 1] == first_child[j + 2] else -np.inf
