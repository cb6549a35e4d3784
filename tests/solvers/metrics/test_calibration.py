"""Measures of probabilities against scikit-learn's and loops."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from solvers.metrics import calibration


@pytest.fixture
def reported():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 300)
    return p, rng.integers(0, 4, 300)


def test_log_loss_is_scikit_learns(reported):
    p, y = reported
    assert calibration.log_loss(p[np.arange(300), y]) == pytest.approx(log_loss(y, p))
    assert calibration.log_loss(np.zeros(1)) == pytest.approx(-np.log(2**-52))


def test_the_brier_score_is_the_squared_distance_from_what_came_true(reported):
    p, y = reported
    mine = calibration.brier(p[np.arange(300), y], (p**2).sum(axis=1))
    assert mine == pytest.approx(((p - np.eye(4)[y]) ** 2).sum(axis=1).mean())
    two = p[:, :2] / p[:, :2].sum(axis=1, keepdims=True)
    of_two = calibration.brier(two[np.arange(300), y % 2], (two**2).sum(axis=1))
    assert of_two == pytest.approx(2 * brier_score_loss(y % 2, two[:, 1]))


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
        calibration.log_loss(np.array([1.5]))
    with pytest.raises(ValueError, match="at least one"):
        calibration.log_loss(np.empty(0))
    with pytest.raises(ValueError, match="one value of correct"):
        calibration.expected_calibration_error(np.array([0.5]), np.ones(2, bool))
