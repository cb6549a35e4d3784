"""Scores of one example and of many are the same sums."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.numerics.best import best
from solvers.numerics.predicted_scores import by_dense, one_by_dense


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_row_and_many_have_the_bits_of_scipy_s_product(dtype: type) -> None:
    X = sp.random(90, 60, 0.3, "csr", random_state=1)
    W = np.random.default_rng(0).standard_normal((60, 19)).astype(dtype)
    many = by_dense(X, W)
    np.testing.assert_array_equal(many, X.astype(dtype) @ W)
    for i in range(X.shape[0]):
        np.testing.assert_array_equal(one_by_dense(X[i].indices, X[i].data, W), many[i])


@pytest.mark.parametrize("k", [1, 4, 32, 33, 90])
def test_the_best_are_those_of_a_stable_sort(k: int) -> None:
    scores = np.random.default_rng(k).integers(0, 9, (7, 80)).astype(float)
    columns, values = best(scores, k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(columns, order)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, order, axis=1))


@pytest.mark.parametrize("k", [1, 3, 40])
def test_a_nan_is_never_passed_over(k: int) -> None:
    scores = np.arange(50.0)[None].repeat(2, axis=0)
    scores[1, 7] = np.nan
    found = best(scores, k)[1][:, 0]
    assert found[0] == 49.0
    assert np.isnan(found[1])
