"""Scores of sparse examples by sparse feature-major weights: ``X W``, one row or many by the same sums.

Every score adds its products in the order of the example's entries, each rounded by itself in the precision of the
weights, as with dense weights: a row has the same bits alone and among others, and whatever the processor.

Adding the weights of a feature one by one takes a load, an addition and a store for each of them. Where the processor
has an instruction for it (AVX-512), features whose weights are not that few have a bit for each class beside them: a
vector of scores takes the next weights at the bits that are set, and two features at a time share its load and store.
That takes a fifth of the time, and an index for each weight is not read. Elsewhere, rows that are mostly nonzero and
that many examples need are written out with their zeros.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.array_types import AnyFloats, Array, Bytes, Ints, Ints32
from solvers.numerics.copies import fixed
from solvers.numerics.predicted_scores import example_row, example_rows
from solvers.numerics.simd import EXPANDS, add_packed_rows

# examples that need a row of sparse weights, for it to be written out
FREQUENT = 8
# classes for each weight of a feature, up to which it has bits: these then take half as many bytes as indices at most
SPARSEST = 16


class SparseWeights(NamedTuple):
    """Sparse weights as scores read them.

    Attributes
    ----------
    begins, classes, weights : arrays
        As in a csr_matrix, shape (n_features, n_classes).
    packed : int32 array, shape (n_features,)
        The row of ``bits`` for each feature; -1 of features without one.
    bits : uint8 array, shape (n_packed, n_bytes)
        Bit c of a row, the lowest of the first byte being 0, is set where class c has a weight. As many bytes as whole
        vectors of scores take.
    n_classes : int
    """

    begins: Array
    classes: Array
    weights: AnyFloats
    packed: Ints32
    bits: Bytes
    n_classes: int

    @classmethod
    def of(cls, W: sp.csr_matrix, expands: bool = EXPANDS) -> "SparseWeights":
        """Those of a csr_matrix, shape (n_features, n_classes), whose arrays stay where they are.

        Parameters
        ----------
        expands : bool
            Whether to make bits, which are for processors with an instruction for them.
        """
        begins, classes, weights = map(fixed, (W.indptr, W.indices, W.data))
        lanes = 64 // weights.itemsize
        n_bytes = -(-W.shape[1] // lanes) * lanes // 8
        packed = np.full(W.shape[0], -1, np.int32)
        often = np.flatnonzero(SPARSEST * np.diff(begins) >= W.shape[1]) if expands else np.empty(0, np.int64)
        bits = np.zeros((len(often), n_bytes), np.uint8)
        _set_bits(begins, classes, often, bits, packed)
        return cls(begins, classes, weights, fixed(packed), fixed(bits), W.shape[1])


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
    of : SparseWeights
    """

    indptr: Ints
    indices: Ints32
    values: AnyFloats
    places: Ints32
    wide: AnyFloats
    of: SparseWeights


def sparse_products(X: sp.csr_matrix, W: SparseWeights) -> SparseProducts:
    """The rows of X, shape (n_samples, n_features), and weights."""
    indptr, indices, values = example_rows(X, W.weights.dtype)
    eligible = (W.packed < 0) & (2 * np.diff(W.begins) > W.n_classes)
    if not eligible.any():
        return _narrow((indptr, indices, values), W)
    n_features = len(W.packed)
    wide = np.flatnonzero(eligible & (np.bincount(indices, minlength=n_features) >= FREQUENT))
    place_of_feature = np.full(n_features, -1, np.int32)
    place_of_feature[wide] = np.arange(len(wide))
    every = sp.csr_matrix((W.weights, W.classes, W.begins), shape=(n_features, W.n_classes))
    return SparseProducts(indptr, indices, values, place_of_feature[indices], every[wide].toarray(), W)


def one_sparse_product(indices: NDArray[np.integer], values: AnyFloats, W: SparseWeights) -> SparseProducts:
    """As :func:`sparse_products` of one example."""
    return _narrow(example_row(indices, values, W.weights.dtype), W)


def by_sparse(X: sp.csr_matrix, W: SparseWeights) -> AnyFloats:
    """Scores of the rows of X, shape (n_samples, n_classes), as W's floats."""
    scores = np.zeros((X.shape[0], W.n_classes), W.weights.dtype)
    _add_sparse(sparse_products(X, W), scores)
    return scores


def one_by_sparse(indices: NDArray[np.integer], values: AnyFloats, W: SparseWeights) -> AnyFloats:
    """The scores of one example, shape (n_classes,): a row of :func:`by_sparse`."""
    scores: AnyFloats = np.zeros((1, W.n_classes), W.weights.dtype)
    _add_sparse(one_sparse_product(indices, values, W), scores)
    return np.asarray(scores[0])


def _narrow(examples: tuple[Array, Array, Array], W: SparseWeights) -> SparseProducts:
    places, wide = np.full(len(examples[1]), -1, np.int32), np.empty((0, W.n_classes), W.weights.dtype)
    return SparseProducts(*examples, places, wide, W)


@njit(cache=True, nogil=True)
def _set_bits(begins: Array, classes: Array, features: Ints, bits: Bytes, packed: Ints32) -> None:
    """The bits of some features, and their rows; features whose classes do not rise stay without."""
    for row in range(len(features)):
        feature, before, falls = features[row], np.int64(-1), np.int64(0)
        for k in range(begins[feature], begins[feature + 1]):
            c = np.int64(classes[k])
            falls += np.int64(c <= before)
            before = c
            bits[row, c >> 3] |= np.uint8(1 << (c & 7))
        packed[feature] = -1 if falls > 0 else row


@njit(cache=True, nogil=True)
def _add_sparse(products: SparseProducts, scores: AnyFloats) -> None:
    """scores += X W."""
    f = np.empty(padded_width(products.of), scores.dtype)
    for i in range(scores.shape[0]):
        f[:] = 0
        add_products(products, i, f)
        for c in range(scores.shape[1]):
            scores[i, c] = f[c]


@njit(cache=True, nogil=True)
def padded_width(W: SparseWeights) -> int:
    """As many scores as whole vectors have, one for each class."""
    width: int = 8 * W.bits.shape[1]
    return width


@njit(cache=True, nogil=True)
def add_products(products: SparseProducts, i: int, f: AnyFloats) -> None:
    """f += W' x_i, f having the :func:`padded_width`; what is there beyond the classes stays as it is."""
    W, indices, values, places = products.of, products.indices, products.values, products.places
    p, end = products.indptr[i], products.indptr[i + 1]
    while p < end:
        j, x = indices[p], values[p]
        first = W.packed[j]
        if first >= 0 and p + 1 < end and W.packed[indices[p + 1]] >= 0:
            other = indices[p + 1]
            rows, begins = (
                (np.int64(first), np.int64(W.packed[other])),
                (np.int64(W.begins[j]), np.int64(W.begins[other])),
            )
            add_packed_rows(f, (x, values[p + 1]), W.bits, rows, W.weights, begins)
            p += 2
            continue
        if first >= 0:
            add_packed_rows(f, (x,), W.bits, (np.int64(first),), W.weights, (np.int64(W.begins[j]),))
        elif places[p] >= 0:
            w = products.wide[places[p]]
            for c in range(len(w)):
                f[c] += x * w[c]
        else:
            for k in range(W.begins[j], W.begins[j + 1]):
                f[W.classes[k]] += x * W.weights[k]
        p += 1
