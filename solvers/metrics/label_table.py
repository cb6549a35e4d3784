"""How often each label is there, is named, and both: precision, recall and F1, and the labels that are confused."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array, Floats, Ints

AVERAGES = ("precision", "recall", "micro_f1", "macro_f1", "weighted_f1")
# the same averages over own labels and all those above them
HIERARCHICAL = {name: f"hierarchical_{name.removeprefix('micro_')}" for name in (*AVERAGES, "symmetric_difference")}


class LabelTable(NamedTuple):
    """Counts by label; where there is nothing to divide by, a share is 0.

    Attributes
    ----------
    common : int or float array, shape (n_labels,)
        Rows that have the label and for which it is named.
    true : int or float array, shape (n_labels,)
        Rows that have the label: its support.
    named : int or float array, shape (n_labels,)
        Rows for which it is named.
    """

    common: Array
    true: Array
    named: Array

    @property
    def precision(self) -> Floats:
        """The share of the rows for which a label is named that have it, shape (n_labels,)."""
        return ratios(self.common, self.named)

    @property
    def recall(self) -> Floats:
        """The share of the rows that have a label for which it is named, shape (n_labels,)."""
        return ratios(self.common, self.true)

    @property
    def f1(self) -> Floats:
        """The harmonic mean of both, shape (n_labels,)."""
        return ratios(2 * self.common, self.true + self.named)

    def at(self, labels: slice) -> "LabelTable":
        """The counts of some labels alone."""
        return LabelTable(self.common[labels], self.true[labels], self.named[labels])

    def averages(self) -> dict[str, float]:
        """``precision``, ``recall`` and ``micro_f1`` of all labels together; ``macro_f1`` and ``weighted_f1``.

        The macro average is over the labels that are there or are named, as scikit-learn has it by default; the
        weighted one is by support.
        """
        common, true, named = float(self.common.sum()), float(self.true.sum()), float(self.named.sum())
        f1, seen = self.f1, (self.true > 0) | (self.named > 0)
        return {
            "precision": ratio(common, named),
            "recall": ratio(common, true),
            "micro_f1": ratio(2 * common, true + named),
            "macro_f1": ratio(float(f1.sum()), int(seen.sum())),
            "weighted_f1": ratio(float(self.true @ f1), true),
        }


def hierarchical_names(tree: Taxonomy, of_closed: Mapping[str, float]) -> dict[str, float]:
    """Measures of closed sets under their names; none along a tree of one level, where they are those of own labels."""
    return {HIERARCHICAL[name]: value for name, value in of_closed.items()} if tree.depth > 1 else {}


def ratio(part: float, whole: float) -> float:
    """What part is of the whole, 0 of nothing."""
    return float(part / whole) if whole else 0.0


def ratios(part: Array, whole: Array) -> Floats:
    """As :func:`ratio`, for arrays of one shape."""
    found = np.zeros(np.shape(whole))
    np.divide(part, whole, out=found, where=whole != 0)
    return found


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


def confused_labels(y_true: NDArray[np.integer], y_pred: NDArray[np.integer], n_labels: int, most: int) -> Confusions:
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
    return _most_frequent(keys // n_labels, keys % n_labels, count, most)


def confused_sets(true: sp.csr_matrix, predicted: sp.csr_matrix, most: int) -> Confusions:
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
    return _most_frequent(pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data, most)


def _most_frequent(true: Ints, predicted: Ints, count: Ints, most: int) -> Confusions:
    order = np.lexsort((predicted, true, -count))[:most]
    return Confusions(true[order], predicted[order], count[order])
