"""From which log-odds on a label is in the predicted set: one threshold for all labels, or one for each.

A threshold is where F1 is the highest on rows held out, or the least from which on a precision is reached with 95 %
confidence (Clopper and Pearson 1934): the observed precision of a threshold that was chosen to reach it is too hopeful.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv

from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.reliability import LEVEL
from solvers.numerics.array_types import Floats
from solvers.selection.sets.set_curve import Curve


class SetThresholds(NamedTuple):
    """What thresholds are set by.

    Attributes
    ----------
    each : bool
        Whether every label has its own. One without a held-out row has that of all labels.
    precision : float or None
        To be reached; None: F1 is to be the highest.
    """

    each: bool = False
    precision: float | None = None

    def common(self, pairs: Pairs) -> float:
        """The threshold of all labels, by the pairs of rows held out and labels."""
        if self.precision is None:
            return Curve.of(pairs).threshold
        return least_precise(pairs, self.precision)

    def of_each(self, log_odds: Floats, labels: sp.csr_matrix, common: float) -> Floats:
        """The thresholds of the labels, float64 array, shape (n_nodes,).

        Parameters
        ----------
        log_odds : float64 array, shape (n_samples, n_nodes)
            Of rows held out.
        labels : csr_matrix of bool, same shape
        common : float
            Of labels that none of these rows has.
        """
        columns = labels.tocsc()
        found = np.full(log_odds.shape[1], common)
        for node in np.flatnonzero(np.diff(columns.indptr)).tolist():
            found[node] = self.common(Pairs.of(log_odds[:, [node]], sp.csr_matrix(columns[:, [node]])))
        return found


def least_precise(pairs: Pairs, precision: float) -> float:
    """The least threshold above which a precision is reached with 95 % confidence; above all log-odds if none is.

    Parameters
    ----------
    pairs : Pairs
        Of rows held out and labels.
    precision : float
        In (0, 1).
    """
    order = np.argsort(-pairs.log_odds, kind="stable")
    falling, hits = pairs.log_odds[order], np.cumsum(pairs.true[order])
    ends = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))
    n_chosen, hits = np.cumsum(pairs.counts[order])[ends], hits[ends]
    bounds = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n_chosen - hits + 1, LEVEL), 0.0)
    reached = np.flatnonzero(bounds >= precision)
    if len(reached) == 0:
        return float(falling[0]) + 1.0
    at = int(reached[-1])
    below = falling[ends[at + 1]] if at + 1 < len(ends) else falling[ends[at]] - 1.0
    return float((falling[ends[at]] + below) / 2.0)
