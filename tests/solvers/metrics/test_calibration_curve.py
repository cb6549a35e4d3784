"""Log-odds of sets become those that are observed, by a curve that changes no order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from solvers.labels.stored_arrays import ArrayFault
from solvers.metrics.confidence.calibration_curve import CalibrationCurve


def drawn(distort, n=200_000, seed=0):
    """Log-odds that are said, and pairs that are true by other ones."""
    rng = np.random.default_rng(seed)
    true_odds = rng.normal(-5.0, 2.5, n)
    return distort(true_odds), rng.random(n) < expit(true_odds), true_odds


@pytest.mark.parametrize("distort", [lambda z: 3.0 * z + 4.0, lambda z: 0.3 * z - 2.0, lambda z: z, np.arcsinh])
def test_probabilities_are_those_that_are_observed(distort):
    said, true, _ = drawn(distort)
    curve = CalibrationCurve.fit(said, true)
    fresh, fresh_true, _ = drawn(distort, seed=1)
    found = expit(curve(fresh))
    edges = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9]
    for low, high in pairwise(edges):
        some = (found >= low) & (found < high)
        assert some.sum() > 100
        assert fresh_true[some].mean() == pytest.approx(found[some].mean(), rel=0.2)


@given(st.lists(st.floats(-30.0, 30.0), min_size=200, max_size=400), st.integers(0, 9))
def test_no_order_changes_and_lines_are_those_of_the_curve(values, seed):
    log_odds = np.array(values)
    true = np.random.default_rng(seed).random(len(log_odds)) < 0.5
    curve = CalibrationCurve.fit(log_odds, true)
    rising = np.unique(log_odds)
    apart = np.diff(rising) > 1e-6
    assert (np.diff(curve(rising))[apart] > 0.0).all()
    slope, offset = curve.lines(rising)
    np.testing.assert_allclose(slope * rising + offset, curve(rising))
    again = CalibrationCurve(*curve.arrays()["curve"]) if curve.arrays() else CalibrationCurve()
    np.testing.assert_array_equal(again(rising), curve(rising))
    again.require_sound()


def test_entries_that_count_for_many_pairs_are_as_so_many_entries():
    said, true, _ = drawn(lambda z: 2.0 * z, n=20_000)
    low = said < np.quantile(said, 0.3)
    true &= ~low
    said[low] = said[low].max()
    counts = np.append(np.ones((~low).sum(), np.int64), low.sum())
    once = CalibrationCurve.fit(np.append(said[~low], said[low][0]), np.append(true[~low], False), counts)
    every = CalibrationCurve.fit(said, true)
    np.testing.assert_allclose(once.arrays()["curve"], every.arrays()["curve"])


def test_few_true_pairs_have_no_curve_and_no_label_gets_more_than_was_observed():
    said, true, _ = drawn(lambda z: z, n=100)
    assert not CalibrationCurve.fit(said, true & (np.cumsum(true) < 10)).arrays()
    said, true, _ = drawn(lambda z: z)
    curve = CalibrationCurve.fit(said, true)
    assert expit(curve(np.array([curve.said[-1]])))[0] < 0.98
    assert float(curve(curve.said[-1:] + 10.0)[0] - curve(curve.said[-1:])[0]) == pytest.approx(0.5)


@pytest.mark.parametrize("knots", [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]])
def test_knots_of_an_artefact_are_checked(knots):
    with pytest.raises((ValueError, ArrayFault), match="ascending"):
        CalibrationCurve(*np.array(knots)).require_sound()
