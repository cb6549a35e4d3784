"""Scores of sparse examples by feature-major weights: ``X W``, one row or many by the same sums.

Every score adds its products in the order of the example's entries, each rounded by itself in the precision of the
weights: a row has the same bits alone and among others, and whatever the processor. Dense weights are read by eight
rows at a time, from their beginnings to their ends: so many streams hide how long memory takes. Dense weights in half
precision are read as they are and widened in registers; products and sums are float32. Of sparse weights, rows that are
mostly nonzero and that many examples need are written out with their zeros: adding those is several times as fast.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from solvers.numerics.array_types import AnyFloats, Array, Bools, Ints, Ints32
from solvers.numerics.copies import fixed

# examples that need a row of sparse weights, for it to be written out
FREQUENT = 8


def places(features: Ints, indices: NDArray[np.integer]) -> tuple[Ints, Bools]:
    """Places of indices among ascending ``features``, and which of them are there at all."""
    at = np.searchsorted(features, indices)
    if len(features) == 0:
        return at, np.zeros(len(at), bool)
    at[at == len(features)] = 0
    return at, features[at] == indices


def by_dense(X: sp.csr_matrix, W: AnyFloats) -> AnyFloats:
    """Scores of the rows of X, shape (n_samples, n_classes), as W's floats; float32 where these are float16.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    W : float array, shape (n_features, n_classes)
    """
    dtype = score_type(W)
    scores = np.zeros((X.shape[0], W.shape[1]), dtype)
    _add_dense(*_rows(X, dtype), fixed(readable(W)), scores)
    return scores


def one_by_dense(indices: NDArray[np.integer], values: AnyFloats, W: AnyFloats) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_dense`."""
    dtype = score_type(W)
    scores: AnyFloats = np.zeros((1, W.shape[1]), dtype)
    _add_dense(*_row(indices, values, dtype), fixed(readable(W)), scores)
    return np.asarray(scores[0])


def score_type(W: AnyFloats) -> np.dtype[Any]:
    """The floats that scores by dense weights have."""
    return np.dtype(np.float32) if W.dtype == np.float16 else W.dtype


def readable(W: AnyFloats) -> Array:
    """Weights as compiled loops take them: half precision by its bits, which :func:`widened` makes floats of."""
    return W.view(np.uint16) if W.dtype == np.float16 else W


def widened(weight: Any) -> Any:
    """In compiled loops: a weight of a :func:`readable` array as a float; no other but half precision changes."""
    raise NotImplementedError("compiled loops call this")


@overload(widened, inline="always")
def _widened(weight: Any) -> Any:
    def half(weight: Any) -> Any:
        return _of_half(weight)

    def plain(weight: Any) -> Any:
        return weight

    return half if weight == types.uint16 else plain


@njit(cache=True, nogil=True)
def _of_half(bits: Any) -> Any:
    """The float32 of finite half precision's bits: the exponent moves by 112, and subnormals lose the 1 before them."""
    wide = np.uint32(bits)
    sign, rest = (wide & np.uint32(0x8000)) << np.uint32(16), (wide & np.uint32(0x7FFF)) << np.uint32(13)
    normal = _as_float(rest + np.uint32(112 << 23))
    small = _as_float(rest + np.uint32(113 << 23)) - _as_float(np.uint32(113 << 23))
    found = normal if rest >= np.uint32(1 << 23) else small
    return _as_float(_as_bits(found) | sign)


@intrinsic
def _as_float(typing: Any, bits: Any) -> Any:
    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.uint32), make


@intrinsic
def _as_bits(typing: Any, value: Any) -> Any:
    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.uint32))

    return types.uint32(types.float32), make


class SparseProducts(NamedTuple):
    """Examples and sparse weights, as :func:`add_products` reads them.

    Attributes
    ----------
    indptr, indices, values : arrays
        The examples, as in a csr_matrix.
    places : int32 array, shape (n_entries,)
        The row of ``wide`` for each entry of the examples; -1 where its weights are not there.
    wide : float array, shape (n_wide, n_classes)
        Rows of weights with their zeros.
    begins, classes, weights : arrays
        All weights, as in a csr_matrix, shape (n_features, n_classes).
    """

    indptr: Ints
    indices: Ints32
    values: AnyFloats
    places: Ints32
    wide: AnyFloats
    begins: Array
    classes: Array
    weights: AnyFloats


