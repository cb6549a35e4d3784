"""The rows of a dataset that train and those that test, and what their labels mean there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.errors import InvalidInput
from app.formats.labels import PARTS
from app.plurals import counted
from app.schemas.jobs.jobs import TrainRequest
from app.services.hierarchies.label_checks import named
from app.services.hierarchies.version_labels import VersionLabels
from app.store.corpus import Corpus
from solvers.core.problem import Problem
from solvers.labels.label_sets import closed
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.selection.splits import stratified, stratified_sets

Truth = NDArray[np.int32] | csr_matrix


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
        Indices into ``classes``; empty where rows have sets of labels.
    truth_train, truth_test : int32 arrays, or csr_matrices of bool
        What predictions are measured against: sets of nodes, closed upwards, of rows with sets of labels; else nodes
        of the label tree where there is one, else indices into ``classes``; -1 for a test row whose label is none of
        these.
    tree : Taxonomy or None
    weights : float64 array, shape (n_train,), or None
        Of the training rows; None where the dataset gives none.
    report : mapping of str to float
        What was done to the labels.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    classes: list[str]
    y_train: NDArray[np.int32]
    truth_train: Truth
    truth_test: Truth
    tree: Taxonomy | None
    weights: NDArray[np.float64] | None
    report: Mapping[str, float] = field(default_factory=dict)

    def problem(self, X: csr_matrix) -> Problem:
        """The training problem, where X has the features of the training rows; raises ProblemError."""
        if isinstance(self.truth_train, csr_matrix):
            assert self.tree is not None
            return Problem.check_sets(X, self.truth_train, self.tree, self.weights)
        return Problem.check(X, self.y_train, self.classes, self.weights, self.tree)


def split_rows(
    corpus: Corpus,
    request: TrainRequest,
    tree: Taxonomy | None = None,
    known: VersionLabels | None = None,
    split: NDArray[np.int8] | None = None,
) -> Rows:
    """Split by the dataset's own split, or else as given, or by class at random from the request's seed.

    Sets of labels are closed upwards along the tree, and along the other parents of its nodes that are ``known``.

    Raises
    ------
    InvalidInput
        Test rows have labels that cannot be predicted, and the request refuses those: labels that no training row has
        or, with a label tree, that are none of its nodes. Or rows have sets of labels that are no nodes, or that lack
        parents which the request wants to be there.
    """
    if corpus.label_indptr is not None:
        return _split_sets(corpus, request, tree, known or VersionLabels(), split)
    y = np.asarray(corpus.y)
    if split is not None:
        train, test = _parted(split)
    elif corpus.split is None:
        train, test = _parted(stratified(y, request.test_fraction, request.seed))
    else:
        train, test = _parted(np.asarray(corpus.split), request.validation_rows == "train")
    present = np.unique(y[train])
    index = np.full(len(corpus.labels), -1, np.int32)
    index[present] = np.arange(len(present), dtype=np.int32)
    truth = index if tree is None else node_numbers(tree, corpus.labels)
    truth_test = truth[y[test]]
    if request.unseen_labels == "refuse" and (truth_test < 0).any():
        what = "no training row has" if tree is None else "are not in the hierarchy"
        unseen = named(corpus.labels[c] for c in np.unique(y[test][truth_test < 0]))
        raise InvalidInput(
            f"{counted(int((truth_test < 0).sum()), 'test row', 'has/have')} labels that {what}: {unseen}"
        )
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    classes = [corpus.labels[c] for c in present]
    return Rows(train, test, classes, index[y[train]], truth[y[train]], truth_test, tree, weights)


def _split_sets(
    corpus: Corpus,
    request: TrainRequest,
    tree: Taxonomy | None,
    known: VersionLabels,
    split: NDArray[np.int8] | None,
) -> Rows:
    """As :func:`split_rows` of rows with sets of labels, label by label or, in requests of earlier versions, at random.

    Without a hierarchy all labels are children of the top.
    """
    assert corpus.label_indptr is not None
    try:
        tree = tree or Taxonomy.flat(corpus.labels)
        nodes = tree.find(corpus.labels)[np.asarray(corpus.y)]
        along, orphans = closed(tree, np.asarray(corpus.label_indptr), nodes, request.missing_parents)
        labels = known.closed(tree, along)
    except TaxonomyError as error:
        raise InvalidInput(str(error)) from None
    if split is not None:
        train, test = _parted(split)
    elif corpus.split is not None:
        train, test = _parted(np.asarray(corpus.split), request.validation_rows == "train")
    elif request.stratify == "labels":
        train, test = _parted(stratified_sets(labels.indptr, labels.indices, request.test_fraction, request.seed))
    else:
        train, test = _parted(stratified(np.zeros(corpus.n_rows, np.int32), request.test_fraction, request.seed))
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    n_added = orphans.n_added + labels.nnz - along.nnz
    report = {"labels_added": float(n_added), "rows_completed": float(len(np.unique(orphans.rows)))}
    none = np.empty(0, np.int32)
    return Rows(train, test, list(tree.names), none, labels[train], labels[test], tree, weights, report)


def _parted(split: NDArray[Any], with_validation: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows marked 0 and those marked 1; rows for validation are neither, or train, too."""
    train = (split == 0) | (split == PARTS.index("validation")) if with_validation else split == 0
    return np.flatnonzero(train), np.flatnonzero(split == 1)


def node_numbers(tree: Taxonomy, labels: Sequence[str]) -> NDArray[np.int32]:
    """The node of each label; -1 for one that the tree does not have."""
    known = set(tree.names)
    there = np.array([label in known for label in labels])
    nodes = np.full(len(labels), -1, np.int32)
    nodes[there] = tree.find(label for label in labels if label in known)
    return nodes
