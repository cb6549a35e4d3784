"""Models over learnt label trees: every class scored by the margins along its path, in several trees."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.core.model import Floats, Model
from solvers.labels import stored_arrays
from solvers.numerics.copies import copy


class LabelTreeModel(Model):
    """Scores ``log(mean over the trees of exp(- sum over the path of max(0, 1 - z)^2))``, z being a node's margin.

    Every class is scored, without a beam.

    Parameters
    ----------
    classes : sequence of str
    W : csr_matrix of float32, shape (n_features, n_nodes)
        A column for each node of all trees; those of roots are empty.
    intercept : float32 array, shape (n_nodes,)
    parent : int32 array, shape (n_nodes,)
        Smaller than the node; -1 of a root.
    label : int32 array, shape (n_nodes,)
        The class of a leaf; -1 of all other nodes.
    """

    kind = "label_trees"

    def __init__(
        self,
        classes: Sequence[str],
        W: sp.csr_matrix,
        intercept: NDArray[np.float32],
        parent: NDArray[np.int32],
        label: NDArray[np.int32],
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = int(W.shape[0])
        self.W = W
        self.intercept = intercept
        self.parent = parent
        self.label = label

    @property
    def nonzero_weights(self) -> float:
        return float(self.W.nnz / max(1, self.W.shape[0] * self.W.shape[1]))

    def with_last_as_intercept(self, value: float) -> "LabelTreeModel":
        intercept = self.W[-1].toarray()[0] * np.float32(value)
        return LabelTreeModel(self.classes, self.W[:-1], intercept, self.parent, self.label)

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        scores = np.zeros((X.shape[0], len(self.classes)), np.float32)
        self._score(X.indptr, X.indices, X.data, scores)
        return scores

    def _score(
        self,
        indptr: NDArray[np.int32],
        indices: NDArray[np.int32],
        data: NDArray[np.floating[Any]],
        scores: NDArray[np.float32],
    ) -> None:
        fixed = self.W.indptr, self.W.indices, self.W.data, self.intercept, self.parent, self.label
        _score_rows(indptr, indices, data.astype(np.float32), *fixed, scores)

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        scores = np.zeros((1, len(self.classes)), np.float32)
        indptr = np.array([0, len(indices)], np.int32)
        self._score(indptr, indices, values, scores)
        return np.asarray(scores[0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        weights = {"indptr": self.W.indptr, "indices": self.W.indices, "data": self.W.data}
        return weights | {"intercept": self.intercept, "parent": self.parent, "label": self.label}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "LabelTreeModel":
        intercept, parent, label = arrays["intercept"], arrays["parent"], arrays["label"]
        n_nodes = len(parent)
        stored_arrays.require_parents(parent)
        stored_arrays.require_within("label", label, -1, len(classes))
        stored_arrays.require_shape("label", label, n_nodes)
        stored_arrays.require_floats("intercept", intercept, n_nodes)
        return cls(classes, stored_arrays.sparse(arrays, n_features, n_nodes), intercept, parent, label)


@njit(cache=True, nogil=True)
def _score_rows(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    W_indptr: NDArray[np.int32],
    W_indices: NDArray[np.int32],
    W_data: NDArray[np.float32],
    intercept: NDArray[np.float32],
    parent: NDArray[np.int32],
    label: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Margins of all nodes, losses summed down the trees, and the mean of their exponentials, row by row."""
    n_nodes = len(parent)
    z = np.empty(n_nodes, np.float32)
    n_trees = 0
    for node in range(n_nodes):
        n_trees += parent[node] < 0
    for i in range(len(indptr) - 1):
        copy(intercept, z)
        for at in range(indptr[i], indptr[i + 1]):
            feature, value = indices[at], data[at]
            for entry in range(W_indptr[feature], W_indptr[feature + 1]):
                z[W_indices[entry]] += value * W_data[entry]
        for node in range(n_nodes):
            above = parent[node]
            if above < 0:
                z[node] = 0.0
                continue
            short = max(np.float32(0.0), np.float32(1.0) - z[node])
            z[node] = z[above] - short * short
            if label[node] >= 0:
                scores[i, label[node]] += np.exp(z[node])
        for c in range(scores.shape[1]):
            scores[i, c] = np.log(max(scores[i, c] / n_trees, np.float32(1e-30)))
