"""Kernel ridge regression of all concepts at once, with the scores that each row has from the others.

With ``G = K + lambda I`` and ``A = G^-1 Y``, rows B that are left out together get ``Y_B - [(G^-1)_BB]^-1 A_B``: what a
machine trained on the other rows would give them, exactly, from one inverse.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.problem import ProblemError
from solvers.numerics import cholesky
from solvers.numerics.row_products import gram

Floats32 = NDArray[np.float32]

_ROWS = 1024
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


def _inverse(X: sp.csr_matrix, ridge: NDArray[np.float64]) -> NDArray[np.floating]:
    n = X.shape[0]
    dtype = np.float64 if n <= _MOST_DOUBLE else np.float32
    G = gram(X, dtype).T  # symmetric, in the order that LAPACK overwrites
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
