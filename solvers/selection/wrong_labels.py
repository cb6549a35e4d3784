"""Labels that are probably wrong, by answers of models that were not trained on the rows they answer.

Each row has the probabilities that a model of the other folds gives to the labels. A row's label is the more suspect,
the less probable it is, the more labels are more probable, and the surer the model is of its answer:

    quality = p(own) / (p(best)^(1/4) (1 + r)^(1/2)),  r = number of labels that are more probable than its own.

With r left out and the power 0 that is self-confidence; the margin is a difference in place of a ratio.

Which rows are *confidently* wrong is the rule of confident learning (Northcutt et al. 2021, section 3.1): the threshold
of a label is the mean probability of that label over the rows that have it. A row counts for the most probable label
that reaches its own threshold, and is confidently wrong where that label is not the row's.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Model
from solvers.numerics.array_types import AnyFloats, Floats, Floats32, Ints, Ints32
from solvers.numerics.best import best
from solvers.selection.pooling import fit_temperature, log_softmax

# labels of each row that are stored, and scores that are computed at once
MOST_LABELS, BLOCK_BYTES = 5, 32 << 20
# scores that a temperature is fitted on
_FITTED = 1 << 22


class Answers(NamedTuple):
    """What is stored of the answers to some rows; memory does not grow with the number of labels.

    Attributes
    ----------
    own : float32 array, shape (n_rows,)
        Logarithm of the probability of the row's own label.
    above : int32 array, shape (n_rows,)
        Number of labels that are more probable.
    labels : int32 array, shape (n_rows, n_best)
        The most probable labels, the first first.
    log_probabilities : float32 array, shape (n_rows, n_best)
    """

    own: Floats32
    above: Ints32
    labels: Ints32
    log_probabilities: Floats32


def temperature(model: Model, X: sp.csr_matrix, y: Ints) -> float:
    """By what the scores of a model are multiplied to be log-odds, fitted on rows that it was not trained on.

    1 of models whose scores are logarithms of probabilities.

    Parameters
    ----------
    X : csr_matrix, shape (n_rows, n_features)
    y : int array, shape (n_rows,)
        The models' classes.
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], max(1, _FITTED // len(model.classes)))).astype(int))
    ranking = model.ranking(sp.csr_matrix(X[rows]))
    if ranking.tells_probabilities:
        return 1.0
    scores = np.asarray(ranking.values, np.float32)
    listed = np.asarray(np.isfinite(scores).all(axis=0))  # others are never an answer
    place = np.cumsum(listed) - 1
    known = listed[y[rows]]
    if not known.any():
        return 1.0
    chosen = np.ascontiguousarray(scores[known][:, listed])
    found = fit_temperature(chosen, place[y[rows][known]].astype(np.int32)).coefficients[0]
    return max(float(found), 1e-6)


def answers(model: Model, X: sp.csr_matrix, y: Ints, scale: float) -> Answers:
    """The answers of a model to the rows of X, whose labels are its classes y; ``scale`` as of :func:`temperature`."""
    n, k = X.shape[0], min(MOST_LABELS, len(model.classes))
    found = Answers(
        np.empty(n, np.float32), np.empty(n, np.int32), np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    )
    step = max(1, BLOCK_BYTES // (8 * len(model.classes)))
    for begin in range(0, n, step):
        some = slice(begin, begin + step)
        ranking = model.ranking(sp.csr_matrix(X[some]))
        values = np.asarray(ranking.values, np.float32)
        said = values if ranking.tells_probabilities else log_softmax(np.float32(scale) * values)
        own = said[np.arange(len(said)), y[some]]
        found.own[some] = own
        found.above[some] = (said > own[:, None]).sum(axis=1)
        found.labels[some], found.log_probabilities[some] = best(said, k)
    return found


def quality(found: Answers) -> Floats:
    """The quality of the label of each row, shape (n_rows,), its logarithm; the least ones are the most suspect."""
    own = np.maximum(found.own.astype(np.float64), -1e3)
    return np.asarray(own - 0.25 * found.log_probabilities[:, 0] - 0.5 * np.log1p(found.above))


def confidently_wrong(found: Answers, y: Ints, n_labels: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether another label of a row reaches its threshold before the row's own, shape (n_rows,)."""
    thresholds = np.bincount(y, np.exp(found.own.astype(np.float64)), n_labels) / np.maximum(
        np.bincount(y, minlength=n_labels), 1
    )
    # a label without rows has no threshold that a probability could reach
    thresholds[np.bincount(y, minlength=n_labels) == 0] = np.inf
    reaches = np.exp(found.log_probabilities.astype(np.float64)) >= thresholds[found.labels]
    place = reaches.argmax(axis=1)
    first = found.labels[np.arange(len(y)), place]
    return np.asarray(reaches.any(axis=1) & (first != y))


def suggested(found: Answers, y: Ints) -> tuple[Ints, Floats]:
    """The most probable label of each row that is not its own, and its probability."""
    same = found.labels[:, 0] == y
    place = same.astype(np.int64) if found.labels.shape[1] > 1 else np.zeros(len(y), np.int64)
    rows = np.arange(len(y))
    return found.labels[rows, place].astype(np.int64), np.exp(found.log_probabilities[rows, place].astype(np.float64))


def joined(n_rows: int, parts: list[tuple[Ints, Answers]]) -> Answers:
    """The answers of all folds, by the rows' places; rows of no fold have the quality 1.

    Parameters
    ----------
    parts : list of (int64 array, Answers)
        The places of the rows of each fold, and their answers.
    """
    width = max((part.labels.shape[1] for _, part in parts), default=1)
    whole = Answers(
        np.zeros(n_rows, np.float32),
        np.zeros(n_rows, np.int32),
        np.zeros((n_rows, width), np.int32),
        np.full((n_rows, width), -np.inf, np.float32),
    )
    whole.log_probabilities[:, 0] = 0.0
    for places, part in parts:
        k = part.labels.shape[1]
        whole.own[places], whole.above[places] = part.own, part.above
        whole.labels[places, :k], whole.log_probabilities[places, :k] = part.labels, part.log_probabilities
    return whole


def nearest(X: sp.csr_matrix, rows: sp.csr_matrix, k: int) -> tuple[Ints, AnyFloats]:
    """The k rows of X that are most like each of some others: their places and cosines, shape (n_others, k)."""
    lengths, others = (np.sqrt(np.asarray(each.multiply(each).sum(axis=1)).ravel()) for each in (X, rows))
    columns = sp.csr_matrix(X.T)
    k = min(k, X.shape[0])
    places, likeness = np.empty((rows.shape[0], k), np.int64), np.empty((rows.shape[0], k))
    tiny = np.finfo(float).tiny
    for at in range(rows.shape[0]):
        row = rows[[at]]
        found = np.asarray((row @ columns).toarray()).ravel() / np.maximum(lengths * others[at], tiny)
        places[at] = np.argsort(-found, kind="stable")[:k] if X.shape[0] <= 1000 else _top(found, k)
        likeness[at] = found[places[at]]
    return places, likeness


def _top(values: AnyFloats, k: int) -> Ints:
    cut = np.partition(values, len(values) - k)[len(values) - k]
    above = np.flatnonzero(values >= cut)
    return np.asarray(above[np.argsort(-values[above], kind="stable")][:k])
