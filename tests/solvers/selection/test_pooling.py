"""Coefficients of a pool against a general minimiser, and thresholds against their definition."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import binom

from solvers.metrics.confidence.reliability import Reliability, threshold_for
from solvers.selection.pooling import (
    cautious,
    choose_pool,
    fit_pool,
    fit_temperature,
    likeliest,
    pooled,
)


def scored(n=400, k=7, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n).astype(np.int32)
    true = np.eye(k)[y]
    good = (2.0 * true + rng.standard_normal((n, k))).astype(np.float32)
    other = (30.0 * true + 25.0 * rng.standard_normal((n, k))).astype(np.float32)
    noise = rng.standard_normal((n, k)).astype(np.float32)
    return [good, other, noise, -good], y


def loss(b, stack, y):
    total = sum(each * s.astype(float) for each, s in zip(b, stack, strict=True))
    return float(np.mean(logsumexp(total, axis=1) - total[np.arange(len(y)), y]))


@pytest.mark.parametrize("members", [(0,), (0, 1), (0, 1, 2), (0, 1, 3)])
def test_the_coefficients_are_those_of_a_general_minimiser(members):
    scores, y = scored()
    pool = fit_pool(scores, y, members)
    stack = [scores[member] for member in members]
    found = minimize(loss, np.full(len(members), 0.1), (stack, y), bounds=[(0, None)] * len(members))
    assert pool.log_loss == pytest.approx(found.fun, abs=1e-5)
    np.testing.assert_allclose(pool.coefficients, found.x, atol=2e-3)
    assert pool.log_loss == pytest.approx(loss(pool.coefficients, stack, y), abs=1e-5)


def test_the_temperature_of_many_scores_is_fitted_on_some_of_the_rows_and_measured_on_all(monkeypatch):
    [good, *_], y = scored(n=4000)
    exact = fit_pool([good], y, (0,))
    assert fit_temperature(good, y) == exact
    monkeypatch.setattr("solvers.selection.pooling.TEMPERATURE_ENTRIES", good.size // 4)
    found = fit_temperature(good, y)
    assert found.coefficients == fit_pool([good[::4]], y[::4], (0,)).coefficients
    assert found.log_loss == pytest.approx(loss(found.coefficients, [good], y), abs=1e-5)
    assert exact.log_loss < found.log_loss < 1.01 * exact.log_loss


def test_the_temperature_of_many_classes_is_fitted_on_a_thousand_rows_at_least(monkeypatch):
    [good, *_], y = scored(n=4000)
    monkeypatch.setattr("solvers.selection.pooling.TEMPERATURE_ENTRIES", 70)
    assert fit_temperature(good, y).coefficients == fit_pool([good[::4]], y[::4], (0,)).coefficients


def test_members_join_as_long_as_they_lower_the_loss():
    scores, y = scored()
    assert set(choose_pool(scores, y, 4).members) == {0, 1}
    assert len(choose_pool(scores, y, 1).members) == 1
    alone = min(fit_pool(scores, y, (m,)).log_loss for m in range(4))
    assert choose_pool(scores, y, 1).log_loss == pytest.approx(alone)
    np.testing.assert_allclose(pooled(scores[:2], np.array([1.0, 2.0])), scores[0] + 2.0 * scores[1], rtol=1e-5)


def test_a_start_and_the_likeliest_classes_lead_to_the_same_coefficients():
    scores, y = scored()
    cold = fit_pool(scores, y, (0, 1))
    warm = fit_pool(scores, y, (0, 1), fit_pool(scores, y, (0,)).coefficients)
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, rtol=1e-3)
    near, own = likeliest(scores[:2], y, 5)
    assert near[0].shape == (400, 5)
    for each, whole in zip(near, scores, strict=False):
        np.testing.assert_array_equal(each[np.arange(400), own], whole[np.arange(400), y])
    few = fit_pool(near, own, (0, 1))
    np.testing.assert_allclose(few.coefficients, cold.coefficients, rtol=0.1)


def test_a_cautious_pool_is_less_sure_for_a_five_hundredth_of_the_loss():
    scores, y = scored()
    pool = fit_pool(scores, y, (0, 1))
    careful = cautious(pool, scores, y)
    share = careful.coefficients / pool.coefficients
    assert share[0] == pytest.approx(share[1])
    assert 0.8 < share[0] < 1.0
    assert careful.log_loss == pytest.approx(1.002 * pool.log_loss, rel=3e-4)
    flat = [np.zeros_like(scores[0])]
    assert cautious(fit_pool(flat, y, (0,)), flat, y).log_loss == pytest.approx(np.log(7))


def test_constant_scores_do_not_hinder():
    scores, y = scored()
    flat = np.zeros_like(scores[0])
    assert fit_pool([flat], y, (0,)).log_loss == pytest.approx(np.log(7))
    assert fit_pool([flat, scores[0]], y, (0, 1)).log_loss == pytest.approx(
        fit_pool(scores, y, (0,)).log_loss, abs=1e-5
    )


def test_the_threshold_is_the_least_that_reaches_the_precision_with_confidence():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(500))[::-1].astype(np.float32)
    reliability = Reliability(p, rng.random(500) < p)
    found = threshold_for(reliability.curve, 0.8)
    n = int((p >= found.threshold).sum())
    right = int(reliability.correct[:n].sum())
    assert found.answered == n / 500
    assert found.precision == right / n
    # at the bound so many right answers or more have a chance of less than five in a hundred, as any may be chosen
    assert 0.002 < binom.sf(right - 1, n, found.lower_bound) < 0.02
    assert found.lower_bound >= 0.8
    for longer in range(n + 1, 501):
        assert binom.sf(int(reliability.correct[:longer].sum()) - 1, longer, 0.8) > 0.008
    assert threshold_for(reliability.curve, 0.9999) is None


def test_answers_of_one_confidence_are_given_together():
    reliability = Reliability(np.array([0.9] * 50 + [0.5] * 50, np.float32), np.array([True] * 50 + [False] * 50))
    assert threshold_for(reliability.curve, 0.9).answered == 0.5
    assert threshold_for(reliability.curve, 0.3).answered == 1.0
