"""Linear models most of whose weights are zero."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Contributions, Floats, LinearWeights, Model
from solvers.labels import stored_arrays


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

    def __init__(self, classes: Sequence[str], W: sp.csr_matrix, intercept: Floats | None = None) -> None:
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

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        scores = np.asarray((X.astype(self.W.dtype, copy=False) @ self.W).toarray())
        return scores if self.intercept is None else scores + self.intercept

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        W = self.W
        begins = W.indptr[indices]
        lengths = W.indptr[indices + 1] - begins
        at = np.repeat(begins - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        products = np.repeat(values, lengths) * W.data[at]
        scores = np.bincount(W.indices[at], products, len(self.classes)).astype(W.dtype)
        return scores if self.intercept is None else scores + self.intercept

    def contributions(
        self, indices: NDArray[np.int32], values: NDArray[np.float64], best: int, rival: int | None
    ) -> Contributions:
        classes = [best] if rival is None else [best, rival]
        signs = np.array([1.0, -1.0][: len(classes)])
        parts = values * (np.asarray(self.W[indices][:, classes].toarray(), np.float64) @ signs)
        return Contributions(parts, 0.0 if self.intercept is None else float(self.intercept[classes] @ signs))

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"indptr": self.W.indptr, "indices": self.W.indices, "data": self.W.data}
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "SparseLinearModel":
        intercept = arrays.get("intercept")
        stored_arrays.require_floats("intercept", intercept, len(classes))
        return cls(classes, stored_arrays.sparse(arrays, n_features, len(classes)), intercept)
