"""From which log-odds on a label is in the predicted set: one threshold for all labels, or one for each.

A threshold is where F1 is the highest on rows held out, or the least from which on a precision is reached with 95 %
confidence whichever threshold is chosen: the observed precision of a threshold that was chosen to reach it is too
hopeful.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.reliability import CANDIDATES, lower_bounds
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
            return Curve.from_pairs(pairs).threshold
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
            found[node] = self.common(Pairs.from_log_odds(log_odds[:, [node]], sp.csr_matrix(columns[:, [node]])))
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
    falling, hits = pairs.log_odds[order], np.cumsum(pairs.true[order], dtype=np.int64)
    ends = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))
    if len(ends) > CANDIDATES:
        # steps grow, as most pairs are improbable
        ends = ends[np.unique(np.geomspace(1, len(ends), CANDIDATES).round().astype(np.int64)) - 1]
    n_chosen, hits = np.cumsum(pairs.counts[order])[ends], hits[ends]
    reached = np.flatnonzero(lower_bounds(hits, n_chosen) >= precision)
    if len(reached) == 0:
        return float(falling[0]) + 1.0
    end = int(ends[reached[-1]])
    below = falling[end + 1] if end + 1 < len(falling) else falling[end] - 1.0
    return float((falling[end] + below) / 2.0)
