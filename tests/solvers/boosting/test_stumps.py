"""The search for weak learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_binning import codes_of, mixed

from solvers.boosting.simd import LANES
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.channels import Channels
from solvers.boosting.weak_learners.stumps import Stumps, groups
from solvers.numerics.thread_pool import ThreadPool


def filled(u: np.ndarray, *, fine: bool = False) -> Channels:
    """Channels that hold u, shape (m, n)."""
    m, n = u.shape
    channels = Channels(m, n, fine=fine)
    channels.fit(np.abs(u).sum(axis=1))
    whole = np.rint(u * channels.scales[:, None]).astype(channels.U.dtype)
    for j in range(m):
        channels.U[j // LANES, j % LANES :: LANES] = whole[j]
    channels.totals.reshape(-1)[:m] = whole.sum(axis=1)
    return channels


def all_values(bins: Bins, u: np.ndarray) -> np.ndarray:
    """``sum_i u_i h(x_i)`` of every stump by the definition, shape (m, n_thresholds)."""
    codes = codes_of(bins)
    columns = []
    for f in range(bins.n_features):
        for b in range(bins.n_bins[f] - 1):
            columns.append(u @ np.where(codes[f] <= b, 1.0, -1.0))
    return np.array(columns).T


@pytest.mark.parametrize("m", [1, 5, 16, 37])
@pytest.mark.parametrize(
    ("limit", "fine"),
    [*(pytest.param(None, fine, marks=pytest.mark.slow) for fine in (False, True)), (4, False), (4, True)],
)
def test_the_best_stump_is_the_best_of_all(limit, m, fine):
    X = mixed(300)
    stumps = Stumps(Bins.from_matrix(X, limit), Bins.from_matrix(X, limit))
    u = np.random.default_rng(m).standard_normal((m, 300)) ** 3
    values = all_values(stumps.bins, u)
    channels = filled(u, fine=fine)
    with ThreadPool(1) as thread_pool:
        found = stumps.find(channels, thread_pool, [0])
    slack = channels.slack
    assert (slack < 1e-3 if not fine else slack < 1e-9).all()
    assert (np.abs(values).max(axis=1) <= np.abs(found.values) + slack).all()
    reported = np.where(found.learners < 0, u.sum(axis=1), values[np.arange(m), found.learners])
    assert (np.abs(reported - found.values) <= slack).all()
    assert (np.abs(found.values) + slack >= np.abs(u.sum(axis=1))).all()


def test_values_of_known_stumps_come_with_the_search_in_the_order_asked_for():
    X = mixed(300)
    stumps = Stumps(Bins.from_matrix(X), Bins.from_matrix(X))
    rng = np.random.default_rng(0)
    u = rng.standard_normal((20, 300))
    learners = np.append(rng.integers(0, len(stumps.bins.thresholds), 195), [-1] * 5)
    of = rng.integers(0, 20, 200)
    with ThreadPool(1) as thread_pool:
        _, values = stumps.find_and_evaluate(filled(u), thread_pool, learners, of)
    responses = stumps.responses(learners)
    np.testing.assert_allclose(values, (u[of] * responses).sum(axis=1), atol=1e-4)
    constant = learners == -1
    assert constant.any()
    assert (responses[constant] == 1).all()


@pytest.mark.parametrize("size", [2, 3])
def test_threads_change_no_bit(size):
    X = sp.csr_matrix(sp.hstack([mixed(300, seed=seed) for seed in range(4)]))
    stumps = Stumps(Bins.from_matrix(X), Bins.from_matrix(X))
    channels = filled(np.random.default_rng(0).standard_normal((20, 300)))
    learners, of = np.arange(-1, 19), np.arange(20)
    with ThreadPool(1) as one, ThreadPool(size) as many:
        assert len(groups(stumps.bins)) > 3
        (alone, values), (shared, others) = (
            stumps.find_and_evaluate(channels, thread_pool, learners, of) for thread_pool in (one, many)
        )
    np.testing.assert_array_equal(alone.learners, shared.learners)
    np.testing.assert_array_equal(alone.values, shared.values)
    np.testing.assert_array_equal(values, others)


def test_equal_stumps_are_told_by_the_first_of_them():
    x = np.random.default_rng(0).standard_normal((100, 1))
    X = sp.csr_matrix(np.hstack([x, x, x, x, x]))
    stumps = Stumps(Bins.from_matrix(X), Bins.from_matrix(X))
    with ThreadPool(1) as thread_pool:
        found = stumps.find(filled(np.random.default_rng(1).standard_normal((3, 100))), thread_pool, [0])
    assert (found.learners < stumps.bins.first[1]).all()


@pytest.mark.parametrize("held", [False, True])
def test_responses_are_those_of_the_threshold(held):
    X, other = mixed(300), mixed(40, seed=3)
    bins = Bins.from_matrix(X)
    stumps = Stumps(bins, bins.encode(other))
    dense = (other if held else X).toarray()
    learners = np.arange(len(bins.thresholds))
    features = bins.features[bins.feature_of(learners)]
    expected = np.where(dense[:, features] <= bins.thresholds, 1, -1).T
    np.testing.assert_array_equal(stumps.responses(learners, held=held), expected)


def test_without_features_the_constant_is_found():
    X = sp.csr_matrix((10, 4))
    stumps = Stumps(Bins.from_matrix(X), Bins.from_matrix(X))
    with ThreadPool(2) as thread_pool:
        found = stumps.find(filled(np.arange(20.0).reshape(2, 10)), thread_pool, [0])
    assert found.learners.tolist() == [-1, -1]
    np.testing.assert_allclose(found.values, [45.0, 145.0], rtol=1e-6)


def test_channels_without_weight_have_no_value():
    X = mixed(50)
    stumps = Stumps(Bins.from_matrix(X), Bins.from_matrix(X))
    with ThreadPool(1) as thread_pool:
        found = stumps.find(filled(np.zeros((2, 50))), thread_pool, [0])
    assert (found.values == 0).all()
