"""Models that score classes by the cosine of their centroids."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Floats, Model


class CentroidModel(Model):
    """Scores ``log(max(0, cos(centroid of c, x)) + smoothing)``.

    Parameters
    ----------
    classes : sequence of str
    centroids : csr_matrix of float32, shape (n_features, n_classes)
        A column of unit length, or zero, for each class.
    smoothing : float
    """

    kind = "centroids"

    def __init__(self, classes: Sequence[str], centroids: sp.csr_matrix, smoothing: float) -> None:
        self.classes = tuple(classes)
        self.n_features = int(centroids.shape[0])
        self.centroids = centroids
        self.smoothing = smoothing

    @property
    def nonzero_weights(self) -> float:
        return float(self.centroids.nnz / max(1, self.centroids.shape[0] * self.centroids.shape[1]))

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        products = np.asarray((X.astype(np.float32) @ self.centroids).toarray())
        return self._scored(products, np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())[:, None])

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        row = sp.csr_matrix((values, indices, np.array([0, len(indices)])), shape=(1, self.n_features))
        return np.asarray(self.scores(row)[0])

    def _scored(self, products: NDArray[np.float32], lengths: NDArray[np.float64]) -> Floats:
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(np.log(np.maximum(cosines, 0.0) + np.float32(self.smoothing)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        parts = {"indptr": self.centroids.indptr, "indices": self.centroids.indices, "data": self.centroids.data}
        return parts | {"smoothing": np.array([self.smoothing])}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "CentroidModel":
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        return cls(classes, sp.csr_matrix(parts, shape=(n_features, len(classes))), float(arrays["smoothing"][0]))
