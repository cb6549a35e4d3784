"""The rows that trials are measured on, and the measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.metrics.flat import flat, top_k_accuracy
from solvers.metrics.ranking import first, places
from solvers.numerics.array_types import Floats, Floats32, Ints, Ints32
from solvers.selection.pooling import fit_temperature
from solvers.selection.splits import stratified, stratified_folds

Measure = Literal["accuracy", "top_5", "macro_f1", "ndcg", "log_loss", "micro_f1", "average_precision"]
MEASURES: tuple[Measure, ...] = ("accuracy", "top_5", "macro_f1", "ndcg", "log_loss")
SET_MEASURES: tuple[Measure, ...] = ("micro_f1", "average_precision", "ndcg", "log_loss")
# rows below which every row is held out once, in one of the folds
FEW_ROWS, FOLDS = 2000, 5
# the same of sets of labels
FEW_SETS, SET_FOLDS = 5000, 3
# lengths of rows that differ by a smaller part are one
_SAME_LENGTH = 1e-6
# scores of held out rows that are kept of one trial
MOST_SCORES = 1 << 24


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on and rows held out; int64 arrays, ascending."""

    train: Ints
    held_out: Ints

    def problem(self, whole: Problem) -> Problem:
        """The training problem."""
        rows = self.train
        y, labels = (whole.y[rows], None) if whole.labels is None else (whole.y, whole.labels[rows])
        return Problem(whole.X[rows], y, whole.classes, whole.weights[rows], whole.taxonomy, labels, whole.names)

    def rows_held_out(self, whole: Problem) -> sp.csr_matrix:
        """The rows held out, as later rows will come: without the features that no row to train on has.

        A vocabulary of the training rows does not know them. Where all rows are of one length, these stay so.
        """
        X = sp.csr_matrix(whole.X[self.held_out])
        known = np.zeros(X.shape[1], bool)
        known[whole.X[self.train].indices] = True
        # names of concepts are known from the vocabulary
        if whole.names is not None or known[X.indices].all():
            return X
        before, every = _lengths(X), _lengths(whole.X)
        X.data = np.where(known[X.indices], X.data, 0.0)
        X.eliminate_zeros()
        every = every[every > 0]
        if every.max() - every.min() <= _SAME_LENGTH * every.max():
            after = _lengths(X)
            X.data *= np.repeat(before / np.where(after > 0, after, 1.0), np.diff(X.indptr))
        return X

    def sketch(self, y: Ints32, most: int, seed: int) -> "Fold":
        """The same with about ``most`` rows to train on, at least one of each class; y is that of the whole problem."""
        spare = max(0.0, 1.0 - most / len(self.train))
        return Fold(self.train[~stratified(y[self.train], spare, seed)], self.held_out)


def folds_of(problem: Problem, n_folds: int | None, fraction: float, seed: int) -> list[Fold]:
    """One split into rows to train on and rows held out, or several where rows are few; each keeps every class.

    Rows with sets of labels are drawn at random, and then a node may have no row to train on.

    Parameters
    ----------
    n_folds : int or None
        None: 5 of fewer than 2,000 rows, of sets of labels 3 of fewer than 5,000, or as many of these as hold out the
        rows whose scores fit; else one split.
    fraction : float
        Of the rows, held out by one split.
    """
    if problem.labels is not None:
        return _folds_of_sets(problem, n_folds, fraction, seed)
    y, k = problem.y, problem.n_classes
    n_folds = n_folds or (FOLDS if len(y) < FEW_ROWS else 1)
    if n_folds > 1:
        of_row = stratified_folds(y, n_folds, seed)
        folds = [Fold(np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold)) for fold in range(n_folds)]
        return [fold for fold in folds if len(fold.held_out)]
    out = stratified(y, fraction, seed)
    held_out = thinned(np.flatnonzero(out), MOST_SCORES // k, seed)
    return [Fold(np.flatnonzero(~out), held_out)] if len(held_out) else []


def held_out_rows(folds: Sequence[Fold]) -> Ints:
    """All rows that are held out, in the order of the folds."""
    return np.concatenate([np.empty(0, np.int64), *(fold.held_out for fold in folds)])


def _folds_of_sets(problem: Problem, n_folds: int | None, fraction: float, seed: int) -> list[Fold]:
    n, k = problem.n_samples, problem.n_classes
    most = max(1, MOST_SCORES // k)
    asked = n_folds
    n_folds = min(n_folds or (SET_FOLDS if n < FEW_SETS else 1), n)
    shuffled = np.random.default_rng([seed, 0x5E75]).permutation(n)
    n_out = min(n - 1, max(1, round(fraction * n)))
    parts = np.array_split(shuffled, n_folds) if n_folds > 1 else [shuffled[:n_out]]
    if asked is None:
        # no training for rows whose scores are not kept
        parts = parts[: -(-most * n_folds // n)]
    folds = []
    for part in parts:
        train = np.setdiff1d(shuffled, part)
        folds.append(Fold(train, thinned(np.sort(part), most // len(parts), seed)))
    return [fold for fold in folds if len(fold.held_out)]


def _lengths(X: sp.csr_matrix) -> Floats:
    return np.asarray(np.sqrt(X.multiply(X).sum(axis=1))).ravel()


def thinned(rows: Ints, most: int, seed: int) -> Ints:
    """``most`` of the rows at random, at least one, or all of them."""
    most = max(1, most)
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng([seed, 0x0E1D]).choice(rows, most, replace=False))


def measured(scores: Floats32, y: Ints32, log_loss: float | None = None) -> dict[Measure, float]:
    """All measures of one label an example; more of each is better.

    Parameters
    ----------
    scores : float32 array, shape (n_rows, n_classes)
    y : int32 array, shape (n_rows,)
    log_loss : float, optional
        If it is known; left out, that of the softmax of the scores at their best temperature.
    """
    where = places(scores, np.arange(len(y) + 1), y)
    loss = fit_temperature(scores, y).log_loss if log_loss is None else log_loss
    return {
        "accuracy": top_k_accuracy(where, 1),
        "top_5": top_k_accuracy(where, 5),
        "macro_f1": flat(y, first(scores), scores.shape[1])["macro_f1"],
        # of one relevant class
        "ndcg": float(np.mean(1.0 / np.log2(1.0 + where))),
        "log_loss": -loss,
    }
