"""Measures of one predicted label a row against the true one."""

import numpy as np
from numpy.typing import NDArray

from solvers.metrics.label_table import LabelTable, ratio
from solvers.numerics.array_types import Array, Ints


def flat(y_true: NDArray[np.integer], y_pred: NDArray[np.integer], n_classes: int) -> dict[str, float]:
    """Error rate and F1 of single-label predictions.

    Parameters
    ----------
    y_true, y_pred : int arrays, shape (n_samples,)
        Class indices; a true label that the model has no class for is -1 and always counts as an error.
    n_classes : int

    Returns
    -------
    dict
        ``error`` (share of wrong rows), ``micro_f1``, ``macro_f1`` over the classes that occur in either array, and
        ``weighted_f1``, by the classes' numbers of rows. All labels -1 count as one class there, of F1 zero.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if len(y_true) == 0:
        raise ValueError("no rows to measure; expected at least one")
    counts = table(y_true, y_pred, n_classes)
    f1, seen = counts.f1, (counts.true > 0) | (counts.named > 0)
    unknown = int((y_true < 0).sum())
    right = ratio(int(counts.common.sum()), len(y_true))
    return {
        "error": 1 - right,
        "micro_f1": right,
        "macro_f1": float(f1.sum() / (seen.sum() + (unknown > 0))),
        "weighted_f1": ratio(float(counts.true @ f1), len(y_true)),
    }


def table(y_true: NDArray[np.integer], y_pred: NDArray[np.integer], n_classes: int) -> LabelTable:
    """Counts by class.

    Parameters
    ----------
    y_true, y_pred : int arrays, shape (n_samples,)
        Class indices; rows whose true label is -1 are in no class's support.
    n_classes : int
    """

    def count(y: Array) -> Ints:
        return np.bincount(y, minlength=n_classes)

    return LabelTable(count(y_pred[y_true == y_pred]), count(y_true[y_true >= 0]), count(y_pred))


def top_k_accuracy(places: NDArray[np.integer], k: int) -> float:
    """The share of rows whose true label is among the k that are listed first.

    Parameters
    ----------
    places : int array, shape (n_samples,)
        The place of the true label in the list, from 1 on; 0 where it is never listed
        (:func:`solvers.metrics.ranking.places`).
    k : int
    """
    return float(((places > 0) & (places <= k)).mean())
