"""How well predicted probabilities agree with the outcomes."""

from typing import NamedTuple

import numpy as np

from solvers.numerics.array_types import Bools, Floats, Ints

BINS = 15


class ReliabilityCurve(NamedTuple):
    """Predicted probability and share of correct answers, by bins of the confidence.

    Attributes
    ----------
    edges : float64 array, shape (bins + 1,)
        Bin b holds confidences above ``edges[b]``, up to ``edges[b + 1]``; the first also 0.
    n_rows : int64 array, shape (bins,)
        Rows of the bin.
    confidence, accuracy : float64 arrays, shape (bins,)
        The mean confidence of the rows, and the share of them that is right; nan in an empty bin.
    """

    edges: Floats
    n_rows: Ints
    confidence: Floats
    accuracy: Floats


def log_losses(probabilities_of_true: Floats) -> Floats:
    """``-log p`` of each row, p the predicted probability of the true label; natural logarithm.

    Parameters
    ----------
    probabilities_of_true : float64 array, shape (n_samples,)
        0 of a label that was given none; smaller ones than the machine's precision 2.2e-16 are taken to be that.

    Returns
    -------
    float64 array, shape (n_samples,)
    """
    return np.asarray(-np.log(np.maximum(probabilities_of_true, np.finfo(np.float64).eps)))


def expected_calibration_error(confidence: Floats, correct: Bools, bins: int = BINS) -> tuple[float, ReliabilityCurve]:
    """The mean over rows of ``|accuracy - confidence|`` of the row's bin; Guo et al. 2017, equation 3.

    Parameters
    ----------
    confidence : float64 array, shape (n_samples,)
        The probability of the predicted label: the largest.
    correct : bool array, shape (n_samples,)
        Whether that label is the true one.
    bins : int
        Number of bins of equal width from 0 to 1. The value depends on it: say it along.

    Returns
    -------
    ece : float
    curve : ReliabilityCurve

    Raises
    ------
    ValueError
        There are no rows or no bins, or values are no probabilities.
    """
    p, right = _checked(confidence), np.asarray(correct, bool)
    if bins < 1 or right.shape != p.shape:
        raise ValueError(
            f"confidences have the shape {p.shape}, correct has {right.shape}, bins is {bins}; expected one "
            "value of correct for each confidence, and at least one bin"
        )
    bin_of = np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):
        reported = np.bincount(bin_of, p, minlength=bins) / count
        true = np.bincount(bin_of, right, minlength=bins) / count
    held = count > 0
    ece = float(np.abs(reported - true)[held] @ count[held] / len(p))
    return ece, ReliabilityCurve(np.arange(bins + 1) / bins, count, reported, true)


def _checked(p: Floats) -> Floats:
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"probabilities have the shape {values.shape}; expected (n_samples,) with at least one")
    if not ((values >= 0) & (values <= 1 + 1e-9)).all():
        raise ValueError("values are not between 0 and 1")
    return values
