"""A linear machine for each concept, with the squared hinge: its rows against all others.

Where a concept has few rows, its kernel ridge scores are close to the similarity with these rows; the machine also
learns which terms speak against it. Scores of training rows come from machines that were trained without ``PARTS``-ths
of the rows, among them the fold of the row. Small weights are dropped, and intercepts take over what they contribute in
the mean over the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from solvers.core.methods import all_methods, parse
from solvers.core.problem import Problem
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array, Bools, Floats, Ints
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.subjects.sources.source import Floats32, Learnt, Task

METHOD = "node_svm"
# solved loosely: the ranker takes what the scores are worth from rows that were left out
PARAMS = {"loss": "squared_hinge", "bias": 1.0, "C": 1.0, "tol": 0.05}
PARTS = 3
# a weight is dropped below this share of the largest of its concept
SHARE = 0.1
# what a machine without any row of its own says
_NONE = -1.0


class LinearScorer:
    """``s(x) = max of W_c' x + b_c`` over the columns c of a concept: one, or several that have become one concept.

    Parameters
    ----------
    W : csr_matrix of float32, shape (n_terms, n_columns)
    intercept : float32 array, shape (n_columns,)
    concept : int64 array, shape (n_columns,)
        The learnt concept of each column, ascending; each has one.
    """

    kind: ClassVar[str] = "linear"

    def __init__(self, W: sp.csr_matrix, intercept: Floats32, concept: Ints) -> None:
        self.W, self.intercept, self.concept = W, intercept, concept
        self._begin = np.flatnonzero(np.diff(concept, prepend=-1))

    def scores(self, terms: sp.csr_matrix) -> Floats32:
        found = np.asarray((sp.csr_matrix(terms, dtype=np.float32) @ self.W).toarray()) + self.intercept
        return found if len(self._begin) == len(self.concept) else np.maximum.reduceat(found, self._begin, axis=1)

    def parts(self, terms: sp.csr_matrix, concept: int) -> Floats:
        columns = np.flatnonzero(self.concept == concept)
        weights = self.W[terms.indices][:, columns].toarray().astype(np.float64) * terms.data[:, None]
        return np.asarray(weights[:, (weights.sum(axis=0) + self.intercept[columns]).argmax()])

    def merged(self, kept: Bools, of: Ints) -> LinearScorer:
        columns = np.flatnonzero(kept[self.concept])
        number = np.zeros(len(kept), np.int64)
        number[kept] = of
        concept = number[self.concept[columns]]
        order = np.argsort(concept, kind="stable")
        return LinearScorer(sp.csr_matrix(self.W[:, columns[order]]), self.intercept[columns[order]], concept[order])

    def arrays(self) -> Mapping[str, Array]:
        weights = stored_arrays.of_sparse(self.W, half=False)
        return dict(Parts({"W": weights})) | {"intercept": self.intercept, "concept": self.concept}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_learnt: int, n_terms: int) -> LinearScorer:
        concept, intercept = np.asarray(arrays["concept"]), np.asarray(arrays["intercept"])
        W = stored_arrays.sparse(part_of(arrays, "W"), n_terms, len(concept))
        stored_arrays.require_floats("intercept", intercept, len(concept))
        if not np.array_equal(np.unique(concept), np.arange(n_learnt)) or (np.diff(concept) < 0).any():
            raise ValueError("the array concept is out of range")
        return cls(W, intercept, concept)


def bytes_needed(n_rows: int, n_terms: int, n_learnt: int) -> int:
    """Memory of one training at its peak, and of the scores of the rows that it leaves out."""
    method = all_methods()[METHOD]
    training = method(parse(method, PARAMS), seed=0).bytes_needed(n_rows, n_terms, n_learnt)
    return int(training) + 4 * (n_rows // PARTS + 1) * n_learnt


def learn(task: Task) -> Learnt:
    """Train on all rows; the machines without a part of them are trained when their scores are asked for."""
    n_folds, every = int(task.fold.max()) + 1, np.arange(len(task.fold))
    part_of_fold = np.arange(n_folds) * PARTS // max(n_folds, PARTS)
    part = part_of_fold[task.fold]
    kept: dict[int, tuple[LinearScorer | None, Ints]] = {}

    def without(number: int, rows: Ints) -> Floats32:
        which = int(part_of_fold[number])
        if which not in kept:
            kept.clear()
            kept[which] = _trained(task, np.flatnonzero(part != which))
        scorer, columns = kept[which]
        found = np.full((len(rows), task.Y.shape[1]), np.float32(_NONE))
        if scorer is not None:
            found[:, columns] = scorer.scores(task.terms[rows])
        return found

    whole, _ = _trained(task, every)
    assert whole is not None
    return Learnt(whole, without)


def _trained(task: Task, rows: Ints) -> tuple[LinearScorer | None, Ints]:
    """The machines of some rows, and the concepts that these have; None where they have none."""
    Y = sp.csr_matrix(task.Y[rows], dtype=bool)
    columns = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    if not len(columns):
        return None, columns
    tree = Taxonomy.flat([str(column) for column in columns.tolist()])
    problem = Problem.check_sets(task.terms[rows], Y[:, columns], tree, task.weights[rows])
    method = all_methods()[METHOD]
    solver = method(parse(method, PARAMS), seed=task.seed, threads=task.threads)
    for step in solver.steps(problem):
        last = step
    model = solver.light_model(problem, last.state, SHARE)
    assert isinstance(model, SubtreeModel)
    weights = model.parts.linear_weights()
    assert weights is not None
    assert weights.intercept is not None
    W = sp.coo_matrix(weights.W, dtype=np.float32)
    sizes, largest = np.abs(W.data), np.zeros(W.shape[1], np.float32)
    np.maximum.at(largest, W.col, sizes)
    kept, feature = (sizes >= SHARE * largest[W.col]) & (sizes > 0), weights.features[W.row]
    mean = np.asarray(problem.X.mean(axis=0)).ravel()
    dropped = np.bincount(W.col[~kept], (W.data * mean[feature])[~kept], len(columns))
    shape = (task.terms.shape[1], len(columns))
    few = sp.csr_matrix((W.data[kept], (feature[kept], W.col[kept])), shape=shape)
    return LinearScorer(few, (weights.intercept + dropped).astype(np.float32), np.arange(len(columns))), columns
