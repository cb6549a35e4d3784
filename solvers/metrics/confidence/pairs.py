"""Pairs of rows and labels of sets, each with its log-odds, and whether the row has the label.

Labels that no row has are not listed one by one: all have one log-odds, or less where a label above them has less.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.numerics.array_types import Bools, Floats, Ints


class Rest(NamedTuple):
    """Labels that no row has.

    Attributes
    ----------
    log_odds : float
        Of each in every row, unless a label above it has less.
    n_hanging : int64 array, shape (n_labels + 1,)
        How many there are: first those with no other label above them, then those whose nearest other label above is
        the first, the second, and so on.
    """

    log_odds: float
    n_hanging: Ints


class Pairs(NamedTuple):
    """Pairs of rows and labels, in no order.

    Attributes
    ----------
    log_odds : float64 array, shape (n_entries,)
    true : bool array, shape (n_entries,)
    counts : int64 array, shape (n_entries,)
        How many pairs an entry counts for, 1 or more; one of them at most is true.
    best : float64 array, shape (n_rows,)
        The highest log-odds of each row.
    """

    log_odds: Floats
    true: Bools
    counts: Ints
    best: Floats

    @classmethod
    def from_log_odds(cls, log_odds: Floats, labels: sp.csr_matrix, rest: Rest | None = None) -> "Pairs":
        """The pairs of some rows, with each label of the rest.

        Parameters
        ----------
        log_odds : float64 array, shape (n_rows, n_labels)
            Never rising on the way down.
        labels : csr_matrix of bool, same shape
        rest : Rest, optional
            Left out, there are no other labels.

        Notes
        -----
        A label of the rest has the log-odds of the label above it where these are less than its own, so that it counts
        there; all other pairs of rows with labels of the rest are one entry.
        """
        values, true, best = log_odds.ravel(), labels.toarray().ravel(), log_odds.max(axis=1)
        if rest is None or not rest.n_hanging.any():
            return cls(values, true, np.ones(len(values), np.int64), best)
        here = (log_odds < rest.log_odds) * rest.n_hanging[1:]
        counts, n_rest = 1 + here.ravel(), len(log_odds) * int(rest.n_hanging.sum()) - int(here.sum())
        if n_rest > 0:
            values, true = np.append(values, rest.log_odds), np.append(true, False)
            counts = np.append(counts, n_rest)
        if rest.n_hanging[0] > 0:
            best = np.maximum(best, rest.log_odds)
        return cls(values, true, counts, best)
