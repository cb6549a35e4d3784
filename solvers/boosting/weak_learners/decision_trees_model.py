"""Models that add up votes of small trees."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.boosting.weak_learners import decision_tree_growth as kernels
from solvers.boosting.weak_learners.votes import Votes, decoded
from solvers.core.model import Floats, Model


class TreesModel(Model):
    """``F_c(x) = sum_t w_tc h_t(x)`` over trees h_t of one depth that say +1 or -1.

    Parameters
    ----------
    classes : tuple of str
    n_features : int
    features : int64 array, shape (n_trees, 2^depth - 1)
        What each node asks for: node j of level l, in place ``2^l - 1 + j``, sends an example with
        ``x_feature <= threshold`` to node j of the next level, any other to node ``j + 2^l``; -1 sends all to j.
    thresholds : float64 array, shape (n_trees, 2^depth - 1)
    leaves : int8 array, shape (n_trees, 2^depth)
    votes : Votes
        What each round of training has added.
    code : int8 array, shape (n_classes, n_outputs), optional
        What turns outputs into scores, as :func:`solvers.boosting.weak_learners.votes.decoded` does.
    """

    kind = "trees"

    def __init__(
        self,
        classes: tuple[str, ...],
        n_features: int,
        features: NDArray[np.int64],
        thresholds: NDArray[np.float64],
        leaves: NDArray[np.int8],
        votes: Votes,
        code: NDArray[np.int8] | None = None,
    ) -> None:
        self.classes = classes
        self.n_features = n_features
        self.features = features
        self.thresholds = thresholds
        self.leaves = leaves
        self.votes = votes
        self.code = code
        self._n_outputs = len(classes) if code is None else code.shape[1]
        used = np.unique(features[features >= 0])
        self._place = np.full(n_features, -1, np.int32)
        self._place[used] = np.arange(len(used), dtype=np.int32)
        self._n_places = len(used) + 1
        # a node that asks for nothing looks at a place that stays zero, and finds it below any threshold
        asks = features >= 0
        self._splits = np.where(asks, self._place[features], len(used)).astype(np.int32)
        self._cuts = np.where(asks, thresholds, np.inf)
        self._prepare()

    def _prepare(self) -> None:
        """The final votes of each tree, one after the other."""
        weights = self.votes.weights(len(self.features), self._n_outputs)
        trees, self._outputs = (array.astype(np.int32) for array in np.nonzero(weights))
        self._weights = weights[trees, self._outputs]
        self._ends = np.searchsorted(trees, np.arange(len(self.features) + 1)).astype(np.int64)

    @property
    def importances(self) -> NDArray[np.float64]:
        """Each feature's share of the absolute weights, shape (n_features,); a tree's is shared out among its levels.

        A node counts as much as all nodes of its level together are worth, over their number.
        """
        weights = np.abs(self.votes.weights(len(self.features), self._n_outputs)).sum(axis=1)
        levels = np.floor(np.log2(np.arange(1, self.features.shape[1] + 1)))
        parts = weights[:, None] * 0.5**levels
        asks = self.features >= 0
        shares = np.bincount(self.features[asks], parts[asks], self.n_features)
        return np.asarray(shares / shares.sum() if shares.any() else shares)

    @property
    def n_rounds(self) -> int:
        """Rounds of training that went into the model."""
        return len(self.votes.ends)

    def scores(self, X: sp.csr_matrix) -> Floats:
        self._check(X)
        votes = self._ends, self._outputs, self._weights
        return self._score(X.indptr, X.indices, X.data.astype(np.float64, copy=False), slice(None), *votes)

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        votes = self._ends, self._outputs, self._weights
        return np.asarray(self._score(np.array([0, len(indices)], np.int32), indices, values, slice(None), *votes)[0])

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[Floats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        self._check(X)
        outputs = np.zeros((X.shape[0], self._n_outputs))
        rows = X.indptr, X.indices, X.data.astype(np.float64, copy=False)
        for learners, targets, deltas in self.votes.rounds():
            ends = np.arange(len(learners) + 1)
            outputs += self._sum(*rows, learners, ends, targets, deltas)
            yield decoded(outputs.copy(), self.code)

    def _score(self, *arguments: Any) -> Floats:
        return decoded(self._sum(*arguments), self.code)

    def _sum(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        data: NDArray[np.float64],
        chosen: Any,
        ends: NDArray[np.int64],
        outputs: NDArray[np.int32],
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Votes of the chosen trees; those of the t-th stand at ``ends[t] : ends[t + 1]``."""
        out = np.empty((len(indptr) - 1, self._n_outputs))
        kernels.score_trees(
            indptr, indices, data, self._place, self._n_places, self._splits[chosen], self._cuts[chosen],
            np.ascontiguousarray(self.leaves[chosen]), ends, outputs, weights, out,
        )  # fmt: skip
        return out

    def _check(self, X: sp.csr_matrix) -> None:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = self.votes.arrays()
        arrays |= {"features": self.features, "thresholds": self.thresholds, "leaves": self.leaves}
        return arrays if self.code is None else arrays | {"code": self.code}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]) -> "TreesModel":
        nodes = arrays["features"], arrays["thresholds"], arrays["leaves"]
        return cls(classes, n_features, *nodes, Votes.of_arrays(arrays), arrays.get("code"))
