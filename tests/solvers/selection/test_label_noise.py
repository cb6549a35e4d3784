"""Probably wrong labels: answers stored without dense scores, their order, and confident ones."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.metrics.ranking import Ranking
from solvers.selection.wrong_labels import (
    Answers,
    answers,
    confidently_wrong,
    joined,
    nearest,
    quality,
    suggested,
    temperature,
)


class _Model:
    """Answers each row with the logarithms of its own features."""

    classes = ("a", "b", "c")

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        return Ranking(np.log(X.toarray()), tells_probabilities=True)


P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9], [0.5, 0.3, 0.2]])
Y = np.array([0, 0, 2, 1])
MODEL: Any = _Model()


def _answers() -> Answers:
    X = sp.csr_matrix(P)
    assert temperature(MODEL, X, Y) == 1.0
    return answers(MODEL, X, Y, 1.0)


def test_answers_have_the_probability_of_the_own_label_and_how_many_are_above_it() -> None:
    found = _answers()
    assert np.exp(found.own) == pytest.approx([0.7, 0.1, 0.9, 0.3])
    assert found.above.tolist() == [0, 1, 0, 1]
    assert found.labels[:, 0].tolist() == [0, 1, 2, 0]


def test_the_most_suspect_label_is_the_improbable_one_whose_rival_is_sure() -> None:
    found = _answers()
    assert np.argsort(quality(found)).tolist() == [1, 3, 0, 2]
    label, probability = suggested(found, Y)
    assert label.tolist()[1::2] == [1, 0]
    assert probability == pytest.approx([0.2, 0.8, 0.05, 0.5])


def test_a_row_is_confidently_wrong_where_another_label_reaches_its_threshold() -> None:
    # thresholds: a 0.4, b 0.3, c 0.9
    assert confidently_wrong(_answers(), Y, 3).tolist() == [False, True, False, True]


def test_answers_of_folds_are_joined_by_the_places_of_their_rows() -> None:
    whole = _answers()
    parts = [(np.array(rows), Answers(*(each[rows] for each in whole))) for rows in ([0, 2], [3])]
    found = joined(4, parts)
    assert quality(found)[[0, 2, 3]] == pytest.approx(quality(whole)[[0, 2, 3]])
    assert quality(found)[1] == 0.0


def test_nearest_rows_are_those_of_the_largest_cosine() -> None:
    X = sp.csr_matrix(np.array([[1.0, 0, 0], [5.0, 5.0, 0], [0, 0, 2.0]]))
    places, likeness = nearest(X, sp.csr_matrix(np.array([[3.0, 0, 0]])), 2)
    assert places.tolist() == [[0, 1]]
    assert likeness == pytest.approx(np.array([[1.0, 0.5**0.5]]))
