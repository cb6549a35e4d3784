"""Ridge regressions, one a class with its own weights of the examples, that may have to sum to zero."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from solvers.linear.interior import barrier_blocks
from solvers.numerics.array_types import Floats

DENSE = 0.25
NARROW = 24
CHUNK = 512


class NormalEquations:
    """Systems ``(I + X' D_c X) z_c = right_c - lambda``, where lambda makes the z_c sum to zero, or vanishes.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        Indices sorted within a row. The attribute ``X`` holds it dense if a quarter of it or more is not zero.
    bounds : float64 array, shape (n_samples, n_classes)
        Where it vanishes, so will D.
    sum_to_zero : bool
        Whether the solutions shall sum to zero.
    """

    def __init__(self, X: sp.csr_matrix, bounds: Floats, sum_to_zero: bool) -> None:
        n, self.d = X.shape
        self.rows = X
        self.X: Any = X.toarray() if X.nnz >= DENSE * n * self.d else X
        self.sum_to_zero = sum_to_zero
        # One pass over pairs of features for all classes beats BLAS on sparse or narrow X, unless most of D is zero.
        mostly = 8 * np.count_nonzero(bounds) > bounds.size
        self.by_rows = sp.issparse(self.X) or (self.d <= NARROW and mostly)
        self.factors: list[Floats] = []
        self.joint = np.empty((0, 0))

    def factor(self, D: Floats) -> bool:
        """Prepare for :meth:`solve` with weights D (n_samples, n_classes) >= 0; False if rounding does not let it."""
        self.factors, inverses = [], np.zeros((self.d, self.d), order="F")
        for G in self._grams(D):
            L = _cholesky(G)
            if L is None:
                return False
            self.factors.append(L)
            if self.sum_to_zero:
                inverses += dpotri(L, lower=1)[0]
        if self.sum_to_zero:
            joint = _cholesky(inverses)
            if joint is None:
                return False
            self.joint = joint
        return True

    def solve(self, right: Floats) -> Floats:
        """The solutions, shape (n_features, n_classes)."""
        Z = np.empty_like(right)
        for c, L in enumerate(self.factors):
            Z[:, c] = dpotrs(L, right[:, c], lower=1)[0]
        if not self.sum_to_zero:
            return Z
        shift = dpotrs(self.joint, Z.sum(axis=1), lower=1)[0]
        for c, L in enumerate(self.factors):
            Z[:, c] -= dpotrs(L, shift, lower=1)[0]
        return self.centred(Z)

    def centred(self, W: Floats) -> Floats:
        """W (n_features, n_classes), made to sum to zero over the classes if asked for."""
        return W - W.mean(axis=1, keepdims=True) if self.sum_to_zero else W

    def _grams(self, D: Floats) -> Iterator[Floats]:
        """``I + X' D_c X`` of one class after the other; the lower triangle counts."""
        if self.by_rows:
            packed = np.zeros((self.d * (self.d + 1) // 2, D.shape[1]))
            barrier_blocks.gram(self.rows.indptr, self.rows.indices, self.rows.data, D, packed)
            at = np.tril_indices(self.d)
        for c in range(D.shape[1]):
            G = np.eye(self.d, order="F")
            if self.by_rows:
                G[at] += packed[:, c]
                yield G
                continue
            root = np.sqrt(D[:, c])
            rows = np.flatnonzero(root)
            for start in range(0, len(rows), CHUNK):
                some = rows[start : start + CHUNK]
                scaled = self.X[some] * root[some, None]
                G = dsyrk(1.0, scaled.T, beta=1.0, c=G, lower=1, overwrite_c=1)
            yield G


def _cholesky(G: Floats) -> Floats | None:
    """Lower factor of G, of a slightly heavier diagonal if need be; None if that does not help either."""
    weight = 0.0
    diagonal = np.diagonal(G).copy()
    for _ in range(6):
        L, info = dpotrf(G, lower=1)
        if info == 0 and np.isfinite(L[-1, -1]):
            return np.asarray(L)
        weight = max(100.0 * weight, 1e-15)
        np.fill_diagonal(G, diagonal * (1.0 + weight))
    return None
