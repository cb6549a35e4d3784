"""Measures of predictions against true labels."""

import numpy as np
from numpy.typing import NDArray


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
        ``error`` (share of wrong rows), ``micro_f1``, and ``macro_f1`` over the classes that occur in either array.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if len(y_true) == 0:
        raise ValueError("no rows to measure; at least one was expected")
    hit = y_true == y_pred
    known = y_true >= 0
    true = np.bincount(y_true[known], minlength=n_classes)
    predicted = np.bincount(y_pred, minlength=n_classes)
    correct = np.bincount(y_pred[hit], minlength=n_classes)
    seen = (true + predicted) > 0
    f1 = 2 * correct[seen] / (true + predicted)[seen]
    unknown = len(y_true) - int(known.sum())
    return {
        "error": float(1 - hit.mean()),
        "micro_f1": float(hit.mean()),
        "macro_f1": float(f1.sum() / (len(f1) + (unknown > 0))),
    }
