"""What features are worth to each row, when ridge regression on all other rows answers it.

With K the products of the rows and ``P = (K + mu I)^-1``, the answer to row i by the regression on the others is
``y_i - (P y)_i / P_ii`` (Allen 1974, section 3; Golub, Heath and Wahba 1979, section 1), for all labels at once. So one
inverse measures every row, and two makes of features are compared row by row. mu is the mean squared length of rows.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.labels.label_sets import own_labels
from solvers.metrics.ranking import places
from solvers.numerics.array_types import Floats, Ints
from solvers.numerics.row_products import gram
from solvers.selection.held_out import thinned
from solvers.selection.pooling import fit_temperature, log_softmax

# on 1,000 records of a library, nDCG@10 by fields and by joined text differed by five standard errors, and on 2,000 the
# best of several weights was the one that was best on other records
MOST_ROWS = 2000
FEWEST_ROWS = 50
LISTED = 10


class Gain(NamedTuple):
    """The mean over rows by which losses are lower than others, and its standard error."""

    mean: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether the mean is more than two standard errors above 0."""
        return self.mean > 2.0 * self.error


def some_rows(n_rows: int, seed: int = 0) -> Ints:
    """Rows to compare features on, ascending: all, or as many as are measured in seconds."""
    return thinned(np.arange(n_rows), MOST_ROWS, seed)


def row_losses(problem: Problem) -> Floats:
    """The loss of each row, answered by ridge regression on the others.

    Parameters
    ----------
    problem : Problem
        Names of concepts and weights of rows are left aside.

    Returns
    -------
    float64 array, shape (n_samples,)
        ``1 - nDCG@10`` of the rows' own labels where rows have sets of labels; else the log loss, in nats.
    """
    X, Y = problem.of_terms.X, _targets(problem)
    K = gram(X)
    mu = float(np.trace(K)) / len(K) or 1.0
    K[np.diag_indices_from(K)] += mu
    P = np.linalg.inv(K)
    own = np.diag(P).copy()
    P[np.diag_indices_from(P)] = 0.0
    scores = np.asarray((Y.T @ P).T / -own[:, None], np.float32)
    if problem.labels is not None:
        return 1.0 - _ndcg(scores, Y)
    y = np.asarray(Y.indices, np.int32)
    said = log_softmax(np.float32(fit_temperature(scores, y).coefficients[0]) * scores)
    return -said[np.arange(len(y)), y].astype(np.float64)


def gain(losses: Floats, others: Floats) -> Gain:
    """By how much ``losses`` are lower than ``others``, of the same rows."""
    by_row = others - losses
    return Gain(float(by_row.mean()), float(by_row.std(ddof=1)) / math.sqrt(len(by_row)))


def _targets(problem: Problem) -> sp.csr_matrix:
    """The labels of each row that are its own, without columns of labels that no row has."""
    if problem.labels is None:
        n = problem.n_samples
        Y = sp.csr_matrix((np.ones(n), problem.y, np.arange(n + 1)), shape=(n, problem.n_classes))
    else:
        assert problem.taxonomy is not None
        Y = sp.csr_matrix(own_labels(problem.labels, problem.taxonomy.parents), dtype=np.float64)
    used = np.unique(Y.indices)
    return sp.csr_matrix((Y.data, np.searchsorted(used, Y.indices), Y.indptr), shape=(Y.shape[0], len(used)))


def _ndcg(scores: np.ndarray, Y: sp.csr_matrix) -> Floats:
    found = places(scores, Y.indptr, Y.indices)
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    gains = np.where(found <= LISTED, 1.0 / np.log2(1.0 + found), 0.0)
    best = np.cumsum(1.0 / np.log2(np.arange(2, LISTED + 2)))
    n_true = np.minimum(np.diff(Y.indptr), LISTED)
    return np.asarray(np.bincount(row, gains, minlength=Y.shape[0]) / best[np.maximum(n_true, 1) - 1])
