"""Bounds on the precision of thresholds, of which one is chosen by its bound."""

import numpy as np
import pytest
from scipy.stats import binomtest

from solvers.metrics.confidence.reliability import Reliability, lower_bounds, threshold_for


@pytest.mark.parametrize(("flat", "rise", "precision"), [(0.9, 0.06, 0.95), (0.945, 0.0, 0.95), (0.69, 0.0, 0.7)])
def test_at_most_one_model_in_twenty_gets_a_threshold_that_misses_the_precision(flat, rise, precision):
    rng = np.random.default_rng(0)
    missed, n_models = 0, 400
    for _ in range(n_models):
        confidence = rng.random(200)
        correct = rng.random(200) < flat + rise * confidence
        found = threshold_for(Reliability(confidence.astype(np.float32), correct).curve, precision)
        if found is not None:
            # the mean over confidences from the threshold on
            missed += flat + rise * (found.threshold + 1.0) / 2.0 < precision
    # 5 % and two deviations of the count; bounds for one threshold alone miss in 6 to 17 %
    assert missed <= 0.05 * n_models + 2.0 * np.sqrt(0.05 * 0.95 * n_models)


def test_bounds_of_rare_errors_are_nearly_those_of_one_threshold():
    counts = np.arange(1, 101)
    alone = [binomtest(n, n, alternative="greater").proportion_ci(0.95).low for n in counts.tolist()]
    bounds = lower_bounds(counts, counts)
    assert (bounds <= np.array(alone) + 1e-12).all()
    assert bounds[-1] > 0.95
    assert lower_bounds(np.zeros(3, int), counts[:3]).tolist() == [0.0, 0.0, 0.0]
    assert len(lower_bounds(counts[:0], counts[:0])) == 0
