"""Scores by sparse weights: the same bits alone and among others, with and without the processor's instruction."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.numerics.sparse_scores import SparseWeights, by_sparse, one_by_sparse, sparse_products


def weights(n_classes: int, dtype: type) -> sp.csr_matrix:
    """Of sixty features: a third with nearly all classes, a third with some, a third with one of a hundred."""
    dense = np.random.default_rng(0).standard_normal((60, n_classes))
    least = np.repeat([0.1, 1.0, 2.6], 20)[:, None]
    return sp.csr_matrix(np.where(np.abs(dense) > least, dense, 0).astype(dtype))


@pytest.mark.parametrize("expands", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [1, 16, 19, 133])
def test_one_row_and_many_have_the_bits_of_scipy_s_product(n_classes: int, dtype: type, expands: bool) -> None:
    X, W = sp.random(90, 60, 0.3, "csr", random_state=1), weights(n_classes, dtype)
    read = SparseWeights.of(W, expands)
    many = by_sparse(X, read)
    np.testing.assert_array_equal(many, (X.astype(dtype) @ W).toarray())
    for i in range(X.shape[0]):
        np.testing.assert_array_equal(one_by_sparse(X[i].indices, X[i].data, read), many[i])


def test_features_of_few_weights_have_no_bits_and_full_ones_are_not_written_out_beside_them() -> None:
    X, W = sp.random(90, 60, 0.3, "csr", random_state=1), weights(133, np.float32)
    packed, plain = SparseWeights.of(W, True), SparseWeights.of(W, False)
    assert 20 <= (packed.packed >= 0).sum() == len(packed.bits) < 60
    assert packed.bits.nbytes < W.indices.nbytes / 2
    assert np.unpackbits(packed.bits, bitorder="little").sum() == np.diff(W.indptr)[packed.packed >= 0].sum()
    assert len(sparse_products(X, packed).wide) == 0 < len(sparse_products(X, plain).wide)


def test_infinite_values_and_negative_zeros_reach_no_class_without_a_weight() -> None:
    W = weights(19, np.float32)
    W.data[:] = -np.abs(W.data)
    with np.errstate(invalid="ignore", over="ignore"):
        given = np.arange(2, dtype=np.int32), np.array([np.inf, 1.0])
        found = [one_by_sparse(*given, SparseWeights.of(W, expands)) for expands in (False, True)]
    assert np.isinf(found[0]).any()
    np.testing.assert_array_equal(found[0].view(np.int32), found[1].view(np.int32))


def test_features_whose_classes_do_not_rise_are_added_one_by_one() -> None:
    W = weights(19, np.float32)
    first = slice(W.indptr[0], W.indptr[1])
    turned = sp.csr_matrix((W.data.copy(), W.indices.copy(), W.indptr), shape=W.shape)
    turned.data[first], turned.indices[first] = W.data[first][::-1], W.indices[first][::-1]
    read = SparseWeights.of(turned, True)
    assert read.packed[0] == -1 < read.packed[1]
    given = np.arange(60, dtype=np.int32), np.ones(60)
    np.testing.assert_array_equal(one_by_sparse(*given, read), one_by_sparse(*given, SparseWeights.of(W, True)))
