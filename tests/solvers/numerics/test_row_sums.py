"""Sums of rows of weights: short and long rows, a few and many of them."""

import numpy as np
import pytest
from numba import njit

from solvers.numerics.row_sums import LONG, sum_rows
from solvers.numerics.rows import weights
from solvers.numerics.simd import sum_narrow_rows


@njit
def _narrow(W, indices, data, begin, end, f):
    sum_narrow_rows(W, indices, data, begin, end, f)


@njit
def _any(W, indices, data, begin, end, f):
    sum_rows(W, indices, data, begin, end, f)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [3, 250, 383, 385, 1000])
@pytest.mark.parametrize("n_entries", [0, 1, 3, 4, 7, 8, 9, 12, 15, 16, 41])
def test_all_ways_give_the_same_bits(dtype, n_classes, n_entries):
    rng = np.random.default_rng(n_entries)
    W = weights(60, n_classes, np.dtype(dtype))
    W[:] = rng.normal(size=W.shape)
    indices = np.sort(rng.choice(60, n_entries + 5, replace=False)).astype(np.int32)
    data = rng.normal(size=n_entries + 5).astype(dtype)
    first, second = np.full((2, W.shape[1]), np.nan, dtype)
    _narrow(W, indices, data, 2, 2 + n_entries, first)
    _any(W, indices, data, 2, 2 + n_entries, second)
    np.testing.assert_array_equal(first, second)
    own = slice(2, 2 + n_entries)
    expected = W[indices[own]].astype(np.float64).T @ data[own].astype(np.float64)
    np.testing.assert_allclose(second, expected, rtol=0, atol=200 * np.finfo(dtype).eps)


def test_both_ways_are_tried():
    narrow, wide = (weights(1, n_classes, np.dtype(np.float32)).nbytes for n_classes in (250, 385))
    assert narrow < LONG <= wide
