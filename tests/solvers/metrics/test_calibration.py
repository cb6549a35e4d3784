"""Measures of probabilities against scikit-learn's and loops."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from solvers.metrics import calibration


@pytest.fixture
def reported():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 300)
    return p, rng.integers(0, 4, 300)


def test_log_loss_is_scikit_learns(reported):
    p, y = reported
    assert calibration.log_losses(p[np.arange(300), y]).mean() == pytest.approx(log_loss(y, p))
    assert calibration.log_losses(np.zeros(1)) == pytest.approx(-np.log(2**-52))


def test_the_curve_is_scikit_learns_and_the_error_its_mean_distance(reported):
    p, y = reported
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    ece, curve = calibration.expected_calibration_error(confidence, correct)
    true, mean = calibration_curve(correct, confidence, n_bins=15)
    held = curve.n_rows > 0
    assert curve.accuracy[held] == pytest.approx(true)
    assert curve.confidence[held] == pytest.approx(mean)
    assert np.isnan(curve.accuracy[~held]).all()
    due = 0.0
    for low, high in zip(curve.edges, curve.edges[1:], strict=False):
        there = (confidence > low) & (confidence <= high)
        if there.any():
            due += there.mean() * abs(correct[there].mean() - confidence[there].mean())
    assert ece == pytest.approx(due)


def test_ends_of_the_bins_belong_to_them():
    _, curve = calibration.expected_calibration_error(np.array([0.0, 0.5, 0.51, 1.0]), np.ones(4, bool), 2)
    assert curve.n_rows.tolist() == [2, 2]


def test_what_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration.expected_calibration_error(np.array([1.5]), np.ones(1, bool))
    with pytest.raises(ValueError, match="at least one"):
        calibration.expected_calibration_error(np.empty(0), np.ones(0, bool))
    with pytest.raises(ValueError, match="one value of correct"):
        calibration.expected_calibration_error(np.array([0.5]), np.ones(2, bool))
