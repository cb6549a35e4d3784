"""Kernel ridge regression of all concepts at once, with the scores that each row has from the others.

With ``G = K + lambda I`` and ``A = G^-1 Y``, rows B that are left out together get ``Y_B - [(G^-1)_BB]^-1 A_B``: what a
machine trained on the other rows would give them, exactly, from one inverse.

Where a matrix of all rows is too large, the machine is a sum over m of the rows, the landmarks M (the subset of
regressors of Smola and Schoelkopf 2000):

    minimise  sum_i w_i |y_i - B' k_i|^2 + lambda tr B' K_MM B,    k_i = K_Mi,

so that ``(K_M W K_M' + lambda K_MM) B = K_M W Y``. Rows that are left out are taken from both sides. All rows as
landmarks are the machine above.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.problem import ProblemError
from solvers.numerics import cholesky

Floats32 = NDArray[np.float32]

_ROWS = 1024
# of the mean diagonal: what keeps the landmarks' matrix positive where two of them are the same text
_JITTER = 1e-7
# of more rows the inverse is in single precision
_MOST_DOUBLE = 6000


def bytes_needed(n_rows: int, n_concepts: int) -> int:
    """Memory of :func:`fit` at its peak."""
    return n_rows * n_rows * (16 if n_rows <= _MOST_DOUBLE else 5) + 12 * n_rows * n_concepts


def fit(
    X: sp.csr_matrix, Y: sp.csr_matrix, regularization: float, fold: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[Floats32, Floats32]:
    """Coefficients and the rows' scores from the other folds.

    Parameters
    ----------
    X : csr_matrix, shape (n_rows, n_features)
        Rows of length one.
    Y : csr_matrix of bool, shape (n_rows, n_concepts)
    regularization : float
        lambda of a row of weight 1; a row of weight w has lambda / w.
    fold : int64 array, shape (n_rows,)
    weights : float64 array, shape (n_rows,)

    Returns
    -------
    coefficients, scores : float32 arrays, shape (n_rows, n_concepts)
    """
    inverse = _inverse(X, regularization / weights)
    targets = Y.toarray().astype(inverse.dtype)
    coefficients = inverse @ targets
    scores = targets
    for number in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == number)
        block, left = np.asfortranarray(inverse[np.ix_(rows, rows)]), np.asfortranarray(coefficients[rows])
        _factorize(block)
        cholesky.solve(block, left)
        scores[rows] -= left
    return coefficients.astype(np.float32), scores.astype(np.float32)


def landmark_bytes(n_landmarks: int, n_concepts: int, n_scored: int, folds: int) -> int:
    """Memory of :class:`Landmarks` at its peak, the scores of one fold among it."""
    return 8 * 4 * n_landmarks**2 + 4 * n_concepts * (3 * n_landmarks + 2 * (n_scored // folds + 1))


class Landmarks:
    """Ridge regression on the products with some of the rows.

    Parameters
    ----------
    X : csr_matrix, shape (n_rows, n_features)
        Rows of length one.
    Y : csr_matrix of bool, shape (n_rows, n_concepts)
    regularization : float
        lambda.
    weights : float64 array, shape (n_rows,)
    chosen : int64 array, shape (m,)
        The landmarks, ascending.
    """

    def __init__(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        regularization: float,
        weights: NDArray[np.float64],
        chosen: NDArray[np.int64],
    ) -> None:
        self._X, self._Y, self._weights = X, sp.csr_matrix(Y, dtype=np.float32), weights
        self._of_landmarks = X[chosen].T.tocsc()
        own = np.asarray((X[chosen] @ self._of_landmarks).toarray())
        own[np.diag_indices(len(own))] += _JITTER * float(np.trace(own)) / len(own)
        self._penalty = regularization * own
        every = np.arange(X.shape[0])
        self._products, self._targets = self._sums(every)

    def coefficients(self) -> Floats32:
        """B of all rows, shape (m, n_concepts)."""
        return self._solved(self._products, self._targets)

    def without(self, out: NDArray[np.int64], scored: NDArray[np.int64]) -> Floats32:
        """Scores of some rows by the machine of all rows but ``out``, shape (n_scored, n_concepts)."""
        products, targets = self._sums(out)
        factor = np.asfortranarray(self._products - products + self._penalty)
        del products
        _factorize(factor)
        shares = self._block(scored).T
        cholesky.solve(factor, shares)
        return np.asarray(shares.astype(np.float32).T @ (self._targets - targets))

    def _solved(self, products: NDArray[np.float64], targets: Floats32) -> Floats32:
        factor = np.asfortranarray(products + self._penalty)
        _factorize(factor)
        found = np.empty_like(targets)
        for begin in range(0, targets.shape[1], _ROWS):
            some = np.asfortranarray(targets[:, begin : begin + _ROWS], np.float64)
            cholesky.solve(factor, some)
            found[:, begin : begin + _ROWS] = some
        return found

    def _sums(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], Floats32]:
        """``K W K'`` and ``K W Y`` over some rows."""
        m = self._of_landmarks.shape[1]
        products, targets = np.zeros((m, m)), np.zeros((m, self._Y.shape[1]), np.float32)
        for begin in range(0, len(rows), _ROWS):
            some = rows[begin : begin + _ROWS]
            K, w = self._block(some), self._weights[some]
            products += K.T @ (K * w[:, None])
            # a product with the sparse targets, as the sum of a few rows for each concept
            targets += np.asarray((self._Y[some].T @ (K * w[:, None]).astype(np.float32)).T)
        return products, targets

    def _block(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Products of some rows with the landmarks, shape (n_rows, m)."""
        return np.asarray((self._X[rows] @ self._of_landmarks).toarray(), np.float64)


def _inverse(X: sp.csr_matrix, ridge: NDArray[np.float64]) -> NDArray[np.floating]:
    n = X.shape[0]
    dtype = np.float64 if n <= _MOST_DOUBLE else np.float32
    G, turned = np.empty((n, n), dtype, order="F"), X.T.tocsc()
    for begin in range(0, n, _ROWS):
        G[:, begin : begin + _ROWS] = (X @ turned[:, begin : begin + _ROWS]).toarray()
    G[np.diag_indices(n)] += ridge.astype(dtype)
    _factorize(G)
    cholesky.invert(G)
    for begin in range(0, n, _ROWS):
        stop = min(n, begin + _ROWS)
        block = G[begin:stop, begin:stop]
        block[np.triu_indices(stop - begin, 1)] = block.T[np.triu_indices(stop - begin, 1)]
        G[begin:stop, stop:] = G[stop:, begin:stop].T
    return np.asarray(G)


def _factorize(A: NDArray[np.floating]) -> None:
    try:
        cholesky.factorize(A)
    except cholesky.NotPositiveDefiniteError:
        raise ProblemError("the regularization is too small compared with the products of the rows: raise it") from None
