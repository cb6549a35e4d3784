"""Features cut into bins."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.boosting.weak_learners.binning import Bins


def mixed(n: int = 400, seed: int = 0) -> sp.csr_matrix:
    """Dense, sparse, constant and empty columns; negative, repeated and explicitly stored zero values."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 7))
    X[:, 1] = rng.integers(-2, 3, n)
    X[:, 2] = 5.0
    X[:, 3] = 0.0
    X[rng.random(n) < 0.9, 4] = 0.0
    X[rng.random(n) < 0.95, 5] = 0.0
    X[:, 6] = np.where(rng.random(n) < 0.9, 0.0, rng.integers(-1, 2, n))
    X = sp.csr_matrix(X)
    X.data[np.flatnonzero((X.indices != 2) & (X.indices != 1))[:9]] = 0.0
    return X


def codes_of(bins: Bins) -> np.ndarray:
    """The bin of every value, shape (n_kept, n)."""
    n_dense = len(bins.dense)
    out = np.empty((bins.n_features, bins.n), np.int64)
    out[:n_dense] = bins.dense
    for f in range(n_dense, bins.n_features):
        out[f] = bins.zero[f - n_dense]
        part = slice(bins.indptr[f - n_dense], bins.indptr[f - n_dense + 1])
        out[f, bins.rows[part]] = bins.codes[part]
    return out


@pytest.mark.parametrize("limit", [None, 2, 7, 300])
def test_a_bin_counts_the_thresholds_below_a_value(limit):
    X = mixed()
    bins = Bins.from_matrix(X, limit)
    codes, values = codes_of(bins), X.toarray().T
    for f, column in enumerate(bins.features):
        thresholds = bins.thresholds[bins.first[f] : bins.first[f + 1]]
        assert (np.diff(thresholds) > 0).all()
        np.testing.assert_array_equal(codes[f], np.searchsorted(thresholds, values[column], side="left"))
        assert len(thresholds) + 1 == bins.n_bins[f]
        assert len(np.unique(codes[f])) == bins.n_bins[f]
        assert limit is None or bins.n_bins[f] <= limit


def test_features_with_one_value_are_left_out_and_sparse_ones_keep_their_entries_alone():
    X = mixed()
    bins = Bins.from_matrix(X)
    assert sorted(bins.features.tolist()) == [0, 1, 4, 5, 6]
    assert bins.features[len(bins.dense) :].tolist() == [4, 5, 6]
    assert len(bins.rows) == X[:, [4, 5, 6]].nnz


def test_few_distinct_values_are_all_told_apart_whatever_the_limit():
    X = mixed()
    values = np.unique(X.toarray()[:, 1])
    for limit in (None, 5, 255):
        bins = Bins.from_matrix(X, limit)
        f = bins.features.tolist().index(1)
        thresholds = bins.thresholds[bins.first[f] : bins.first[f + 1]]
        np.testing.assert_array_equal(thresholds, (values[:-1] + values[1:]) / 2)


def test_many_values_fall_into_bins_of_like_size_and_a_frequent_one_has_its_own():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal(900), np.full(300, 9.0)])
    bins = Bins.from_matrix(sp.csr_matrix(x[:, None]), 10)
    counts = np.bincount(bins.dense[0])
    own = bins.dense[0][-1]
    assert (bins.dense[0] == own).sum() == 300
    others = np.delete(counts, own)
    assert others.max() <= 1.5 * 900 / 9
    assert others.min() >= 0.4 * 900 / 9


def test_neighbouring_floats_and_the_ends_of_their_range_are_told_apart():
    values = np.array([-1.7e308, -1.0, np.nextafter(-1.0, 0), 5e-324, 1e-323, 1.0, np.nextafter(1.0, 2), 1.7e308])
    bins = Bins.from_matrix(sp.csr_matrix(values[:, None]))
    np.testing.assert_array_equal(codes_of(bins)[0], np.arange(8))


@pytest.mark.parametrize("n", [255, 256, 257, 300])
def test_codes_are_as_narrow_as_the_bins_allow(n):
    bins = Bins.from_matrix(sp.csr_matrix(np.arange(n, dtype=float)[:, None] + 1))
    assert bins.dense.dtype == (np.uint8 if n <= 256 else np.uint16)
    np.testing.assert_array_equal(bins.dense[0], np.arange(n))


@pytest.mark.parametrize("limit", [None, 7])
def test_other_rows_fall_into_the_same_bins(limit):
    X, other = mixed(), mixed(50, seed=1)
    bins = Bins.from_matrix(X, limit)
    encoded = bins.encode(other)
    codes, values = codes_of(encoded), other.toarray().T
    for f, column in enumerate(bins.features):
        thresholds = bins.thresholds[bins.first[f] : bins.first[f + 1]]
        np.testing.assert_array_equal(codes[f], np.searchsorted(thresholds, values[column], side="left"))
    assert bins.encode(other[:0]).n == 0


def test_a_matrix_of_constants_has_no_bins():
    bins = Bins.from_matrix(sp.csr_matrix(np.ones((5, 3))))
    assert bins.n_features == len(bins.thresholds) == 0
