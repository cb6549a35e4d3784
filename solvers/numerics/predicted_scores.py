"""Scores of sparse examples by feature-major weights: ``X W``, one row or many by the same sums.

Every score adds its products in the order of the example's entries, each rounded by itself in the precision of the
weights: a row has the same bits alone and among others, and whatever the processor. Dense weights are read by eight
rows at a time, from their beginnings to their ends: so many streams hide how long memory takes.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.array_types import AnyFloats, Array, Bools, Ints, Ints32


def places(features: Ints, indices: NDArray[np.integer]) -> tuple[Ints, Bools]:
    """Where indices stand among ascending ``features``, and which of them are there at all."""
    at = np.searchsorted(features, indices)
    if len(features) == 0:
        return at, np.zeros(len(at), bool)
    at[at == len(features)] = 0
    return at, features[at] == indices


def by_dense(X: sp.csr_matrix, W: AnyFloats) -> AnyFloats:
    """Scores of the rows of X, shape (n_samples, n_classes), as W's floats.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    W : float array, shape (n_features, n_classes)
    """
    scores = np.zeros((X.shape[0], W.shape[1]), W.dtype)
    _add_dense(*_rows(X, W.dtype), _fixed(W), scores)
    return scores


def one_by_dense(indices: NDArray[np.integer], values: AnyFloats, W: AnyFloats) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_dense`."""
    scores: AnyFloats = np.zeros((1, W.shape[1]), W.dtype)
    _add_dense(*_row(indices, values, W.dtype), _fixed(W), scores)
    return np.asarray(scores[0])


def by_sparse(X: sp.csr_matrix, W: sp.csr_matrix) -> AnyFloats:
    """As :func:`by_dense`; the zeros of W add nothing."""
    scores = np.zeros((X.shape[0], W.shape[1]), W.dtype)
    _add_sparse(*_rows(X, W.dtype), *map(_fixed, (W.indptr, W.indices, W.data)), scores)
    return scores


def one_by_sparse(indices: NDArray[np.integer], values: AnyFloats, W: sp.csr_matrix) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_sparse`."""
    scores: AnyFloats = np.zeros((1, W.shape[1]), W.dtype)
    _add_sparse(*_row(indices, values, W.dtype), *map(_fixed, (W.indptr, W.indices, W.data)), scores)
    return np.asarray(scores[0])


def _rows(X: sp.csr_matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    indptr, indices = np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int32)
    return _fixed(indptr), _fixed(indices), _fixed(np.asarray(X.data, dtype))


def _row(indices: NDArray[np.integer], values: AnyFloats, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    indptr = np.array([0, len(indices)])
    return _fixed(indptr), _fixed(np.asarray(indices, np.int32)), _fixed(np.asarray(values, dtype))


def _fixed(array: Array) -> Array:
    """Read-only, as mapped files are, so that one compiled loop serves them all."""
    plain = np.ascontiguousarray(array).view()
    plain.flags.writeable = False
    return plain


@njit(cache=True, nogil=True)
def _add_dense(indptr: Ints, indices: Ints32, values: AnyFloats, W: AnyFloats, scores: AnyFloats) -> None:
    """scores += X W."""
    for i in range(scores.shape[0]):
        f, p, end = scores[i], indptr[i], indptr[i + 1]
        while p + 8 <= end:
            _add_eight(f, W, indices[p : p + 8], values[p : p + 8])
            p += 8
        while p < end:
            w, x = W[indices[p]], values[p]
            for c in range(len(f)):
                f[c] += x * w[c]
            p += 1


@njit(cache=True, nogil=True)
def _add_eight(f: AnyFloats, W: AnyFloats, at: Ints32, x: AnyFloats) -> None:
    a, b, c, d, e, g, h, j = W[at[0]], W[at[1]], W[at[2]], W[at[3]], W[at[4]], W[at[5]], W[at[6]], W[at[7]]
    p, q, r, s, t, u, v, w = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    for i in range(len(f)):
        total = (((f[i] + p * a[i]) + q * b[i]) + r * c[i]) + s * d[i]
        f[i] = (((total + t * e[i]) + u * g[i]) + v * h[i]) + w * j[i]


@njit(cache=True, nogil=True)
def _add_sparse(
    indptr: Ints,
    indices: Ints32,
    values: AnyFloats,
    begins: Array,
    classes: Array,
    weights: AnyFloats,
    scores: AnyFloats,
) -> None:
    """scores += X W, of W's rows by their beginnings, classes and weights."""
    for i in range(scores.shape[0]):
        f = scores[i]
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], values[p]
            for k in range(begins[j], begins[j + 1]):
                f[classes[k]] += x * weights[k]
