"""Scores of sparse examples by dense feature-major weights: ``X W``, one row or many by the same sums.

Every score adds its products in the order of the example's entries, each rounded by itself in the precision of the
weights: a row has the same bits alone and among others, and whatever the processor. Dense weights are read by eight
rows at a time, from their beginnings to their ends: so many streams hide how long memory takes. Dense weights in half
precision are read as they are and widened in registers; products and sums are float32.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from solvers.numerics.array_types import AnyFloats, Array, Bools, Ints, Ints32
from solvers.numerics.copies import fixed


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
    _add_dense(*example_rows(X, dtype), fixed(readable(W)), scores)
    return scores


def one_by_dense(indices: NDArray[np.integer], values: AnyFloats, W: AnyFloats) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_dense`."""
    dtype = score_type(W)
    scores: AnyFloats = np.zeros((1, W.shape[1]), dtype)
    _add_dense(*example_row(indices, values, dtype), fixed(readable(W)), scores)
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


def example_rows(X: sp.csr_matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """The arrays ``indptr``, ``indices`` and ``data`` of examples, as compiled loops take them."""
    indptr, indices = np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int32)
    return fixed(indptr), fixed(indices), fixed(np.asarray(X.data, dtype))


def example_row(indices: NDArray[np.integer], values: AnyFloats, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """As :func:`example_rows` of one example."""
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
