"""Calibrations of sets of labels: common to rare labels, and chosen and measured on rows they are not fitted to."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.pairs import Pairs
from solvers.selection.sets import set_calibration
from solvers.selection.sets.frequency_calibration import FrequencyCalibration, Trained
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.set_calibration import KINDS, fit_sets, ndcg
from solvers.selection.sets.set_curve import Curve


def drawn(n_rows, counts, seed):
    """Scores that say the less the fewer rows a label was trained on, and labels."""
    rng = np.random.default_rng(seed)
    size = np.log(np.maximum(counts, 1))
    scores = rng.standard_normal((n_rows, len(counts))) - 1.0
    true = rng.random(scores.shape) < expit((1.0 + 0.5 * size) * scores + size - 4.5)
    return scores.astype(np.float32), sp.csr_matrix(true)


def test_a_label_whose_only_rows_are_held_out_does_not_take_the_first_place():
    counts = np.repeat([0, 1, 40], [100, 100, 10])
    scores, labels = drawn(400, counts, 0)
    # the model of the fold knows nothing of the first labels: their scores hardly differ, and each has one row held out
    scores[:, :100] = -1.0 + 1e-5 * np.random.default_rng(1).standard_normal((400, 100))
    dense = labels.toarray()
    dense[:, :100] = False
    dense[np.arange(100), np.arange(100)] = True
    scores[np.arange(100), np.arange(100)] += 1e-4
    labels, flat = sp.csr_matrix(dense), Taxonomy.flat(list(map(str, range(210)))).parents
    whole = counts + dense.sum(axis=0)
    fitted = fit_sets(scores, labels, Trained(np.zeros(400, int), counts[None], whole), flat)
    # a model of all rows scores them as it scores others with one row
    later, truth = drawn(400, whole, 2)
    log_odds, alone = fitted.calibration.of_nodes(later), NodeCalibration.fit(scores, labels).of_nodes(later)
    assert ndcg(log_odds, truth) > ndcg(alone, truth) + 0.1
    assert ndcg(log_odds, truth) >= ndcg(later.astype(float), truth)
    assert expit(log_odds).mean() == pytest.approx(truth.toarray().mean(), rel=0.5)


def test_measures_are_those_of_rows_that_the_calibration_is_not_fitted_to():
    counts = np.full(300, 2)
    scores, _ = drawn(200, counts, 0)
    # labels that scores say nothing of
    labels = sp.csr_matrix(np.random.default_rng(1).random(scores.shape) < 0.01)
    trained = Trained(np.zeros(200, int), counts[None], counts)
    fitted = fit_sets(scores, labels, trained, Taxonomy.flat(list(map(str, range(300)))).parents)
    chance = ndcg(np.random.default_rng(2).standard_normal(scores.shape), labels)
    assert fitted.ndcg < chance + 0.02
    assert ndcg(NodeCalibration.fit(scores, labels).of_nodes(scores), labels) > chance + 0.05


def test_the_common_sigmoid_finds_how_it_was_drawn_and_may_keep_the_order_of_scores():
    counts = np.repeat([1, 3, 10, 40], 40)
    scores, labels = drawn(1500, counts, 0)
    trained = Trained(np.zeros(1500, int), counts[None], counts)
    slope, offset = FrequencyCalibration.fit(scores, labels, trained, frequency=True).lines(counts)
    size = np.log(counts)
    np.testing.assert_allclose(slope, 1.0 + 0.5 * size, atol=0.2)
    np.testing.assert_allclose(offset, size - 4.5, atol=0.3)
    slope, offset = FrequencyCalibration.fit(scores, labels, trained, frequency=False).lines(counts)
    assert len(set(slope.tolist())) == len(set(offset.tolist())) == 1


def test_own_labels_are_those_with_none_below_them_in_the_row():
    parents = Taxonomy(tuple("abcde"), np.array([-1, -1, 0, 0, 2], np.int32)).parents
    closed = sp.csr_matrix(np.array([[1, 1, 1, 0, 1], [1, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool))
    assert own_labels(closed, parents).toarray().astype(int).tolist() == [
        [0, 1, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0],
    ]
    assert ndcg(np.array([[5.0, 4.0, 3.0, 2.0, 1.0]] * 4), own_labels(closed, parents)) < 1.0
    ranked = np.array([False, True, False, False, True])
    assert ndcg(np.array([[5.0, 4.0, 3.0, 2.0, 1.0]]), own_labels(closed[:1], parents), ranked) == 1.0


def test_along_a_tree_the_average_precision_chooses_and_not_the_order_of_own_labels(monkeypatch):
    counts = np.r_[np.full(2, 60), np.repeat([1, 3, 10], 8)]
    scores, drawn_labels = drawn(200, counts, 0)
    parent = np.r_[-1, -1, np.arange(24) % 2].astype(np.int32)
    parents = Taxonomy(tuple(map(str, range(26))), parent).parents
    closed = drawn_labels.toarray()
    for node in range(25, 1, -1):
        closed[:, parent[node]] |= closed[:, node]
    closed, trained = sp.csr_matrix(closed), Trained(np.zeros(200, int), counts[None], counts)
    # the order of raw scores, which comes first, is made to rank own labels best
    ranks = itertools.cycle([1.0, 0.5, 0.5])
    monkeypatch.setattr(set_calibration, "ndcg", lambda *_: next(ranks))
    fitted = fit_sets(scores, closed, trained, parents)
    assert fitted.ndcg == 1.0  # measured once, after the choice
    chosen = Curve.from_pairs(Pairs.from_log_odds(fitted.log_odds, closed)).average_precision
    monkeypatch.setattr(set_calibration, "KINDS", KINDS[:1])
    raw = Curve.from_pairs(
        Pairs.from_log_odds(fit_sets(scores, closed, trained, parents).log_odds, closed)
    ).average_precision
    assert chosen > raw * 1.05
