"""Measures of log-odds over all pairs of rows and labels: micro F1, average precision and log loss."""

from typing import NamedTuple

import numpy as np

from solvers.metrics.confidence.pairs import Pairs


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
        order = np.argsort(-pairs.log_odds, kind="stable")
        values, hits = pairs.log_odds[order], np.cumsum(pairs.true[order])
        ends = np.flatnonzero(np.append(values[1:] < values[:-1], True))
        reported, hits = np.cumsum(pairs.counts[order])[ends].astype(np.float64), hits[ends].astype(np.float64)
        total = max(float(hits[-1]), 1.0)
        f1 = 2.0 * hits / (reported + total)
        best = int(f1.argmax())
        after = values[ends[best + 1]] if best + 1 < len(ends) else values[ends[best]] - 1.0
        precision = float((np.diff(hits, prepend=0.0) * hits / reported).sum() / total)
        return cls(float(f1[best]), float((values[ends[best]] + after) / 2.0), precision)


def log_loss(pairs: Pairs) -> float:
    """Mean over all pairs of rows and labels."""
    # softplus(-f) of a true pair is softplus(f) - f; the others that its entry counts for are not true
    losses = pairs.counts @ np.logaddexp(0.0, pairs.log_odds) - pairs.log_odds[pairs.true].sum()
    return float(losses / pairs.counts.sum())
