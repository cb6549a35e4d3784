"""Measures of one label a row against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support, top_k_accuracy_score

from solvers.metrics.flat import flat, table, top_k_accuracy
from solvers.metrics.ranking import places


def test_flat_measures_equal_scikit_learns():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 6, 200), rng.integers(1, 7, 200)
    measures = flat(true, predicted, 8)
    assert measures["error"] == pytest.approx(np.mean(true != predicted))
    for average in ("micro", "macro", "weighted"):
        assert measures[f"{average}_f1"] == pytest.approx(f1_score(true, predicted, average=average, zero_division=0))


def test_the_table_of_classes_equals_scikit_learns():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 6, 100), rng.integers(1, 7, 100)
    reported = table(true, predicted, 8)
    due = precision_recall_fscore_support(true, predicted, labels=range(8), zero_division=0)
    for mine, theirs in zip((reported.precision, reported.recall, reported.f1, reported.true), due, strict=True):
        assert mine == pytest.approx(theirs)


def test_labels_that_training_never_saw_count_as_errors():
    true, predicted = np.array([0, 1, -1, -1]), np.array([0, 1, 0, 1])
    reported = flat(true, predicted, 2)
    assert reported["error"] == 0.5
    assert reported["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert reported["weighted_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0 + 0) / 4)


def test_top_k_accuracy_equals_scikit_learns():
    rng = np.random.default_rng(2)
    scores, true = rng.normal(size=(60, 7)), np.r_[np.arange(7), rng.integers(0, 7, 53)]
    found = places(scores, np.arange(61), true)
    for k in (1, 2, 5):
        assert top_k_accuracy(found, k) == pytest.approx(top_k_accuracy_score(true, scores, k=k))
    assert top_k_accuracy(np.array([0, 3]), 5) == 0.5


def test_nothing_cannot_be_measured():
    with pytest.raises(ValueError, match="no rows"):
        flat(np.empty(0, int), np.empty(0, int), 2)
