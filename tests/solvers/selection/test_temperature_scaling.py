"""A temperature for each row: that of a general minimiser, where it is worth it, and what it leaves as it is."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from solvers.labels.stored_arrays import ArrayFault
from solvers.selection.temperature_scaling import TemperatureScaling


def drawn(scale, power, n=4000, k=5, seed=0):
    """Scores, and labels drawn by the probabilities that a tempering makes of them."""
    rng = np.random.default_rng(seed)
    scores = (rng.standard_normal((n, k)) * rng.uniform(0.5, 6.0, (n, 1))).astype(np.float32)
    p = softmax(TemperatureScaling(scale, power).apply(scores).astype(float), axis=1)
    return scores, (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).astype(np.int32)


def loss(values, scores, y):
    said = log_softmax(scores.astype(float), axis=1)
    entropy = -(np.exp(said) * said).sum(axis=1)
    factors = np.exp(values[0]) * np.maximum(entropy, 1e-6) ** values[1]
    return -log_softmax(factors[:, None] * scores, axis=1)[np.arange(len(y)), y].mean()


def test_rows_that_are_too_sure_and_not_sure_enough_get_the_temperatures_they_were_drawn_by():
    scores, y = drawn(0.3, 0.25)
    found = TemperatureScaling.fit(scores, y)
    best = minimize(loss, [0.0, 0.1], (scores, y), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    assert found.power == pytest.approx(best.x[1], abs=5e-3)
    assert found.power == pytest.approx(0.25, abs=0.03)
    # less sure than the best, by no more than 0.2 % of its loss
    assert found.scale < best.x[0]
    assert 1.001 * best.fun < loss(found, scores, y) < 1.003 * best.fun


def test_scores_that_are_right_as_they_are_need_no_temperature():
    assert TemperatureScaling.fit(*drawn(0.0, 0.0)) is None
    # rows that are not sure enough are never made surer than those that are
    assert TemperatureScaling.fit(*drawn(0.0, -0.3)) is None or TemperatureScaling.fit(*drawn(0.0, -0.3)).power == 0.0


def test_few_rows_do_not_tell_temperatures_apart():
    scores, y = drawn(0.1, 0.05, n=40)
    assert TemperatureScaling.fit(scores, y) is None


def test_ranks_stay_and_impossible_labels_stay_impossible():
    scores, _ = drawn(0.0, 0.0, n=50)
    scores[:, 2] = -np.inf
    scores[7] = [900.0, -900.0, -np.inf, 0.0, 1.0]
    tempered = TemperatureScaling(0.3, 0.25).apply(scores)
    assert (np.argsort(tempered, axis=1) == np.argsort(scores, axis=1)).all()
    assert not np.isnan(tempered).any()
    assert np.isneginf(tempered[:, 2]).all()


def test_arrays_are_read_back_and_checked():
    tempering = TemperatureScaling(0.3, 0.25)
    assert TemperatureScaling.from_arrays(tempering.arrays()) == tempering
    for values in (np.zeros(3), np.zeros(2, int)):
        with pytest.raises(ArrayFault, match="tempering"):
            TemperatureScaling.from_arrays({"values": values})