def sparse_products(X: sp.csr_matrix, W: sp.csr_matrix) -> SparseProducts:
    """The rows of X, shape (n_samples, n_features), and weights W, shape (n_features, n_classes)."""
    indptr, indices, values = _rows(X, W.dtype)
    n_weights = np.diff(W.indptr)
    used = np.bincount(indices, minlength=len(n_weights))
    wide = np.flatnonzero((used >= FREQUENT) & (2 * n_weights > W.shape[1]))
    place_of_feature = np.full(len(n_weights), -1, np.int32)
    place_of_feature[wide] = np.arange(len(wide))
    return _with_weights((indptr, indices, values), place_of_feature[indices], W[wide].toarray(), W)


def one_sparse_product(indices: NDArray[np.integer], values: AnyFloats, W: sp.csr_matrix) -> SparseProducts:
    """As :func:`sparse_products` of one example."""
    places, wide = np.full(len(indices), -1, np.int32), np.empty((0, W.shape[1]), W.dtype)
    return _with_weights(_row(indices, values, W.dtype), places, wide, W)


def by_sparse(X: sp.csr_matrix, W: sp.csr_matrix) -> AnyFloats:
    """As :func:`by_dense`; the zeros of W add nothing."""
    scores = np.zeros((X.shape[0], W.shape[1]), W.dtype)
    _add_sparse(sparse_products(X, W), scores)
    return scores


def one_by_sparse(indices: NDArray[np.integer], values: AnyFloats, W: sp.csr_matrix) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_sparse`."""
    scores: AnyFloats = np.zeros((1, W.shape[1]), W.dtype)
    _add_sparse(one_sparse_product(indices, values, W), scores)
    return np.asarray(scores[0])


def _with_weights(
    rows: tuple[Array, Array, Array], places: Ints32, wide: AnyFloats, W: sp.csr_matrix
) -> SparseProducts:
    return SparseProducts(*rows, places, wide, *map(fixed, (W.indptr, W.indices, W.data)))


def _rows(X: sp.csr_matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    indptr, indices = np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int32)
    return fixed(indptr), fixed(indices), fixed(np.asarray(X.data, dtype))


def _row(indices: NDArray[np.integer], values: AnyFloats, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    indptr = np.array([0, len(indices)])
    return fixed(indptr), fixed(np.asarray(indices, np.int32)), fixed(np.asarray(values, dtype))


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
                f[c] += x * widened(w[c])
            p += 1


@njit(cache=True, nogil=True)
def _add_eight(f: AnyFloats, W: AnyFloats, at: Ints32, x: AnyFloats) -> None:
    a, b, c, d, e, g, h, j = W[at[0]], W[at[1]], W[at[2]], W[at[3]], W[at[4]], W[at[5]], W[at[6]], W[at[7]]
    p, q, r, s, t, u, v, w = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    for i in range(len(f)):
        total = (((f[i] + p * widened(a[i])) + q * widened(b[i])) + r * widened(c[i])) + s * widened(d[i])
        f[i] = (((total + t * widened(e[i])) + u * widened(g[i])) + v * widened(h[i])) + w * widened(j[i])


@njit(cache=True, nogil=True)
def _add_sparse(products: SparseProducts, scores: AnyFloats) -> None:
    """scores += X W."""
    for i in range(scores.shape[0]):
        add_products(products, i, scores[i])


@njit(cache=True, nogil=True)
def add_products(products: SparseProducts, i: int, f: AnyFloats) -> None:
    """f += W' x_i."""
    begins, classes, weights = products.begins, products.classes, products.weights
    for p in range(products.indptr[i], products.indptr[i + 1]):
        x, place = products.values[p], products.places[p]
        if place >= 0:
            w = products.wide[place]
            for c in range(len(f)):
                f[c] += x * w[c]
            continue
        j = products.indices[p]
        for k in range(begins[j], begins[j + 1]):
            f[classes[k]] += x * weights[k]
