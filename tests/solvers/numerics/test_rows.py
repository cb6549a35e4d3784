"""Rows and weights as compiled code reads them: their order, their products, the classes above a threshold."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import small

from solvers.numerics.rows import above, arrange, score, square_norm, weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_equal_the_matrix_product(dtype):
    problem = small(n=30, d=20, k=7)
    rows, features = arrange(problem.X, np.dtype(dtype))
    W = weights(len(features), 7, np.dtype(dtype))
    assert W.shape[1] % (64 // np.dtype(dtype).itemsize) == 0
    assert W.ctypes.data % 64 == 0
    W[:, :7] = np.random.default_rng(0).standard_normal((len(features), 7))
    f = np.empty(W.shape[1], dtype)
    dense = problem.X.toarray()[:, features]
    for i in range(30):
        score(rows, i, W, f)
        np.testing.assert_allclose(f[:7], dense[i] @ W[:, :7], rtol=1e-4, atol=1e-5)
    assert square_norm(W, 7) == pytest.approx(float((W.astype(float) ** 2).sum()))


def test_frequent_features_come_first_and_unused_ones_go():
    X = sp.csr_matrix(np.array([[0, 1, 0, 2], [0, 1, 0, 0], [0, 1, 3, 4.0]]))
    rows, features = arrange(X, np.dtype(np.float64))
    assert features.tolist() == [1, 3, 2]
    assert rows.squares.tolist() == [5.0, 1.0, 26.0]


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_arranged_rows_hold_the_same_numbers_in_the_order_of_the_new_features(index):
    X = sp.random(40, 60, density=0.15, random_state=3, format="csr")
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows, features = arrange(X, np.dtype(np.float64))
    frequency = np.bincount(rows.indices)
    assert (np.diff(frequency) <= 0).all()
    assert frequency.all()
    dense = np.zeros(X.shape)
    for i in range(40):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        assert (np.diff(rows.indices[entries]) > 0).all()
        dense[i, features[rows.indices[entries]]] = rows.data[entries]
    np.testing.assert_array_equal(dense, X.toarray())
    np.testing.assert_allclose(rows.squares, (dense**2).sum(axis=1))


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=200), st.floats(-2, 2), st.integers(0, 200))
def test_above_finds_exactly_the_classes_above_or_more_than_asked_for(f, threshold, most):
    scores = np.full(-(-len(f) // 8) * 8, 5.0)
    scores[: len(f)] = f
    found = np.empty(len(f), np.int32)
    n = above(scores, len(f), threshold, found, most)
    expected = np.flatnonzero(np.array(f) > threshold).tolist()
    assert found[:n].tolist() == expected[:n]
    assert n == len(expected) or n > most
