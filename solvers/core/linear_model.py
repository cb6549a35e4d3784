"""Linear models with dense weights."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Contributions, LinearWeights, Model, Prune
from solvers.core.sparse_linear_model import SparseLinearModel, smaller_weights, sparse_rows, sparse_takes_less
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, AnyInts, Array, Floats, Ints, Ints32
from solvers.numerics.predicted_scores import by_dense, one_by_dense, places


class LinearModel(Model):
    """One weight vector a class, kept feature-major so that a sparse example reads few rows.

    Parameters
    ----------
    classes : sequence of str
    n_features : int
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; all others weigh nothing.
    W : float array, shape (n_rows, n_classes)
        Half precision is read as it is, and makes scores of float32.
    intercept : float array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    """

    kind = "linear"
    scores_rows_alone = True
    # how W is written; in memory it is dense
    written_sparse = False

    def __init__(
        self, classes: Sequence[str], n_features: int, features: Ints, W: AnyFloats, intercept: AnyFloats | None = None
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = n_features
        self.features = features
        self.W = W
        self.intercept = intercept

    @property
    def nonzero_weights(self) -> float:
        return float(np.count_nonzero(self.W) / max(1, len(self.classes) * self.n_features))

    def smaller(self, prune: Prune, half: bool) -> Model:
        W, intercept = smaller_weights(self.W, self.intercept, prune, half)
        if sparse_takes_less(W, self.n_features):
            return SparseLinearModel(self.classes, sparse_rows(W, self.features, self.n_features), intercept, half)
        return LinearModel(self.classes, self.n_features, self.features, W, intercept)

    def with_last_as_intercept(self, value: float) -> "LinearModel":
        intercept = self.W[-1] * self.W.dtype.type(value)
        return LinearModel(
            self.classes, self.n_features - 1, self.features[:-1], np.ascontiguousarray(self.W[:-1]), intercept
        )

    def linear_weights(self) -> LinearWeights:
        return LinearWeights(self.features, self.W, self.intercept)

    @property
    def coef(self) -> AnyFloats:
        """Dense weights, shape (n_classes, n_features)."""
        coef = np.zeros((len(self.classes), self.n_features), self.W.dtype)
        coef[:, self.features] = self.W.T
        return coef

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        used = X if len(self.features) == self.n_features else X[:, self.features]
        scores = by_dense(used, self.W)
        if self.intercept is not None:
            scores += self.intercept
        return scores

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        rows: AnyInts = indices
        if len(self.features) != self.n_features:
            at, known = places(self.features, indices)
            rows, values = at[known], values[known]
        scores = one_by_dense(rows, values, self.W)
        return scores if self.intercept is None else scores + self.intercept

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        at, known = places(self.features, indices)
        parts = np.zeros(len(indices))
        # the two columns alone: all features may be asked about, and a copy of their rows would be one of the model
        parts[known] = values[known] * self._lead(self.W, at[known], best, rival)
        if self.intercept is None:
            return Contributions(parts, 0.0)
        return Contributions(
            parts, float(self._lead(self.intercept[np.newaxis], np.zeros(1, np.int64), best, rival)[0])
        )

    @staticmethod
    def _lead(W: AnyFloats, rows: NDArray[np.integer], best: int, rival: int | None) -> Floats:
        lead: Floats = W[rows, best].astype(np.float64)
        return lead if rival is None else np.asarray(lead - W[rows, rival])

    def arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {"features": self.features}
        if self.written_sparse:
            rows = sparse_rows(self.W, np.arange(len(self.W)), len(self.W))
            arrays |= {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data.astype(self.W.dtype)}
        else:
            arrays["W"] = self.W
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        return {"W": "features"}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "LinearModel":
        return cls(classes, n_features, *stored_weights(len(classes), n_features, arrays))


def stored_weights(
    n_classes: int, n_features: int, arrays: Mapping[str, Array]
) -> tuple[Ints, AnyFloats, AnyFloats | None]:
    """Features, weights and intercept of a stored linear model, sparse weights made dense; raises ArrayFault."""
    features, intercept = arrays["features"], arrays.get("intercept")
    if "W" in arrays:
        W = arrays["W"]
    else:
        W = stored_arrays.sparse(arrays, len(features), n_classes).toarray().astype(arrays["data"].dtype, copy=False)
    stored_arrays.require_ascending("features", features, n_features)
    stored_arrays.require_floats("W", W, len(features), n_classes, half=True)
    stored_arrays.require_floats("intercept", intercept, n_classes)
    return features, W, intercept
