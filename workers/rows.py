"""A dataset's rows as a training problem: split into parts, with the labels of the training part as classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.errors import InvalidInput
from app.schemas.jobs import TrainRequest
from app.services.labelling import named
from app.services.splits import stratified
from app.store.corpus import Corpus
from solvers.problem import Problem
from solvers.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Rows:
    """Which rows train and which test.

    Attributes
    ----------
    train, test : int64 arrays
        Row numbers, ascending.
    classes : list of str
        The labels of the training rows, sorted.
    y_train : int32 array
        Indices into ``classes``.
    truth_train, truth_test : int32 arrays
        What predictions are measured against: nodes of the label tree where there is one, else indices into
        ``classes``; -1 for a test row whose label is none of these.
    tree : Taxonomy or None
    weights : float64 array, shape (n_train,), or None
        Of the training rows; None where the dataset gives none.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    classes: list[str]
    y_train: NDArray[np.int32]
    truth_train: NDArray[np.int32]
    truth_test: NDArray[np.int32]
    tree: Taxonomy | None
    weights: NDArray[np.float64] | None

    def problem(self, X: csr_matrix) -> Problem:
        """The training problem, where X has the features of the training rows; raises ProblemError."""
        return Problem.check(X, self.y_train, self.classes, self.weights, self.tree)


def split_rows(corpus: Corpus, request: TrainRequest, tree: Taxonomy | None = None) -> Rows:
    """Split by the dataset's own split, or else by class at random from the request's seed.

    Raises
    ------
    InvalidInput
        Test rows have labels that cannot be predicted, and the request refuses those: labels that no training row has
        or, with a label tree, that are none of its nodes.
    """
    y = np.asarray(corpus.y)
    held_out = (
        stratified(y, request.test_fraction, request.seed) if corpus.split is None else np.asarray(corpus.split) == 1
    )
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    present = np.unique(y[train])
    index = np.full(len(corpus.labels), -1, np.int32)
    index[present] = np.arange(len(present), dtype=np.int32)
    truth = index if tree is None else _nodes(tree, corpus.labels)
    truth_test = truth[y[test]]
    if request.unseen_labels == "refuse" and (truth_test < 0).any():
        what = "no training row has" if tree is None else "are not in the hierarchy"
        unseen = named(corpus.labels[c] for c in np.unique(y[test][truth_test < 0]))
        raise InvalidInput(f"{int((truth_test < 0).sum())} test row(s) have labels that {what}: {unseen}")
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    classes = [corpus.labels[c] for c in present]
    return Rows(train, test, classes, index[y[train]], truth[y[train]], truth_test, tree, weights)


def _nodes(tree: Taxonomy, labels: Sequence[str]) -> NDArray[np.int32]:
    """The node of each label; -1 for one that the tree does not have."""
    known = set(tree.names)
    there = np.array([label in known for label in labels])
    nodes = np.full(len(labels), -1, np.int32)
    nodes[there] = tree.find(label for label in labels if label in known)
    return nodes
