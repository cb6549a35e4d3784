"""How examples and weights lie in memory while a flat machine trains: sparse rows, or dense ones.

The weights of a constant feature as multipliers, which follow the dual variables from afar.

All examples share the biases b, so that a step of one example moves the margins of all others, and the dual variables
can only trade small amounts, one example after the other. With beta the value of the feature, and s the coefficients
of the dual variables summed over the examples, the dual's term ``-1/2 |beta s|^2`` is replaced by the augmented
Lagrangian of ``max_u -1/2 |u|^2`` under ``u = beta s`` (Bertsekas 1982, "Constrained Optimization and Lagrange
Multiplier Methods", chapter 2), of penalty sigma,

    max_u -1/2 |u|^2 + b' (u - beta s) - sigma/2 |u - beta s|^2,   at  u = b + tau (beta s - b),

with ``tau = sigma / (1 + sigma)``. Its gradient is that of the dual at the biases u, and it curves along s tau times as
much. So the compiled loops take a feature of the value ``sqrt(tau) beta``, whose weights are ``u / sqrt(tau)``. The
multipliers' step ``b := u``, one an epoch and of one-vs-rest one a pass, takes u by the share tau of the way to
``beta s``; to the primal that is a proximal point step on the biases (section 5.4 there). At the optimum
``u = beta s``; before it a certificate's primal is that of the biases u, and its dual that of ``beta s``, so that both
bounds are true.

The order in which classes lie in memory: the frequent ones first, so that they share cache lines.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.linear.layouts.dense_simd import TOGETHER, DenseRows
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.rows import ALIGNMENT, arrange, square_norm, sure_leads, weights


def rank_of_classes(problem: Problem) -> Ints32:
    """The column of W that belongs to each class, int32 array, shape (n_classes,)."""
    rank = np.empty(problem.n_classes, np.int32)
    rank[order_of_classes(problem)] = np.arange(problem.n_classes, dtype=np.int32)
    return rank


def order_of_classes(problem: Problem) -> Ints32:
    """The class that each column of W belongs to, int32 array, shape (n_classes,)."""
    return np.argsort(-np.bincount(problem.y, minlength=problem.n_classes), kind="stable").astype(np.int32)


# of the mean squared length of the rows, how much the feature adds to the curvature of a step
PART = 0.1


class Constant(NamedTuple):
    """Which feature of a layout is held back, beta, and tau."""

    place: int
    value: float
    share: float

    @property
    def root(self) -> float:
        """What the value of the feature is multiplied by, and its weights are divided by."""
        return float(np.sqrt(self.share))


def share_of(X: sp.csr_matrix, value: float, bounds: Floats, n_classes: int) -> float:
    """The share tau of a constant feature, the last one of X; 1 where it is best left as it is.

    Its square times beta's is a tenth of the rows' mean squared length, but so large that the examples of a class of
    mean size, all at their ``bounds``, shift a score by 1 at once.
    """
    if value == 0.0:
        return 1.0
    square = float(X.data @ X.data) / X.shape[0] - value**2
    wanted = max(PART * square, n_classes / float(bounds.sum()))
    return min(1.0, wanted / value**2)


def held_back(X: sp.csr_matrix, share: float) -> sp.csr_matrix:
    """X with its last feature, which is the last entry of each row, times the root of its share."""
    data = X.data.copy()
    data[X.indptr[1:] - 1] *= np.sqrt(share)
    return sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


DENSE_FROM = 0.25
VISIT = 10.0


@dataclass(frozen=True, eq=False)
class Layout:
    """Rows as compiled loops take them, and what visiting each costs, counted in vector operations.

    Attributes
    ----------
    rows : Rows or DenseRows
    features : int64 array, shape (n_used,)
        ``features[j]`` is the column of X that became j.
    full, listed : float64 array, shape (n_samples,)
        Cost of a visit with all classes, and of one with the listed classes, for each of them.
    constant : Constant, optional
        The feature whose weights are held back: see :mod:`solvers.linear.layouts.layouts`.
    """

    rows: Any
    features: Ints
    full: Floats
    listed: Floats
    n_classes: int
    dtype: np.dtype[Any]
    constant: Constant | None = field(default=None, kw_only=True)

    def with_constant(self, feature: int, value: float, share: float) -> Self:
        """The same layout; a feature of this value has been held back in its rows, by this share."""
        return replace(self, constant=Constant(int(np.flatnonzero(self.features == feature)[0]), value, share))

    def weights(self) -> Any:
        """Zero weights of this layout."""
        raise NotImplementedError

    def with_capacity(self, W: Any) -> Any:
        """The same weights, with room for what the last visit lacked."""
        return W

    def state(self, W: Any) -> dict[str, Array]:
        """The arrays of the weights, for a step."""
        return {"W": W}

    def restored(self, state: Mapping[str, Array]) -> Any:
        """The weights of a step."""
        W = self.weights()
        W[:] = state["W"]
        return W

    def multiply(self, W: Any, factor: float) -> None:
        """Multiply all weights, in place."""
        np.multiply(W, factor, out=W)

    def by_feature(self, W: Array) -> Array:
        """The weights as an array of shape (n_used, n_classes)."""
        raise NotImplementedError

    def square_norm(self, W: Any) -> float:
        """Sum of the squares of all weights."""
        total = self._square_sum(W)
        if self.constant is None:
            return total
        held = self._held(W).astype(np.float64)
        return total - (1.0 - self.constant.share) * float(held @ held)

    def sure_leads(self, W: Any, leads: Floats) -> Bools:
        """As :func:`solvers.numerics.rows.sure_leads`."""
        return sure_leads(leads, self._lengths(), self.rows.squares, self._square_sum(W), self.dtype)

    def biases(self, W: Any) -> Floats:
        """The weights of the feature that is held back, shape (n_classes,); none where there is no such feature."""
        if self.constant is None:
            return np.empty(0)
        return self.constant.root * self._held(W).astype(np.float64)

    def set_biases(self, W: Any, biases: Floats) -> None:
        """Put the weights of the feature that is held back, where there is one."""
        if self.constant is not None:
            self._held(W)[:] = biases / self.constant.root

    def _held(self, W: Any) -> Array:
        assert self.constant is not None
        return np.asarray(self.by_feature(W)[self.constant.place])

    def _square_sum(self, W: Any) -> float:
        """Sum of the squares of all weights as they are stored."""
        raise NotImplementedError

    def _lengths(self) -> Floats:
        raise NotImplementedError


class SparseLayout(Layout):
    """Sparse rows; weights one row a feature, so that the scores of all classes are sums of few rows."""

    @classmethod
    def from_matrix(cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any]) -> "SparseLayout":
        rows, features = arrange(X, dtype)
        lengths, lanes = np.diff(rows.indptr).astype(np.float64), ALIGNMENT // dtype.itemsize
        return cls(rows, features, lengths * (1 + -(-n_classes // lanes)), 1.5 * lengths, n_classes, dtype)

    def weights(self) -> Any:
        return weights(len(self.features), self.n_classes, self.dtype)

    def by_feature(self, W: Array) -> Array:
        return W[:, : self.n_classes]

    def _lengths(self) -> Floats:
        return np.asarray(np.diff(self.rows.indptr), np.float64)

    def _square_sum(self, W: Any) -> float:
        return float(square_norm(W, self.n_classes))


class DenseLayout(Layout):
    """Dense rows; weights one row a class, so that the score of each class is one inner product."""

    @classmethod
    def from_matrix(cls, X: sp.csr_matrix, n_classes: int, dtype: np.dtype[Any]) -> "DenseLayout":
        features = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        data = weights(X.shape[0], len(features), dtype)
        data[:, : len(features)] = X[:, features].toarray()
        squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
        vectors = data.shape[1] * dtype.itemsize / ALIGNMENT
        full, listed = VISIT + n_classes * vectors, VISIT + 1.5 * vectors
        n = X.shape[0]
        return cls(DenseRows(data, squares), features, np.full(n, full), np.full(n, listed), n_classes, dtype)

    @staticmethod
    def suits(X: sp.csr_matrix) -> bool:
        """Whether enough entries are there for dense rows to be the faster and no larger ones."""
        used = np.count_nonzero(np.bincount(X.indices, minlength=X.shape[1]))
        return bool(X.nnz >= DENSE_FROM * X.shape[0] * used)

    def weights(self) -> Array:
        n_rows = -(-self.n_classes // TOGETHER) * TOGETHER
        return weights(n_rows, len(self.features), self.dtype)

    def by_feature(self, W: Array) -> Array:
        return W[: self.n_classes, : len(self.features)].T

    def _lengths(self) -> Floats:
        return np.full(len(self.rows.squares), float(len(self.features)))

    def _square_sum(self, W: Array) -> float:
        return float(square_norm(W, W.shape[1]))


def holding_back(
    make: Callable[[sp.csr_matrix], Layout], X: sp.csr_matrix, bias: float, bounds: Floats, n_classes: int
) -> Layout:
    """The layout that ``make`` makes of X, where it pays with its constant feature held back.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
        Its last feature is the constant one, unless ``bias`` is 0.
    bias : float
        The value of the constant feature.
    bounds : float64 array, shape (n_samples,)
        C times the weights of the examples.
    """
    share = share_of(X, bias, bounds, n_classes)
    if share == 1.0:
        return make(X)
    return make(held_back(X, share)).with_constant(X.shape[1] - 1, bias, share)
