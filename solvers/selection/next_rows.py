"""Which rows to label next: the least sure ones, spread over the features, and labels that have few rows.

A row is the less sure, the smaller its margin is, the lead of its best class over the second: breaking ties (Luo et al.
2005). Of a row with a set of labels it is the distance of its least sure label from where the decision changes (Brinker
2006). The least sure rows alone are often alike, so more of them than the budget are taken, and the budget is spread
over these:

- ``k_center``: the row that is farthest from all rows chosen so far, one after the other (Gonzalez 1985).
- ``clusters``: k-means with as many clusters as rows are wanted, and of each cluster its least sure row.

A part of the budget is for rows whose best class has few rows: one per class and round, the rarest class first.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp

from solvers.numerics.array_types import AnyFloats, Floats, Floats32, Ints

Diversity = Literal["clusters", "k_center", "none"]
Reason = Literal["few_rows", "least_sure"]
# least sure rows that the budget is spread over, for each row of the budget, and at most
SPREAD, MOST_SPREAD = 3, 50_000
# columns that the rows are folded into for the clusters
_FOLDED = 256
# clusters whose first centres are spread over the rows
_SPREAD_CENTRES = 1000


def margins(values: AnyFloats, first: Ints, *, probabilities: bool) -> Floats32:
    """The lead of the first class of each row over the best other one, shape (n_samples,).

    Parameters
    ----------
    values : float array, shape (n_samples, n_classes)
        Minus infinity for a class that is never an answer.
    first : int64 array, shape (n_samples,)
    probabilities : bool
        The values are logarithms of probabilities, and the lead is one of probabilities.
    """
    n, k = values.shape
    if k == 1:
        return np.full(n, np.inf, np.float32)
    rows = np.arange(n)
    others = np.array(values, np.float64)
    best = others[rows, first]
    others[rows, first] = -np.inf
    second = others.max(axis=1)
    if probabilities:
        best, second = np.exp(best), np.exp(second)
    with np.errstate(invalid="ignore"):
        lead = best - second
    return np.asarray(np.nan_to_num(lead, nan=0.0, posinf=np.inf), np.float32)


def margins_of_sets(above: AnyFloats, values: AnyFloats) -> Floats32:
    """The distance of the least sure label of each row from where the decision changes, shape (n_samples,).

    Parameters
    ----------
    above : float array, shape (n_samples, n_classes)
        Positive for the labels of the predicted set.
    values : float array, shape (n_samples, n_classes)
        Minus infinity for a label that is never an answer; such a label counts only where the set has it.
    """
    distance = np.abs(np.asarray(above, np.float64))
    distance[np.isneginf(values) & ~(above > 0)] = np.inf
    return np.asarray(np.nan_to_num(distance.min(axis=1), nan=0.0, posinf=np.inf), np.float32)


def few_rows_first(margin: Floats32, first: Ints, counts: Ints, fewest: int, budget: int) -> Ints:
    """Up to ``budget`` rows whose best class has fewer than ``fewest`` rows, shape (n_chosen,).

    Parameters
    ----------
    margin : float32 array, shape (n_samples,)
    first : int64 array, shape (n_samples,)
        The best class of each row.
    counts : int array, shape (n_classes,)
        Rows that each class was trained on.
    """
    rare = np.flatnonzero(counts[first] < fewest)
    order = rare[np.lexsort((margin[rare], first[rare]))]
    of = first[order]
    begins = np.flatnonzero(np.concatenate([[True], of[1:] != of[:-1]])) if len(of) else np.empty(0, np.int64)
    turn = np.arange(len(of)) - np.repeat(begins, np.diff(np.append(begins, len(of))))
    return np.asarray(order[np.lexsort((margin[order], counts[of], turn))][:budget])


def least_sure(margin: Floats32, budget: int, diversity: Diversity, without: Ints) -> Ints:
    """The rows that :func:`spread` chooses among, the least sure first; those in ``without`` are left out."""
    n = budget if diversity == "none" else max(budget, min(SPREAD * budget, MOST_SPREAD))
    order = np.lexsort((np.arange(len(margin)), margin))
    taken = np.zeros(len(margin), bool)
    taken[without] = True
    return np.asarray(order[~taken[order]][:n])


def spread(X: sp.csr_matrix, margin: Floats32, budget: int, diversity: Diversity, seed: int) -> Ints:
    """The places of ``budget`` of the rows of X, the least sure first.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
        Their features, the least sure first.
    margin : float32 array, shape (n_samples,)
    diversity : {"clusters", "k_center", "none"}
    seed : int
        Of the clusters.
    """
    n = X.shape[0]
    if diversity == "none" or n <= budget:
        return np.arange(min(n, budget))
    rows = _unit_rows(X)
    chosen = _clustered(rows, margin, budget, seed) if diversity == "clusters" else _centers(rows, budget)
    return np.sort(chosen)


def _clustered(X: sp.csr_matrix, margin: Floats32, budget: int, seed: int) -> Ints:
    """The least sure row of each cluster; where clusters are empty, the least sure others."""
    # imported here, as it takes half a second that only this should cost
    from sklearn.cluster import MiniBatchKMeans

    # centres that are unlike from the start cost a pass over the rows for each
    init = "k-means++" if budget <= _SPREAD_CENTRES else "random"
    clusters = MiniBatchKMeans(
        budget, init=init, n_init=1, batch_size=max(1024, 2 * budget), max_iter=20, random_state=seed
    ).fit_predict(_folded(X, seed), sample_weight=_weights(margin))
    _, first = np.unique(clusters, return_index=True)
    rest = np.setdiff1d(np.arange(X.shape[0]), first)
    return np.concatenate([first, rest])[:budget]


def _weights(margin: Floats32) -> Floats:
    """More for rows that are less sure, so that clusters lie where these are."""
    finite = np.where(np.isfinite(margin), margin, 0.0).astype(np.float64)
    top = float(finite.max(initial=0.0))
    return np.asarray(1.0 - finite / top + 1e-3) if top > 0 else np.ones(len(margin))


def _folded(X: sp.csr_matrix, seed: int) -> Floats32:
    """The rows in few dense columns: each feature goes to one of them, with a random sign (Weinberger et al. 2009).

    Inner products stay the same on average, and the clusters' means need no memory for each feature.
    """
    if X.shape[1] <= _FOLDED:
        return np.asarray(X.toarray(), np.float32)
    random = np.random.default_rng([seed, 0xF01])
    place, sign = random.integers(_FOLDED, size=X.shape[1]), random.choice([-1.0, 1.0], X.shape[1])
    columns = np.arange(X.shape[1])
    fold = sp.csr_matrix((sign, (columns, place)), shape=(X.shape[1], _FOLDED))
    return np.asarray((X @ fold).toarray(), np.float32)


def _centers(X: sp.csr_matrix, budget: int) -> Ints:
    """The least sure row, and then the one whose nearest chosen row is the least like it, again and again."""
    nearest = np.full(X.shape[0], -np.inf)
    columns = X.T.tocsr()
    chosen = np.empty(budget, np.int64)
    at = 0
    for k in range(budget):
        chosen[k] = at
        row = X[at]
        likeness = np.asarray((row.data @ columns[row.indices]) if row.nnz else np.zeros(X.shape[0]))
        nearest = np.maximum(nearest, likeness.ravel())
        nearest[at] = np.inf
        at = int(nearest.argmin())
    return chosen


def _unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags_array(1.0 / np.maximum(lengths, 1e-300)) @ X)
