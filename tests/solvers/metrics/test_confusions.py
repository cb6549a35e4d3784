"""Confused pairs against scikit-learn's confusion matrix and loops over sets."""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import confusion_matrix

from solvers.metrics import label_table


def test_the_most_confused_pairs_are_the_largest_numbers_beside_the_diagonal():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 5, 400), rng.integers(0, 5, 400)
    matrix = confusion_matrix(true, predicted)
    np.fill_diagonal(matrix, 0)
    reported = label_table.confused_labels(true, predicted, 5, 6)
    assert matrix[reported.true, reported.predicted].tolist() == reported.n_rows.tolist()
    assert reported.n_rows.tolist() == sorted(matrix.ravel().tolist(), reverse=True)[:6]


def test_pairs_of_sets_are_a_label_missed_and_one_named_in_its_place():
    rng = np.random.default_rng(1)
    true, predicted = rng.random((50, 4)) < 0.4, rng.random((50, 4)) < 0.4
    due = np.zeros((4, 4), int)
    for t, p in zip(true, predicted, strict=True):
        due += np.outer(t & ~p, p & ~t)
    reported = label_table.confused_sets(sp.csr_matrix(true), sp.csr_matrix(predicted), 100)
    assert due[reported.true, reported.predicted].tolist() == reported.n_rows.tolist()
    assert reported.n_rows.sum() == due.sum()
    assert (np.diff(reported.n_rows) <= 0).all()


def test_nothing_is_confused_where_all_is_right():
    assert len(label_table.confused_labels(np.arange(3), np.arange(3), 3, 5).n_rows) == 0
    assert len(label_table.confused_sets(sp.eye(3, dtype=bool).tocsr(), sp.eye(3, dtype=bool).tocsr(), 5).n_rows) == 0
