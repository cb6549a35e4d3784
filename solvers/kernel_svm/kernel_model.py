"""Models that score by kernel values against support vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, Model
from solvers.core.sparse_linear_model import sparse_takes_less
from solvers.kernel_svm.kernel_function import KernelFunction, square_lengths
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.predicted_scores import places

CHUNK_BYTES = 16 << 20


class KernelModel(Model):
    """``f_c(x) = sum_s coefficients[s, c] K(support vector s, x)``.

    Parameters
    ----------
    n_features : int
        With a precomputed kernel the number of training examples: rows hold kernel values against all of them.
    features : int64 array, ascending
        The features that some support vector has; with a precomputed kernel the support vectors' own numbers.
    vectors : csr_matrix of float64, shape (n_support, n_used_features)
        The support vectors in those features; empty with a precomputed kernel.
    coefficients : float64 array, shape (n_support, n_classes)
    intercept : float64 array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    """

    kind = "kernel"

    def __init__(
        self,
        classes: Sequence[str],
        n_features: int,
        function: KernelFunction,
        features: Ints,
        vectors: sp.csr_matrix,
        coefficients: Floats,
        intercept: Floats | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = n_features
        self.function = function
        self.features = features
        self.vectors = vectors
        self.coefficients = coefficients
        self.intercept = intercept
        self._squares = square_lengths(vectors)
        if function.name not in ("linear", "precomputed"):
            self.unexplained = "its kernel compares whole rows, and is no sum over features"

    @classmethod
    def of_training(
        cls,
        classes: Sequence[str],
        X: sp.csr_matrix,
        function: KernelFunction,
        support: Ints,
        coefficients: Floats,
        offset: float = 0.0,
    ) -> "KernelModel":
        """The model whose support vectors are the rows ``support`` (ascending) of the training matrix X.

        ``offset`` was added to every kernel value in training.
        """
        intercept = offset * coefficients.sum(axis=0) if offset else None
        if function.name == "precomputed":
            none = sp.csr_matrix((len(support), 0))
            return cls(classes, X.shape[1], function, support, none, coefficients, intercept)
        vectors = X[support]
        features = np.unique(vectors.indices).astype(np.int64)
        return cls(classes, X.shape[1], function, features, vectors[:, features], coefficients, intercept)

    @property
    def is_single(self) -> bool:
        """Whether all coefficients are numbers of single precision, as which they are written."""
        return bool((self.coefficients.astype(np.float32) == self.coefficients).all())

    @property
    def merge_key(self) -> KernelFunction:
        return self.function

    @classmethod
    def merged_margins(
        cls, names: tuple[str, ...], n_features: int, models: Sequence[Any], leads: Sequence[float]
    ) -> "KernelModel":
        """As :meth:`solvers.core.model.Model.merged_margins`; each support vector of some model is there once."""
        function: KernelFunction = models[0].function
        number: dict[Any, int] = {}
        vectors, coefficients = [], []
        for model in models:
            whole = model._whole_vectors(n_features)
            place = np.empty(model.n_support, np.int64)
            for s in range(model.n_support):
                low, high = whole.indptr[s], whole.indptr[s + 1]
                key = whole.indices[low:high].tobytes(), whole.data[low:high].tobytes()
                if key not in number:
                    number[key] = len(number)
                    vectors.append(whole[s])
                place[s] = number[key]
            coefficients.append((place, model.coefficients[:, 1] - model.coefficients[:, 0]))
        W = np.zeros((len(number), len(models)))
        for at, ((place, difference), lead) in enumerate(zip(coefficients, leads, strict=True)):
            np.add.at(W[:, at], place, difference / lead)
        given = [model.intercept for model in models]
        steps = [0.0 if b is None else float(b[1] - b[0]) / lead for b, lead in zip(given, leads, strict=True)]
        intercept = np.array(steps) if any(steps) else None
        stacked = sp.csr_matrix(sp.vstack(vectors)) if vectors else sp.csr_matrix((0, n_features))
        if function.name == "precomputed":
            # a unit vector for each training example that supports a column
            numbers = stacked.indices.astype(np.int64)
            order = np.argsort(numbers)
            none = sp.csr_matrix((len(order), 0))
            return cls(names, n_features, function, numbers[order], none, W[order], intercept)
        features = np.unique(stacked.indices).astype(np.int64)
        return cls(names, n_features, function, features, stacked[:, features], W, intercept)

    def of_rows(self, rows: Ints, n_rows: int) -> "KernelModel":
        if self.function.name != "precomputed":
            return self
        numbers = rows[self.features]
        return KernelModel(
            self.classes, n_rows, self.function, numbers, self.vectors, self.coefficients, self.intercept
        )

    def _whole_vectors(self, n_features: int) -> sp.csr_matrix:
        """Support vectors in all features, or unit vectors of their numbers where kernel values were given."""
        if self.function.name == "precomputed":
            n = len(self.features)
            return sp.csr_matrix((np.ones(n), self.features, np.arange(n + 1)), (n, n_features))
        vectors = self.vectors
        indices = self.features[vectors.indices]
        return sp.csr_matrix((vectors.data, indices, vectors.indptr), (vectors.shape[0], n_features))

    @property
    def n_support(self) -> int:
        """How many support vectors there are."""
        return len(self.coefficients)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        size = max(1, CHUNK_BYTES // (8 * max(self.n_support, len(self.features), 1)))
        scores = np.empty((X.shape[0], len(self.classes)))
        for begin in range(0, X.shape[0], size):
            scores[begin : begin + size] = self._of_values(self.kernel_values(X[begin : begin + size]))
        return scores

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._of_values(self.kernel_values_of_one(indices, values)[None])[0])

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """Of the linear kernel; of given kernel values those of the training examples, which are the features."""
        if self.unexplained:
            return None
        lead = self.coefficients[:, best] if rival is None else self.coefficients[:, best] - self.coefficients[:, rival]
        weights = lead if self.function.name == "precomputed" else np.asarray(lead @ self.vectors)
        at, known = places(self.features, indices)
        parts = np.zeros(len(indices))
        parts[known] = values[known] * weights[at[known]]
        given = np.zeros(len(self.classes)) if self.intercept is None else self.intercept
        return Contributions(parts, float(given[best] - (0.0 if rival is None else given[rival])))

    def kernel_values(self, X: sp.csr_matrix) -> Floats:
        """The rows of X against the support vectors, shape (n_samples, n_support)."""
        self.check_width(X)
        squares = square_lengths(X) if self.function.name == "rbf" else np.zeros(X.shape[0])
        return self._of_dense(X[:, self.features].toarray(), squares)

    def kernel_values_of_one(self, indices: Ints32, values: Floats) -> Floats:
        """One sparse example against the support vectors, shape (n_support,)."""
        known = np.zeros((1, len(self.features)))
        at, present = places(self.features, indices)
        known[0, at[present]] = values[present]
        return np.asarray(self._of_dense(known, np.array([values @ values]))[0])

    def arrays(self) -> dict[str, Array]:
        function = self.function
        arrays = {
            "kernel": np.array([function.name]),
            "numbers": np.array([function.degree, function.gamma, function.coef0], np.float64),
            "features": self.features,
            "indptr": self.vectors.indptr,
            "indices": self.vectors.indices,
            "data": self.vectors.data,
        }
        if sparse_takes_less(self.coefficients, self.n_support):
            rows = sp.csr_matrix(self.coefficients)
            arrays |= {
                "rows_indptr": rows.indptr,
                "rows_indices": rows.indices,
                "coefficients": self._single(rows.data),
            }
        else:
            arrays["coefficients"] = self._single(self.coefficients)
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    def _single(self, coefficients: Floats) -> Array:
        return coefficients.astype(np.float32) if self.is_single else coefficients

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "KernelModel":
        degree, gamma, coef0 = (float(number) for number in arrays["numbers"])
        function = KernelFunction(str(arrays["kernel"][0]), int(degree), gamma, coef0)  # type: ignore[arg-type]
        features, coefficients, intercept = arrays["features"], arrays["coefficients"], arrays.get("intercept")
        if "rows_indptr" in arrays:
            rows = {"indptr": arrays["rows_indptr"], "indices": arrays["rows_indices"], "data": coefficients}
            coefficients = stored_arrays.sparse(rows, len(rows["indptr"]) - 1, len(classes)).toarray()
        if coefficients.dtype == np.float32:
            coefficients = coefficients.astype(np.float64)
        n_support, given = len(coefficients), function.name == "precomputed"
        stored_arrays.require_ascending("features", features, n_features)
        if given:
            stored_arrays.require_shape("features", features, n_support)
        stored_arrays.require_floats("coefficients", coefficients, n_support, len(classes))
        stored_arrays.require_floats("intercept", intercept, len(classes))
        vectors = stored_arrays.sparse(arrays, n_support, 0 if given else len(features))
        return cls(classes, n_features, function, features, vectors, coefficients, intercept)

    def _of_dense(self, known: Floats, squares: Floats) -> Floats:
        """Kernel values from the used features of examples, shape (n, n_used_features), and their squared lengths."""
        if self.function.name == "precomputed":
            return known
        return self.function.of_products(np.asarray(self.vectors @ known.T), self._squares, squares).T

    def _of_values(self, values: Floats) -> Floats:
        """Scores from kernel values, shape (n, n_support)."""
        scores = np.asarray(values @ self.coefficients)
        return scores if self.intercept is None else scores + self.intercept
