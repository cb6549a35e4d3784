"""Models that score classes by the cosine of their centroids."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, Model
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints32


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

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return self._scored(self.products.scores(X), lengths[:, None])

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return self._scored(self.products.score_one(indices, values), np.linalg.norm(values))

    def _scored(self, products: AnyFloats, lengths: Floats | np.floating[Any]) -> AnyFloats:
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.asarray(np.log(np.maximum(cosines, 0.0) + np.float32(self.smoothing)))

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        """In proportion to the parts of each cosine; the score of the empty row is that of a cosine of 0."""
        parts, least = np.zeros(len(indices)), float(np.log(np.float32(self.smoothing)))
        for class_, sign in ((best, 1.0), (rival, -1.0)):
            if class_ is None:
                continue
            own = self.products.contributions(indices, values, class_, None).parts
            cosine = float(own.sum() / max(np.linalg.norm(values), np.finfo(float).tiny))
            if cosine > 0:
                parts += own * (sign * (np.log(cosine + self.smoothing) - least) / own.sum())
        return Contributions(parts, least if rival is None else 0.0, additive=False)

    def arrays(self) -> dict[str, Array]:
        return self.products.arrays() | {"smoothing": np.array([self.smoothing])}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "CentroidModel":
        products = SparseLinearModel.from_arrays(classes, n_features, arrays)
        stored_arrays.require_floats("smoothing", arrays["smoothing"], 1)
        return cls(classes, products.W, float(arrays["smoothing"][0]))
