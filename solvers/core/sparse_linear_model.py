"""Linear models most of whose weights are zero."""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, LinearWeights, Model
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints32
from solvers.numerics.predicted_scores import by_sparse, one_by_sparse


class SparseLinearModel(Model):
    """``W' x`` with sparse W, kept feature-major.

    Parameters
    ----------
    classes : sequence of str
    W : csr_matrix, shape (n_features, n_classes)
    intercept : float array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    """

    kind = "sparse_linear"
    scores_rows_alone = True

    def __init__(self, classes: Sequence[str], W: sp.csr_matrix, intercept: AnyFloats | None = None) -> None:
        self.classes = tuple(classes)
        self.n_features = int(W.shape[0])
        self.W = W
        self.intercept = intercept

    @property
    def nonzero_weights(self) -> float:
        return float(self.W.nnz / max(1, len(self.classes) * self.n_features))

    def with_last_as_intercept(self, value: float) -> "SparseLinearModel":
        intercept = self.W[-1].toarray()[0] * self.W.dtype.type(value)
        return SparseLinearModel(self.classes, self.W[:-1], intercept)

    def linear_weights(self) -> LinearWeights:
        used = np.flatnonzero(np.diff(self.W.indptr))
        return LinearWeights(used, self.W[used], self.intercept)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        scores = by_sparse(X, self.W)
        return scores if self.intercept is None else scores + self.intercept

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        scores = one_by_sparse(indices, values, self.W)
        return scores if self.intercept is None else scores + self.intercept

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        classes = [best] if rival is None else [best, rival]
        signs = np.array([1.0, -1.0][: len(classes)])
        parts = values * (np.asarray(self.W[indices][:, classes].toarray(), np.float64) @ signs)
        return Contributions(parts, 0.0 if self.intercept is None else float(self.intercept[classes] @ signs))

    def arrays(self) -> dict[str, Array]:
        arrays = {"indptr": self.W.indptr, "indices": self.W.indices, "data": self.W.data}
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "SparseLinearModel":
        intercept = arrays.get("intercept")
        stored_arrays.require_floats("intercept", intercept, len(classes))
        return cls(classes, stored_arrays.sparse(arrays, n_features, len(classes)), intercept)
