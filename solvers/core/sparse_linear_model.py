"""Linear models most of whose weights are zero."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, LinearWeights, Model, Prune
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.sparse_scores import SparseWeights, by_sparse, one_by_sparse


class SparseLinearModel(Model):
    """``W' x`` with sparse W, kept feature-major.

    Parameters
    ----------
    classes : sequence of str
    W : csr_matrix, shape (n_features, n_classes)
    intercept : float array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    half : bool
        All weights are numbers of half precision: they are written as float16, and float32 in memory.
    """

    kind = "sparse_linear"
    scores_rows_alone = True

    def __init__(
        self, classes: Sequence[str], W: sp.csr_matrix, intercept: AnyFloats | None = None, half: bool = False
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = int(W.shape[0])
        self.W = W
        self.intercept = intercept
        self.half = half

    @cached_property
    def _weights(self) -> SparseWeights:
        return SparseWeights.of(self.W)

    @property
    def nonzero_weights(self) -> float:
        return float(self.W.nnz / max(1, len(self.classes) * self.n_features))

    def smaller(self, prune: Prune, half: bool) -> "SparseLinearModel":
        W = smaller_sparse(self.W, prune, half)
        intercept = self.intercept if self.intercept is None or not half else self.intercept.astype(np.float32)
        return SparseLinearModel(self.classes, W, intercept, half)

    def with_last_as_intercept(self, value: float) -> "SparseLinearModel":
        W, end = self.W, self.W.indptr[-2]
        intercept = W[-1].toarray()[0] * W.dtype.type(value)
        # the rows before it as they are, without a copy
        rest = sp.csr_matrix((W.data[:end], W.indices[:end], W.indptr[:-1]), shape=(W.shape[0] - 1, W.shape[1]))
        return SparseLinearModel(self.classes, rest, intercept)

    def linear_weights(self) -> LinearWeights:
        used = np.flatnonzero(np.diff(self.W.indptr))
        return LinearWeights(used, self.W[used], self.intercept)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        self.check_width(X)
        scores = by_sparse(X, self._weights)
        return scores if self.intercept is None else scores + self.intercept

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        scores = one_by_sparse(indices, values, self._weights)
        return scores if self.intercept is None else scores + self.intercept

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions:
        classes = [best] if rival is None else [best, rival]
        signs = np.array([1.0, -1.0][: len(classes)])
        parts = values * (np.asarray(self.W[indices][:, classes].toarray(), np.float64) @ signs)
        return Contributions(parts, 0.0 if self.intercept is None else float(self.intercept[classes] @ signs))

    def arrays(self) -> dict[str, Array]:
        arrays = stored_arrays.of_sparse(self.W, self.half)
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "SparseLinearModel":
        intercept = arrays.get("intercept")
        stored_arrays.require_floats("intercept", intercept, len(classes))
        half = arrays["data"].dtype == np.float16
        return cls(classes, stored_arrays.sparse(arrays, n_features, len(classes)), intercept, half)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without the bits by which scores read them; half precision takes fewer in files."""
        return stored_arrays.sparse_nbytes(self.W) + (0 if self.intercept is None else self.intercept.nbytes)


def smaller_weights(
    W: AnyFloats, intercept: AnyFloats | None, prune: Prune, half: bool
) -> tuple[AnyFloats, AnyFloats | None]:
    """Weights for :meth:`Model.smaller`, and the intercept as scores by them have it.

    Raises ValueError where half precision is asked for and a weight is beyond its range.
    """
    W = prune(W)
    if not half:
        return W, intercept
    largest, most = float(max(W.max(initial=0), -W.min(initial=0))), float(np.finfo(np.float16).max)
    if largest > most:
        raise ValueError(f"a weight is {largest:.6g}; half precision ends at {most:.0f}: scale the features")
    return W.astype(np.float16), None if intercept is None else intercept.astype(np.float32)


def smaller_sparse(W: sp.csr_matrix, prune: Prune, half: bool) -> sp.csr_matrix:
    """As :func:`smaller_weights` of sparse ones, which stay float32 with the numbers of half precision."""
    made = W.copy()
    made.data = smaller_weights(W.data, None, prune, half)[0]
    made.data = made.data.astype(np.float32) if half else made.data
    made.eliminate_zeros()
    return made


def sparse_takes_less(W: AnyFloats, n_rows: int) -> bool:
    """Whether the nonzero weights with their places take fewer bytes than all, where ``n_rows`` rows have a begin."""
    index = np.dtype(np.int32).itemsize
    return bool(np.count_nonzero(W) * (W.itemsize + index) + (n_rows + 1) * index < W.nbytes)


def sparse_rows(W: AnyFloats, features: Ints, n_features: int) -> sp.csr_matrix:
    """Weights of some features as rows among those of all; float32 where they are float16."""
    rows = sp.csr_matrix(W.astype(np.float32) if W.dtype == np.float16 else W)
    counts = np.zeros(n_features + 1, np.int64)
    counts[np.asarray(features) + 1] = np.diff(rows.indptr)
    return sp.csr_matrix((rows.data, rows.indices, np.cumsum(counts)), shape=(n_features, W.shape[1]))
