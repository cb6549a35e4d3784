"""From which log-odds on a label is in the predicted set: one threshold for all labels, or one for each.

A threshold is where F1 is the highest on rows held out, or the least from which on a precision is reached with 95 %
confidence (Clopper and Pearson 1934): the observed precision of a threshold that was chosen to reach it is too hopeful.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv

from solvers.metrics.confidence.reliability import LEVEL
from solvers.numerics.array_types import Bools, Floats
from solvers.selection.node_calibration import Curve


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

    def fit(self, log_odds: Floats, labels: sp.csr_matrix) -> Floats:
        """The thresholds, float64 array, shape (1,) or (n_nodes,).

        Parameters
        ----------
        log_odds : float64 array, shape (n_samples, n_nodes)
            Of rows held out.
        labels : csr_matrix of bool, same shape
        """
        common = self._threshold(log_odds.ravel(), labels)
        if not self.each:
            return np.array([common])
        columns = labels.tocsc()
        found = np.full(log_odds.shape[1], common)
        for node in np.flatnonzero(np.diff(columns.indptr)).tolist():
            found[node] = self._threshold(log_odds[:, node], sp.csr_matrix(columns[:, [node]]))
        return found

    def _threshold(self, values: Floats, labels: sp.csr_matrix) -> float:
        if self.precision is None:
            return Curve.of(values, labels).threshold
        return least_precise(values, labels.toarray().ravel(), self.precision)


def least_precise(values: Floats, true: Bools, precision: float) -> float:
    """The least threshold above which a precision is reached with 95 % confidence; above all values if none is.

    Parameters
    ----------
    values : float64 array, shape (n,)
    true : bool array, shape (n,)
    precision : float
        In (0, 1).
    """
    order = np.argsort(-values, kind="stable")
    falling, hits = values[order], np.cumsum(true[order])
    ends = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))
    n_chosen, hits = ends + 1, hits[ends]
    bounds = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n_chosen - hits + 1, LEVEL), 0.0)
    reached = np.flatnonzero(bounds >= precision)
    if len(reached) == 0:
        return float(falling[0]) + 1.0
    at = int(reached[-1])
    below = falling[ends[at + 1]] if at + 1 < len(ends) else falling[ends[at]] - 1.0
    return float((falling[ends[at]] + below) / 2.0)
