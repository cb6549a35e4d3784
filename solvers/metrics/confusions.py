"""The pairs of labels that are confused most often."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.numerics.array_types import Ints


class Confusions(NamedTuple):
    """Pairs of labels by falling count, equal ones by the true and then the predicted label.

    Attributes
    ----------
    true, predicted : int64 arrays, shape (n_pairs,)
    n_rows : int64 array, shape (n_pairs,)
        Rows that have the first label, and for which the second is named in its place.
    """

    true: Ints
    predicted: Ints
    n_rows: Ints


def of_labels(y_true: NDArray[np.integer], y_pred: NDArray[np.integer], n_labels: int, most: int) -> Confusions:
    """The most frequent wrong pairs.

    Parameters
    ----------
    y_true, y_pred : int arrays, shape (n_samples,)
        In [0, n_labels).
    n_labels : int
    most : int
        How many pairs to return.
    """
    wrong = y_true != y_pred
    keys, count = np.unique(y_true[wrong].astype(np.int64) * n_labels + y_pred[wrong], return_counts=True)
    return _first(keys // n_labels, keys % n_labels, count, most)


def of_sets(true: sp.csr_matrix, predicted: sp.csr_matrix, most: int) -> Confusions:
    """The most frequent pairs of a label that a row has and is not given, and one that it is given and has not.

    Parameters
    ----------
    true, predicted : csr_matrix of bool, shape (n_samples, n_labels)
    most : int
        How many pairs to return.
    """
    t, p = (sp.csr_matrix(sets, dtype=np.int64) for sets in (true, predicted))
    both = t.multiply(p)
    missed, added = sp.csr_matrix(t - both), sp.csr_matrix(p - both)
    missed.eliminate_zeros()
    added.eliminate_zeros()
    pairs = sp.coo_matrix(missed.T @ added)
    return _first(pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data, most)


def _first(true: Ints, predicted: Ints, count: Ints, most: int) -> Confusions:
    order = np.lexsort((predicted, true, -count))[:most]
    return Confusions(true[order], predicted[order], count[order])
