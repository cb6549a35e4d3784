"""Measures of log-odds over all pairs of rows and labels: micro F1, average precision and log loss."""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.metrics.confidence.pairs import Pairs
from solvers.numerics.array_types import Floats, Ints


class Curve(NamedTuple):
    """All pairs of rows and labels by falling log-odds: the best micro F1, where it is, and the average precision.

    The average precision is the sum of precision times the growth of recall, equal log-odds taken at once.
    """

    micro_f1: float
    threshold: float
    average_precision: float

    @classmethod
    def from_pairs(cls, pairs: Pairs) -> "Curve":
        """The curve; a pair counts as predicted where its log-odds are above the threshold."""
        if not pairs.true.any():
            falling = np.unique(pairs.log_odds)[:-3:-1]
            return cls(0.0, float((falling[0] + (falling[1] if len(falling) > 1 else falling[0] - 1.0)) / 2.0), 0.0)
        # false pairs between two true ones change nothing but counts, so that all values are sorted, and no pairs
        values, own = np.unique(pairs.log_odds[pairs.true], return_counts=True)
        if (pairs.counts == 1).all():
            every = np.sort(pairs.log_odds)
            n_below = np.searchsorted(every, values)
        else:
            order = np.argsort(pairs.log_odds)
            every = pairs.log_odds[order]
            n_below = np.cumsum(np.append(0, pairs.counts[order]))[np.searchsorted(every, values)]
        reported = (pairs.counts.sum() - n_below).astype(np.float64)
        values, own, reported = values[::-1], own[::-1], reported[::-1]
        hits = np.cumsum(own).astype(np.float64)
        f1 = 2.0 * hits / (reported + hits[-1])
        best = int(f1.argmax())
        lower = every[: np.searchsorted(every, values[best])]
        after = lower[-1] if len(lower) else values[best] - 1.0
        precision = float((own * hits / reported).sum() / hits[-1])
        return cls(float(f1[best]), float((values[best] + after) / 2.0), precision)


def log_loss(pairs: Pairs) -> float:
    """Mean over all pairs of rows and labels."""
    # softplus(-f) of a true pair is softplus(f) - f; the others that its entry counts for are not true
    losses = softplus_sum(pairs.log_odds, pairs.counts) - pairs.log_odds[pairs.true].sum()
    return float(losses / pairs.counts.sum())


@njit(cache=True, nogil=True)
def softplus_sum(values: Floats, counts: Ints) -> float:
    """``sum of counts log(1 + exp(values))``; both of shape (n,)."""
    total = 0.0
    for i in range(len(values)):
        f = values[i]
        total += counts[i] * (max(f, 0.0) + np.log1p(np.exp(-abs(f))))
    return total
