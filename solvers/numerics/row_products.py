"""Products of the rows of a sparse matrix with each other, as a dense array.

Products are added to a dense row through the lists of a feature's rows, in the order of the features. That takes the
multiplications alone, while a sparse product also finds out which of its entries there are.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.numerics.array_types import AnyFloats, Array, Floats

_BLOCK = 512


def gram(X: sp.csr_matrix, dtype: Any = np.float64) -> Array:
    """x_i . x_j of all rows.

    Parameters
    ----------
    X : csr_matrix of float32 or float64, shape (n, n_features)
        The features of each row ascending.
    dtype : float32 or float64
        Of the result; products are summed in float64.

    Returns
    -------
    array, shape (n, n)
        Symmetric.
    """
    n, lists = X.shape[0], X.tocsc()
    G = np.empty((n, n), dtype)
    row, begins = np.zeros(n), lists.indptr[:-1].copy()
    _upper_gram(X.indptr, X.indices, X.data, begins, lists.indptr[1:], lists.indices, lists.data, row, G)
    for begin in range(0, n, _BLOCK):
        stop = min(n, begin + _BLOCK)
        block = G[begin:stop, begin:stop]
        below = np.tril_indices(stop - begin, -1)
        block[below] = block.T[below]
        G[stop:, begin:stop] = G[begin:stop, stop:].T
    return G


@njit(cache=True, nogil=True)
def _upper_gram(
    indptr: Array, indices: Array, data: AnyFloats, begins: Array, ends: Array, rows: Array, values: AnyFloats,
    row: Floats, G: AnyFloats,
) -> None:  # fmt: skip
    """G[i, j] = x_i . x_j where j >= i; each list begins at row i or later when row i is reached; ``row`` is 0."""
    for i in range(len(row)):
        for at in range(indptr[i], indptr[i + 1]):
            x, feature = data[at], indices[at]
            for p in range(begins[feature], ends[feature]):
                row[rows[p]] += x * values[p]
            begins[feature] += 1
        for j in range(i, len(row)):
            G[i, j] = row[j]
            row[j] = 0.0
