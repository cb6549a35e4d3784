"""Measures against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from solvers.metrics.accuracy import flat


def test_flat_measures_equal_scikit_learns():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 6, 200), rng.integers(1, 7, 200)
    measures = flat(true, predicted, 8)
    assert measures["error"] == pytest.approx(np.mean(true != predicted))
    assert measures["micro_f1"] == pytest.approx(f1_score(true, predicted, average="micro"))
    assert measures["macro_f1"] == pytest.approx(f1_score(true, predicted, average="macro"))


def test_labels_that_training_never_saw_count_as_errors():
    true, predicted = np.array([0, 1, -1, -1]), np.array([0, 1, 0, 1])
    assert flat(true, predicted, 2)["error"] == 0.5
    assert flat(true, predicted, 2)["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_nothing_cannot_be_measured():
    with pytest.raises(ValueError, match="no rows"):
        flat(np.empty(0, int), np.empty(0, int), 2)
