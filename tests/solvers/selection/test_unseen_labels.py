"""Rows of labels to come: how many, how sure, and promises that hold where a quarter of the labels have one row."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.metrics.confidence.reliability import threshold_for
from solvers.registry import make
from solvers.selection.unseen_labels import sure_factor, with_unseen


def logarithms(probabilities):
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities, np.float32))


def test_rows_of_the_rarest_labels_are_added_without_their_own_label():
    said = logarithms([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.5, 0.4, 0.1], [0.7, 0.2, 0.1]])
    y, counts = np.array([0, 2, 1, 0], np.int32), np.array([20, 5, 2, 1, 1, 1])
    found, labels = with_unseen(said, y, counts)
    # 3 of 30 rows have a label of their own: 3 in 27 of the rows held out, rounded
    np.testing.assert_array_equal(found, said)
    counts[3:], counts[0] = 1, 4
    found, labels = with_unseen(said, y, counts)
    assert len(found) == 5
    np.testing.assert_array_equal(labels, [0, 2, 1, 0, 2])
    np.testing.assert_allclose(np.exp(found[4]), [0.5, 0.5, 0.0], atol=1e-6)


def test_nothing_is_added_where_all_labels_have_rows_enough():
    said, y = logarithms([[0.6, 0.4]] * 5), np.zeros(5, np.int32)
    found, labels = with_unseen(said, y, np.array([5, 5]))
    assert found is said
    assert labels is y


def test_the_factor_makes_answers_as_sure_as_they_are_right():
    rng = np.random.default_rng(0)
    said = rng.normal(scale=6.0, size=(4000, 5))
    said = (said - np.log(np.exp(said).sum(axis=1, keepdims=True))).astype(np.float32)
    true = np.exp(0.5 * said) / np.exp(0.5 * said).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).astype(np.int32)
    assert sure_factor(said, y) == pytest.approx(0.5, abs=0.05)
    careful = (0.2 * said - np.log(np.exp(0.2 * said).sum(axis=1, keepdims=True))).astype(np.float32)
    assert sure_factor(careful, y) == 1.0


def drawn(rng, centres, share, n):
    """Rows around centres, which are drawn by Zipf's law."""
    y = rng.choice(len(centres), size=n, p=share)
    return sp.csr_matrix(np.maximum(centres[y] + rng.normal(scale=1.1, size=(n, centres.shape[1])), 0.0)), y


@pytest.mark.parametrize("precision", [0.7, 0.8])
def test_a_promised_precision_holds_where_later_rows_have_unknown_labels(precision):
    k, missed, unknown, made = 400, 0, [], 0
    share = 1.0 / np.arange(1, k + 1)
    share /= share.sum()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(k, 40)) * 1.5
        (X, y), (X_new, y_new) = drawn(rng, centres, share, 500), drawn(rng, centres, share, 4000)
        known, numbers = np.unique(y, return_inverse=True)
        problem = Problem.check(X, numbers.astype(np.int32))
        solver = make("auto", {"candidates": [{"solver": "crammer_singer", "params": {"bias": 1.0}}]}, seed=seed)
        *_, last = solver.steps(problem)
        model = solver.model(problem, last.state)
        said = np.exp(model.scores(X_new))
        unknown.append(np.mean(~np.isin(y_new, known)))
        found = threshold_for(model.reliability.curve, precision)
        if found is None:
            continue
        sure = said.max(axis=1) >= found.threshold
        made += 1
        missed += (known[said.argmax(axis=1)] == y_new)[sure].mean() < precision
    assert 0.05 < np.mean(unknown) < 0.4
    assert made >= 4
    assert missed <= 1
