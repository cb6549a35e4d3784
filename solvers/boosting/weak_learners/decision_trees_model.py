"""Models that add up votes of small decision trees."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.boosting.weak_learners.boosted_model import BoostedModel, Ensemble, shares
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints8, Ints32


class DecisionTreesModel(BoostedModel):
    """The sum of decision trees of one depth that say +1 or -1, each with its weights.

    Parameters
    ----------
    features : int64 array, shape (n_trees, 2^depth - 1)
        What each node asks for: node j of level l, in place ``2^l - 1 + j``, sends an example with
        ``x_feature <= threshold`` to node j of the next level, any other to node ``j + 2^l``; -1 sends all to j.
    thresholds : float64 array, shape (n_trees, 2^depth - 1)
    leaves : int8 array, shape (n_trees, 2^depth)
    """

    kind = "trees"
    unexplained = "its decision trees ask for several features together"

    def __init__(self, features: Ints, thresholds: Floats, leaves: Ints8, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.features, self.thresholds, self.leaves = features, thresholds, leaves
        used = np.unique(features[features >= 0])
        self._place = np.full(self.n_features, -1, np.int32)
        self._place[used] = np.arange(len(used), dtype=np.int32)
        self._n_places = len(used) + 1
        # a node that asks for nothing looks at a place that stays zero, and finds it below any threshold
        asks = features >= 0
        self._splits = np.where(asks, self._place[features], len(used)).astype(np.int32)
        self._cuts = np.where(asks, thresholds, np.inf)
        # the final votes of each tree, one after the other
        weights = ensemble.weights(len(features))
        trees, outputs = (array.astype(np.int32) for array in np.nonzero(weights))
        ends = np.searchsorted(trees, np.arange(len(features) + 1)).astype(np.int64)
        self._final = ends, outputs, weights[trees, outputs]

    @property
    def importances(self) -> Floats:
        """Each feature's share of the absolute weights, shape (n_features,); a tree's is shared out among its levels.

        A node counts as much as all nodes of its level together are worth, over their number.
        """
        weights = np.abs(self.ensemble.weights(len(self.features))).sum(axis=1)
        levels = np.floor(np.log2(np.arange(1, self.features.shape[1] + 1)))
        parts = weights[:, None] * 0.5**levels
        asks = self.features >= 0
        return shares(np.bincount(self.features[asks], parts[asks], self.n_features))

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        rows = X.indptr, X.indices, X.data.astype(np.float64, copy=False)
        return self.decode(self._sum(rows, slice(None), self._final))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        row = np.array([0, len(indices)], np.int32), indices, values
        return np.asarray(self.decode(self._sum(row, slice(None), self._final))[0])

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[AnyFloats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        self.check_width(X)
        outputs = np.zeros((X.shape[0], self.ensemble.n_outputs))
        rows = X.indptr, X.indices, X.data.astype(np.float64, copy=False)
        for learners, targets, deltas in self.votes.rounds():
            outputs += self._sum(rows, learners, (np.arange(len(learners) + 1), targets, deltas))
            yield self.decode(outputs.copy())

    def _sum(self, rows: tuple[Any, Any, Any], chosen: Any, votes: tuple[Any, Any, Any]) -> Floats:
        """Votes of the chosen trees: ends, outputs and weights; those of the t-th are at ``ends[t] : ends[t + 1]``.

        ``rows`` are indptr, indices and data.
        """
        out = np.empty((len(rows[0]) - 1, self.ensemble.n_outputs))
        _score_trees(
            *rows, self._place, self._n_places, self._splits[chosen], self._cuts[chosen],
            np.ascontiguousarray(self.leaves[chosen]), *votes, out,
        )  # fmt: skip
        return out

    def arrays(self) -> dict[str, Array]:
        trees: dict[str, Array] = {"features": self.features, "thresholds": self.thresholds, "leaves": self.leaves}
        return self.ensemble.arrays() | trees

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]
    ) -> "DecisionTreesModel":
        ensemble = Ensemble.of_arrays(classes, n_features, arrays)
        features, thresholds, leaves = arrays["features"], arrays["thresholds"], arrays["leaves"]
        n_trees, n_leaves = leaves.shape
        if n_leaves & (n_leaves - 1) or n_leaves == 0:
            raise stored_arrays.ArrayFault(f"the array leaves has {n_leaves} columns; expected a power of two")
        stored_arrays.require_shape("features", features, n_trees, n_leaves - 1)
        stored_arrays.require_within("features", features.reshape(-1), -1, n_features)
        stored_arrays.require_floats("thresholds", thresholds, *features.shape)
        ensemble.require_learners(n_trees)
        return cls(features, thresholds, leaves, ensemble)


@njit(cache=True, nogil=True)
def _score_trees(
    indptr: Array,
    indices: Array,
    data: Floats,
    place: Ints32,
    n_places: int,
    splits: Ints32,
    thresholds: Floats,
    leaves: Ints8,
    ends: Ints,
    outputs: Ints32,
    weights: Floats,
    out: Floats,
) -> None:
    """out[i, c] = sum over trees t and outputs c of the weight times what t says of row i.

    ``splits[t, node]`` is the place of a feature, ``place[j]`` that of feature j, -1 if no tree asks for it; the votes
    of tree t are at ``ends[t] : ends[t + 1]`` of outputs and weights.
    """
    x = np.zeros(n_places)
    depth = 0
    while (1 << depth) < leaves.shape[1]:
        depth += 1
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if place[indices[p]] >= 0:
                x[place[indices[p]]] = data[p]
        for t in range(splits.shape[0]):
            split, threshold = splits[t], thresholds[t]
            node = 0
            for level in range(depth):
                at = (1 << level) - 1 + node
                if not x[split[at]] <= threshold[at]:
                    node += 1 << level
            response = leaves[t, node]
            for v in range(ends[t], ends[t + 1]):
                row[outputs[v]] += response * weights[v]
        for p in range(indptr[i], indptr[i + 1]):
            if place[indices[p]] >= 0:
                x[place[indices[p]]] = 0.0
