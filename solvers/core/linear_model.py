"""Linear models with dense weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Contributions, Floats, LinearWeights, Model
from solvers.labels import stored_arrays


class LinearModel(Model):
    """One weight vector a class, kept feature-major so that a sparse example reads few rows.

    Parameters
    ----------
    classes : sequence of str
    n_features : int
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; all others weigh nothing.
    W : float array, shape (n_rows, n_classes)
    intercept : float array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    """

    kind = "linear"

    def __init__(
        self,
        classes: Sequence[str],
        n_features: int,
        features: NDArray[np.int64],
        W: Floats,
        intercept: Floats | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = n_features
        self.features = features
        self.W = W
        self.intercept = intercept

    @property
    def nonzero_weights(self) -> float:
        return float(np.count_nonzero(self.W) / max(1, len(self.classes) * self.n_features))

    def with_last_as_intercept(self, value: float) -> "LinearModel":
        intercept = self.W[-1] * self.W.dtype.type(value)
        return LinearModel(
            self.classes, self.n_features - 1, self.features[:-1], np.ascontiguousarray(self.W[:-1]), intercept
        )

    def linear_weights(self) -> LinearWeights:
        return LinearWeights(self.features, self.W, self.intercept)

    @property
    def coef(self) -> Floats:
        """Dense weights, shape (n_classes, n_features)."""
        coef = np.zeros((len(self.classes), self.n_features), self.W.dtype)
        coef[:, self.features] = self.W.T
        return coef

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        used = X if len(self.features) == self.n_features else X[:, self.features]
        scores = np.asarray(used.astype(self.W.dtype, copy=False) @ self.W)
        if self.intercept is not None:
            scores += self.intercept
        return scores

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        if len(self.features) == 0:
            indices, values = indices[:0], values[:0]
        elif len(self.features) != self.n_features:
            at = np.searchsorted(self.features, indices)
            at[at == len(self.features)] = 0
            known = self.features[at] == indices
            indices, values = at[known], values[known]
        scores = np.asarray(values.astype(self.W.dtype) @ self.W[indices])
        return scores if self.intercept is None else scores + self.intercept

    def contributions(
        self, indices: NDArray[np.int32], values: NDArray[np.float64], best: int, rival: int | None
    ) -> Contributions:
        at = np.searchsorted(self.features, indices)
        known = at < len(self.features)
        known[known] = self.features[at[known]] == indices[known]
        parts = np.zeros(len(indices))
        parts[known] = values[known] * self._lead(self.W[at[known]], best, rival)
        return Contributions(parts, 0.0 if self.intercept is None else float(self._lead(self.intercept, best, rival)))

    @staticmethod
    def _lead(of_classes: Floats, best: int, rival: int | None) -> NDArray[np.float64]:
        lead = of_classes[..., best].astype(np.float64)
        return lead if rival is None else lead - of_classes[..., rival]

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"features": self.features, "W": self.W}
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "LinearModel":
        return cls(classes, n_features, *stored_weights(len(classes), n_features, arrays))


def stored_weights(
    n_classes: int, n_features: int, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int64], Floats, Floats | None]:
    """Features, weights and intercept of a stored linear model; raises ArrayFault."""
    features, W, intercept = arrays["features"], arrays["W"], arrays.get("intercept")
    stored_arrays.require_ascending("features", features, n_features)
    stored_arrays.require_floats("W", W, len(features), n_classes)
    stored_arrays.require_floats("intercept", intercept, n_classes)
    return features, W, intercept
