"""From a ranker's scores to probabilities of concepts, and from these to sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from solvers.subjects.ranker import Lists, logistic_steps

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STRENGTH, _MOST_STEPS, _TOL = 1e-6, 30, 1e-8
_KAPPAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
_MOST_IN_SET, _MOST_SUMMED = 50, 100


class Calibration(NamedTuple):
    """Log-odds ``slope s + offset`` of a score s, apart for concepts that training rows have and for others.

    Attributes
    ----------
    slope, offset : float64 array, shape (2,)
        Of concepts that no training row has, and of those that one has.
    floor : float64 array, shape (2,)
        Log-odds of concepts that are no candidates.
    kappa : float
        What is added to the expected number of labels where sets are chosen.
    nothing : float
        What the probability that a row has none of its candidates is multiplied by, for that of no label at all. 1 in
        models of before.
    """

    slope: Floats
    offset: Floats
    floor: Floats
    kappa: float
    nothing: float = 1.0

    def log_odds(self, scores: Floats, seen: NDArray[np.int64]) -> Floats:
        """Of candidates; ``seen`` is 0 or 1."""
        return self.slope[seen] * scores + self.offset[seen]

    @classmethod
    def fit(
        cls,
        scores: Floats,
        seen: NDArray[np.int64],
        true: Bools,
        begin: NDArray[np.int64],
        floor: Floats,
        empty: float,
    ) -> Calibration:
        """Fit log-odds by the logistic loss and kappa by the mean F1 of the sets of rows.

        Parameters
        ----------
        scores : float64 array, shape (n_pairs,)
            Of candidates of training rows, row after row, by a ranker that has their features from other folds.
        seen : int64 array, shape (n_pairs,)
        true : bool array, shape (n_pairs,)
        begin : int64 array, shape (n_rows + 1,)
        floor : float64 array, shape (2,)
        empty : float
            Share of the training rows that have no label.
        """
        flags = np.stack([1 - seen, seen], axis=1).astype(np.float32)
        phi = np.concatenate([flags * scores[:, None], flags], axis=1).astype(np.float32)
        w = np.zeros(4)
        for number, iterate in enumerate(logistic_steps(Lists(phi, begin, true), _STRENGTH)):
            w = iterate.w
            if iterate.gap <= _TOL or number >= _MOST_STEPS:
                break
        fitted = cls(np.maximum(w[:2], 1e-3), w[2:], floor, 0.0)
        probabilities = expit(fitted.log_odds(scores, seen))
        none = [
            _none(-np.sort(-probabilities[i:j])) for i, j in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True)
        ]
        nothing = min(1.0, empty / max(float(np.mean(none)), empty)) if empty else 0.0
        means = [_mean_f1(probabilities, true, begin, kappa, nothing) for kappa in _KAPPAS]
        return fitted._replace(kappa=_KAPPAS[int(np.argmax(means))], nothing=nothing)


def set_size(probabilities: Floats, kappa: float, nothing: float) -> int:
    """How many of the most probable labels have the largest expected F1.

    It is ``2 sum_{i<=k} p_i / (k + sum_i p_i + kappa)``, in the mean-field approximation of Ye et al. 2012; the sum in
    the denominator goes over the 100 most probable.

    Parameters
    ----------
    probabilities : float64 array, shape (n,)
        Falling.
    kappa, nothing : float
        Of :class:`Calibration`.
    """
    some = probabilities[:_MOST_IN_SET]
    if not len(some):
        return 0
    sizes = np.arange(1, len(some) + 1)
    gains = 2.0 * np.cumsum(some) / (sizes + probabilities[:_MOST_SUMMED].sum() + kappa)
    # to say nothing is right where there is nothing to say
    best = int(gains.argmax())
    return best + 1 if gains[best] > nothing * _none(probabilities) else 0


def _none(probabilities: Floats) -> float:
    """The probability that none of labels is right, were they independent; probabilities fall."""
    return float(np.prod(1.0 - probabilities[:_MOST_SUMMED]))


def _mean_f1(probabilities: Floats, true: Bools, begin: NDArray[np.int64], kappa: float, nothing: float) -> float:
    total = 0.0
    for i, j in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        order = np.argsort(-probabilities[i:j], kind="stable")
        size = set_size(probabilities[i:j][order], kappa, nothing)
        n_true = int(true[i:j].sum())
        right = int(true[i:j][order[:size]].sum())
        total += 2.0 * right / (size + n_true) if size + n_true else 1.0
    return total / max(1, len(begin) - 1)
