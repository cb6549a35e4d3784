"""Measures of ranked lists against scikit-learn's and their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, label_ranking_average_precision_score, ndcg_score

from solvers.metrics.ranking import RankAccumulator, first, places, propensities

seeds = st.integers(0, 2**32 - 1)


def listed(scores, ties):
    """Classes in the order in which they are listed, those that never are left out."""
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], -ties[c], c))
    return [c for c in order if scores[c] > -np.inf]


def case(seed):
    """Coarse scores, so that many are equal, some classes that are never listed, and sets with unknown labels."""
    rng = np.random.default_rng(seed)
    n, k, unknown = rng.integers(1, 9), rng.integers(2, 8), 2
    scores, ties = rng.integers(0, 4, (n, k)).astype(float), rng.integers(0, 3, (n, k)).astype(float)
    scores[:, rng.random(k) < 0.2] = -np.inf
    return scores, ties, rng.random((n, k + unknown)) < 0.4


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_places_are_those_in_the_sorted_list(seed):
    scores, ties, true = case(seed)
    labels = sp.csr_matrix(true)
    reported = places(scores, labels.indptr, labels.indices, ties)
    due = []
    for i in range(len(scores)):
        order = listed(scores[i], ties[i])
        due += [order.index(c) + 1 if c in order else 0 for c in np.flatnonzero(true[i])]
    assert reported.tolist() == due
    for i, best in enumerate(first(scores, ties)):
        order = listed(scores[i], ties[i])
        assert not order or best == order[0]


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_measures_of_blocks_are_their_definitions_over_all_rows(seed):
    scores, ties, true = case(seed)
    rng = np.random.default_rng(seed)
    inverse = 1 + rng.random(scores.shape[1] + 1)
    whole = RankAccumulator(inverse)
    for begin in range(0, len(scores), 3):
        rows = slice(begin, begin + 3)
        whole.add(scores[rows], sp.csr_matrix(true[rows]), ties[rows])
    reported, due = whole.measures((1, 3)), {}
    for k in (1, 3):
        each, gained, most = [], 0.0, 0.0
        for i in np.flatnonzero(true.any(axis=1)):
            order, real = listed(scores[i], ties[i]), set(np.flatnonzero(true[i]).tolist())
            hits = [c in real for c in order[:k]]
            dcg = sum(hit / np.log2(place + 1) for place, hit in enumerate(hits, 1))
            ideal = sum(1 / np.log2(place + 1) for place in range(1, min(k, len(real)) + 1))
            f1 = 2 * sum(hits) / (k + len(real))
            each.append((sum(hits) / k, sum(hits) / len(real), any(hits), dcg / ideal, f1))
            gains = {c: inverse[min(c, len(inverse) - 1)] for c in real}
            gained += sum(gains[c] for c in order[:k] if c in real)
            most += sum(sorted(gains.values())[-k:])
        names = ("precision", "recall", "accuracy", "ndcg", "f1")
        due |= dict(zip((f"{name}@{k}" for name in names), np.mean(each or [(0,) * 5], axis=0), strict=True))
        due[f"psp@{k}"] = gained / most if most else 0.0
    reciprocal = []
    for i in np.flatnonzero(true.any(axis=1)):
        found = [place for place, c in enumerate(listed(scores[i], ties[i]), 1) if true[i, c]]
        reciprocal.append(1 / found[0] if found else 0.0)
    due["mrr"] = np.mean(reciprocal or [0.0])
    assert reported == pytest.approx(due, rel=1e-5)


def test_ndcg_is_scikit_learns():
    rng = np.random.default_rng(3)
    scores, true = rng.normal(size=(40, 9)), rng.random((40, 9)) < 0.3
    true[:, 0] |= ~true.any(axis=1)
    whole = RankAccumulator()
    whole.add(scores, sp.csr_matrix(true))
    reported = whole.measures((1, 5))
    for k in (1, 5):
        assert reported[f"ndcg@{k}"] == pytest.approx(ndcg_score(true, scores, k=k))


def test_f1_at_5_is_the_f1_of_samples_when_five_labels_are_given():
    rng = np.random.default_rng(3)
    scores, true = rng.normal(size=(40, 9)), rng.random((40, 9)) < 0.3
    true[:, 0] |= ~true.any(axis=1)
    given = np.zeros_like(true)
    np.put_along_axis(given, np.argsort(-scores, axis=1)[:, :5], True, axis=1)
    whole = RankAccumulator()
    whole.add(scores, sp.csr_matrix(true))
    assert whole.measures()["f1@5"] == pytest.approx(f1_score(true, given, average="samples"))


def test_mrr_of_one_label_a_row_is_scikit_learns_average_precision():
    rng = np.random.default_rng(4)
    scores, true = rng.normal(size=(40, 9)), rng.integers(0, 9, 40)
    whole = RankAccumulator()
    whole.add(scores, true)
    reported = whole.measures()
    assert reported["mrr"] == pytest.approx(label_ranking_average_precision_score(np.eye(9)[true], scores))
    assert reported["accuracy@1"] == pytest.approx(np.mean(scores.argmax(axis=1) == true))
    assert reported["precision@5"] == pytest.approx(reported["accuracy@5"] / 5)


def test_propensities_are_those_of_the_paper():
    reported = propensities(np.array([0, 1, 10, 1000]), 5000, 0.55, 1.5)
    c = (np.log(5000) - 1) * 2.5**0.55
    assert reported == pytest.approx([1 / (1 + c * (n + 1.5) ** -0.55) for n in (0, 1, 10, 1000)])
    assert propensities(np.array([1]), 2).tolist() == [1.0]


def test_nothing_cannot_be_measured():
    with pytest.raises(ValueError, match="no rows"):
        RankAccumulator().measures()
