"""Paired tests and intervals against scipy's and their definitions."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap

from solvers.metrics import intervals
from solvers.metrics.comparison import mcnemar, paired_bootstrap


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (3, 12), (12, 3), (7, 7), (40, 61)])
def test_mcnemars_exact_test_is_the_binomial_one(only_a, only_b):
    a = np.r_[np.ones(only_a), np.zeros(only_b), np.ones(5), np.zeros(4)].astype(bool)
    b = np.r_[np.zeros(only_a), np.ones(only_b), np.ones(5), np.zeros(4)].astype(bool)
    reported = mcnemar(a, b)
    assert (reported.only_a, reported.only_b) == (only_a, only_b)
    n = only_a + only_b
    assert reported.exact == pytest.approx(binomtest(only_a, n, 0.5).pvalue if n else 1.0)
    assert reported.mid_p == mcnemar(b, a).mid_p
    assert reported.mid_p < reported.exact or n == 0


def test_the_mid_p_value_counts_half_of_what_was_seen():
    # 2 and 6: (1 + 8 + 28/2) / 256, twice
    reported = mcnemar(np.repeat([True, False], [2, 6]), np.repeat([False, True], [2, 6]))
    assert reported.mid_p == pytest.approx(2 * (1 + 8 + 14) / 256)


def _of_means(values, **options):
    """Intervals of the means of the columns of ``values``."""
    return intervals.bootstrap(lambda counts: counts @ values / len(values), len(values), **options)


def test_intervals_of_means_agree_with_scipys():
    values = np.random.default_rng(0).exponential(size=(400, 2))
    low, high = _of_means(values, resamples=4000, seed=1)
    due = bootstrap((values[:, 0],), np.mean, n_resamples=4000, method="percentile", random_state=2)
    spread = due.confidence_interval.high - due.confidence_interval.low
    assert low[0] == pytest.approx(due.confidence_interval.low, abs=0.1 * spread)
    assert high[0] == pytest.approx(due.confidence_interval.high, abs=0.1 * spread)


def test_the_same_seed_gives_the_same_interval_and_every_resample_draws_all_rows():
    values = np.arange(30.0)[:, None]
    assert (_of_means(values, seed=5) == _of_means(values, seed=5)).all()
    assert (_of_means(values, seed=5) != _of_means(values, seed=6)).any()
    for counts in intervals.drawn(30, 7, 0):
        assert (counts.sum(axis=1) == 30).all()


def test_chunks_of_resamples_change_nothing(monkeypatch):
    values = np.random.default_rng(1).normal(size=(50, 3))
    whole = _of_means(values, resamples=40)
    monkeypatch.setattr(intervals, "_CHUNK_BYTES", 4 * 50 * 7)
    assert _of_means(values, resamples=40) == pytest.approx(whole)


def test_the_paired_bootstrap_is_that_of_the_differences_row_by_row():
    rng = np.random.default_rng(3)
    a, b = rng.random(300) < 0.7, rng.random(300) < 0.65
    reported = paired_bootstrap(a, b, seed=1)
    difference = a.astype(float) - b
    low, high = _of_means(difference[:, None], resamples=10_000, seed=2)
    assert reported.difference == pytest.approx(difference.mean())
    assert (reported.low, reported.high) == pytest.approx((low[0], high[0]), abs=0.01)


def test_p_values_are_small_where_one_is_better_and_large_where_none_is():
    same = np.arange(40) % 2 == 0
    assert paired_bootstrap(same, same).p_value == 1.0
    assert paired_bootstrap(same, ~same).p_value > 0.5
    assert paired_bootstrap(np.ones(40), same).p_value == pytest.approx(2 / 10_001)


def test_what_is_no_pair_is_refused():
    with pytest.raises(ValueError, match="of one shape"):
        mcnemar(np.ones(2, bool), np.ones(3, bool))
    with pytest.raises(ValueError, match="of one shape"):
        paired_bootstrap(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match="cannot be drawn"):
        _of_means(np.empty((0, 1)))
