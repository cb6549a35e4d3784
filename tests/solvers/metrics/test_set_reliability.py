"""What labels of sets are worth from a probability on, against plain counting."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from solvers.labels.stored_arrays import ArrayFault
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.reliability import lower_bounds, threshold_for
from solvers.metrics.confidence.set_reliability import SetReliability


def _drawn(n=150, k=4, seed=0):
    rng = np.random.default_rng(seed)
    log_odds = 2.0 * rng.standard_normal((n, k)).round(1) - 1.0
    return log_odds, rng.random((n, k)) < expit(log_odds)


def of(log_odds, true):
    return SetReliability.from_pairs(Pairs.from_log_odds(log_odds, sp.csr_matrix(true)))


def test_the_least_threshold_is_that_of_plain_counting():
    log_odds, true = _drawn(n=90)
    said = expit(log_odds).astype(np.float32)
    held_out = of(log_odds, true)
    assert held_out.threshold.tolist() == np.unique(said).tolist()
    tried = np.unique(said)
    hits, counts = (np.array([rows[said >= at].sum() for at in tried]) for rows in (true, np.ones_like(true, int)))
    lows = dict(zip(tried.tolist(), lower_bounds(hits, counts).tolist(), strict=True))
    assert [point.lower_bound for point in held_out.curve] == pytest.approx(list(lows.values()))
    for precision in (0.4, 0.6, 0.75):
        found = threshold_for(held_out.curve, precision)
        assert found.threshold == min(at for at, low in lows.items() if low >= precision)
        chosen = said >= found.threshold
        assert found.precision == pytest.approx(true[chosen].mean())
        assert found.lower_bound == pytest.approx(lows[found.threshold])
        assert found.answered == pytest.approx(chosen.any(axis=1).mean())
        assert found.recall == pytest.approx(true[chosen].sum() / true.sum())


def test_no_threshold_is_told_where_none_reaches_the_precision():
    log_odds, true = _drawn()
    assert threshold_for(of(log_odds, true).curve, 0.99999) is None
    assert threshold_for(of(log_odds, np.zeros_like(true)).curve, 0.01) is None


def test_of_many_pairs_thresholds_are_tried_among_the_probable_ones():
    rng = np.random.default_rng(1)
    log_odds = rng.standard_normal((2000, 40)) * 3.0 - 8.0
    held_out = of(log_odds, rng.random(log_odds.shape) < expit(log_odds))
    assert len(held_out.threshold) <= 512
    assert (held_out.threshold > 0.5).sum() > 100
    assert (np.diff(held_out.threshold) > 0).all()
    assert held_out.threshold[0] == expit(log_odds.min()).astype(np.float32)


def test_arrays_that_do_not_fit_one_another_are_refused():
    log_odds, true = _drawn()
    arrays = of(log_odds, true).arrays()
    assert threshold_for(SetReliability.from_arrays(arrays).curve, 0.6) is not None
    wrong = {"threshold": arrays["threshold"].astype(int), "counts": arrays["counts"][:, :1], "totals": np.arange(3)}
    for name, array in wrong.items():
        with pytest.raises(ArrayFault, match=f"array {name}"):
            SetReliability.from_arrays(arrays | {name: array})
