"""Models that score classes by the cosine of their centroids."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Floats, Model
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.labels import stored_arrays


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
        self.products = SparseLinearModel(classes, centroids)
        self.classes, self.n_features = self.products.classes, self.products.n_features
        self.smoothing = smoothing

    @property
    def nonzero_weights(self) -> float:
        return self.products.nonzero_weights

    def scores(self, X: sp.csr_matrix) -> Floats:
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return self._scored(self.products.scores(X), lengths[:, None])

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        return self._scored(self.products.score_one(indices, values), np.linalg.norm(values))

    def _scored(self, products: Floats, lengths: NDArray[np.float64] | np.floating[Any]) -> Floats:
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(np.log(np.maximum(cosines, 0.0) + np.float32(self.smoothing)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.products.arrays() | {"smoothing": np.array([self.smoothing])}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "CentroidModel":
        products = SparseLinearModel.from_arrays(classes, n_features, arrays)
        stored_arrays.require_floats("smoothing", arrays["smoothing"], 1)
        return cls(classes, products.W, float(arrays["smoothing"][0]))
