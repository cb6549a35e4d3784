"""The rows of a dataset that train and those that test, and what their labels mean there.

Labels that the label tree of a job lacks are refused, dropped, or kept as children of the top.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.errors import InvalidInput
from app.formats.labels import PARTS
from app.hierarchies.label_checks import named
from app.hierarchies.version_labels import VersionLabels
from app.jobs.schemas import TrainRequest
from app.plurals import counted
from app.store.corpus import Corpus
from solvers.core.problem import Problem
from solvers.labels.label_sets import closed
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import ROOT, Taxonomy, TaxonomyError
from solvers.selection.splits import stratified, stratified_sets

Rule = Literal["refuse", "drop", "keep"]


@dataclass(frozen=True, eq=False)
class Known:
    """Rows whose labels the tree has.

    Attributes
    ----------
    lost : bool array, shape (n_rows,), or None
        Rows that had labels, and have none that is known; None where there is no such row.
    unknown : mapping of str to int
        The labels that the tree lacks, the most frequent first, and how many rows have each.
    report : mapping of str to float
    """

    corpus: Corpus
    tree: Taxonomy | None
    lost: NDArray[np.bool_] | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)
    report: Mapping[str, float] = field(default_factory=dict)


def known_labels(corpus: Corpus, tree: Taxonomy | None, rule: Rule) -> Known:
    """Apply the rule of a request; ``refuse`` changes nothing, as the check of the labels refuses them."""
    if tree is None or rule == "refuse":
        return Known(corpus, tree)
    names, y = set(tree.names), np.asarray(corpus.y)
    there = np.array([label in names for label in corpus.labels], bool)
    counts = np.bincount(y, minlength=len(there))
    strange = [at for at in np.flatnonzero(~there).tolist() if counts[at]]
    if not strange:
        return Known(corpus, tree)
    strange.sort(key=lambda at: -int(counts[at]))
    unknown = {corpus.labels[at]: int(counts[at]) for at in strange}
    n_labels = float(counts[strange].sum())
    if rule == "keep":
        return Known(corpus, with_extra_labels(tree, unknown), None, unknown, {"labels_kept": n_labels})
    if corpus.label_indptr is None:
        lost = ~there[y]
        report = {"labels_dropped": n_labels, "rows_dropped": float(lost.sum())}
        return Known(corpus, tree, lost, unknown, report)
    stays, indptr = there[y], np.asarray(corpus.label_indptr)
    before = np.concatenate([[0], np.cumsum(stays)])[indptr].astype(np.int64)
    lost = (np.diff(indptr) > 0) & (np.diff(before) == 0)
    number = np.cumsum(there).astype(np.int32) - 1
    labels = [label for label, is_there in zip(corpus.labels, there.tolist(), strict=True) if is_there]
    shorter = replace(corpus, labels=labels, y=number[y[stays]], label_indptr=before)
    report = {"labels_dropped": n_labels, "rows_dropped": float(lost.sum())}
    return Known(shorter, tree, lost if lost.any() else None, unknown, report)


def with_extra_labels(tree: Taxonomy, labels: Iterable[str]) -> Taxonomy:
    """The tree with further labels as children of the top, in their own order."""
    return Taxonomy.from_graph([*tree.edges, *((ROOT, label) for label in sorted(labels))])


def with_branches(tree: Taxonomy, own: Taxonomy | None, labels: Iterable[str]) -> Taxonomy:
    """The tree with further labels where another tree has them.

    A label, and what is above it there, comes below its nearest ancestor that this tree has; without one, and without
    the other tree, it is a child of the top.
    """
    parent = {} if own is None else {child: above for above, child in reversed(own.edges)}
    edges, known = [], set(tree.names)
    for label in sorted(labels):
        while label not in known and label != ROOT:
            known.add(label)
            above = parent.get(label, ROOT)
            edges.append((above, label))
            label = above
    return Taxonomy.from_graph([*tree.edges, *edges])


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
    weights : float64 array, shape (n_train,), or None
        Of the training rows; None where the dataset gives none.
    report : mapping of str to float
        What was done to the labels.
    unknown : mapping of str to int
        Labels that the label tree lacks, and how many rows have each, where the request drops or keeps them.
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
    unknown: Mapping[str, int] = field(default_factory=dict)

    def problem(self, X: csr_matrix, names: NameBlock | None = None) -> Problem:
        """The training problem, where X has the features of the training rows; raises ProblemError."""
        if isinstance(self.truth_train, csr_matrix):
            assert self.tree is not None
            return replace(Problem.check_sets(X, self.truth_train, self.tree, self.weights), names=names)
        return replace(Problem.check(X, self.y_train, self.classes, self.weights, self.tree), names=names)


def split_rows(
    corpus: Corpus,
    request: TrainRequest,
    tree: Taxonomy | None = None,
    known: VersionLabels | None = None,
    split: NDArray[np.int8] | None = None,
) -> Rows:
    """Split by the dataset's own split, or else as given, or by class at random from the request's seed.

    Labels that the tree lacks are dropped or kept as the request says; rows without any other label are then neither
    trained nor tested on, but those of one label still test. Sets of labels are closed upwards along the tree, and
    along the other parents of its nodes that are ``known``.

    Raises
    ------
    InvalidInput
        Test rows have labels that cannot be predicted, and the request refuses those: labels that no training row has
        or, with a label tree, that are none of its nodes. Or rows have sets of labels that are no nodes, or that lack
        parents which the request wants to be there.
    """
    found = known_labels(corpus, tree, request.unknown_labels)
    rows = _split(found.corpus, request, found.tree, known, split, found.lost)
    return replace(rows, report={**rows.report, **found.report}, unknown=found.unknown)


def _split(
    corpus: Corpus,
    request: TrainRequest,
    tree: Taxonomy | None,
    known: VersionLabels | None,
    split: NDArray[np.int8] | None,
    lost: NDArray[np.bool_] | None,
) -> Rows:
    """As :func:`split_rows`, without the rows that have ``lost`` all their labels."""
    if corpus.label_indptr is not None:
        return _split_sets(corpus, request, tree, known or VersionLabels(), split, lost)
    y = np.asarray(corpus.y)
    if split is not None:
        train, test = _parted(split)
    elif corpus.split is None:
        train, test = _parted(stratified(y, request.test_fraction, request.seed))
    else:
        train, test = _parted(np.asarray(corpus.split), request.validation_rows == "train")
    if lost is not None:
        train = train[~lost[train]]
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
    lost: NDArray[np.bool_] | None,
) -> Rows:
    """As :func:`split_rows` of rows with sets of labels, label by label or, in requests of earlier versions, at random.

    Without a hierarchy all labels are children of the top.
    """
    sets = closed_sets(corpus, tree, known, request.missing_parents)
    tree, labels = sets.tree, sets.labels
    if split is not None:
        train, test = _parted(split)
    elif corpus.split is not None:
        train, test = _parted(np.asarray(corpus.split), request.validation_rows == "train")
    elif request.stratify == "labels":
        train, test = _parted(stratified_sets(labels.indptr, labels.indices, request.test_fraction, request.seed))
    else:
        train, test = _parted(stratified(np.zeros(corpus.n_rows, np.int32), request.test_fraction, request.seed))
    if lost is not None:
        train, test = train[~lost[train]], test[~lost[test]]
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    report = {"labels_added": float(sets.n_added), "rows_completed": float(sets.n_completed)}
    none = np.empty(0, np.int32)
    return Rows(train, test, list(tree.names), none, labels[train], labels[test], tree, weights, report)


class ClosedSets(NamedTuple):
    """The sets of labels of all rows of a dataset, closed upwards.

    Attributes
    ----------
    tree : Taxonomy
        Without a hierarchy all labels are children of the top.
    labels : csr_matrix of bool, shape (n_rows, n_nodes)
    n_added, n_completed : int
        Labels that rows lacked, and rows that lacked some along the tree.
    """

    tree: Taxonomy
    labels: csr_matrix
    n_added: int
    n_completed: int


def closed_sets(
    corpus: Corpus, tree: Taxonomy | None, known: VersionLabels, missing_parents: Literal["add", "refuse"]
) -> ClosedSets:
    """Sets of labels along the tree, and along the other parents of its nodes that are ``known``.

    Raises
    ------
    InvalidInput
        Rows have labels that are no nodes, or lack parents that have to be there.
    """
    assert corpus.label_indptr is not None
    try:
        tree = tree or Taxonomy.flat(corpus.labels)
        nodes = tree.find(corpus.labels)[np.asarray(corpus.y)]
        along, orphans = closed(tree, np.asarray(corpus.label_indptr), nodes, missing_parents)
        labels = known.closed(tree, along)
    except TaxonomyError as error:
        raise InvalidInput(str(error)) from None
    return ClosedSets(tree, labels, orphans.n_added + labels.nnz - along.nnz, len(np.unique(orphans.rows)))


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
