"""The preparation of a job: from a dataset's rows and a label tree to the problem that is solved.

The rows are split, the labels of the training part become classes, and features are learnt from the training part
alone: the same in every process that prepares a job.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput
from app.features.base import Features
from app.features.columns import SparseFeatures
from app.features.text import TextFeatures
from app.formats.table import Texts
from app.schemas.jobs import TrainRequest
from app.schemas.texts import TextRecipe
from app.services import dataset_versions, hierarchies
from app.services.label_checks import named
from app.services.version_labels import VersionLabels, of_hierarchy
from app.store import tables
from app.store.cache import local_copy
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import Files
from solvers.core.memory import refuse
from solvers.core.problem import Problem
from solvers.labels.label_sets import closed
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.selection.splits import stratified, stratified_sets
from workers import warm_starts
from workers.lease_heartbeat import LeaseHeartbeat
from workers.warm_starts import Former

# where fewer than one in so many columns has a value, the others are left out: whatever is made for each of them would
# cost more than what is trained
_MOST_UNUSED = 2
# of the matrix: as it was read, its training and its test rows, and these without the columns that none has
_COPIES = 2

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


@dataclass(frozen=True, eq=False)
class Featured:
    """Fitted features, and the matrices of both parts."""

    features: Features
    X_train: csr_matrix
    X_test: csr_matrix


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is trained on, and what it is tested on."""

    dataset: tables.DatasetVersion
    rows: Rows
    data: Featured
    problem: Problem
    labels: VersionLabels = field(default_factory=VersionLabels)
    former: Former | None = None
    split: NDArray[np.int8] | None = None
    n_rows: int = 0


def prepare(
    heartbeat: LeaseHeartbeat, job_id: str, dataset_id: str | None, store: Files, request: TrainRequest
) -> Prepared:
    """Read the dataset of a job, split it, and make its features.

    Raises
    ------
    Conflict
        The dataset or the hierarchy is not there any more.
    InvalidInput, FitError, ProblemError
        The dataset cannot be trained on.
    """
    heartbeat.phase("loading")
    dataset = heartbeat.read(lambda session: dataset_versions.find(session, dataset_id, request.dataset_version))
    if dataset is None:
        raise Conflict("the dataset is not ready, or was deleted")
    corpus = open_corpus(local_copy(store, dataset.path), dataset.path)
    tree, labels = vocabulary(heartbeat, job_id, request)
    corpus, n_mapped = labels.mapped(corpus)
    former, split = warm_starts.load(heartbeat, store, request), None
    if former is not None and corpus.split is None:
        split = former.split(np.asarray(corpus.y), request.test_fraction, request.seed)
    rows = split_rows(corpus, request, tree, labels, split)
    if n_mapped:
        rows = replace(rows, report={**rows.report, "labels_mapped": float(n_mapped)})
    heartbeat.phase("features")
    data = featured(corpus, rows, request.text or TextRecipe())
    return Prepared(dataset, rows, data, rows.problem(data.X_train), labels, former, split, corpus.n_rows)


def digest(problem: Problem) -> NDArray[np.uint8]:
    """SHA-256 of a problem, shape (32,): every shard of a gang must have made the same one."""
    sha256 = hashlib.sha256("\0".join(problem.classes).encode())
    for array in (problem.X.indptr, problem.X.indices, problem.X.data, problem.y, problem.weights):
        sha256.update(np.ascontiguousarray(array).data)
    return np.frombuffer(sha256.digest(), np.uint8)


def vocabulary(heartbeat: LeaseHeartbeat, job_id: str, request: TrainRequest) -> tuple[Taxonomy | None, VersionLabels]:
    """The tree of the job's hierarchy, and what it says of the labels; raises Conflict where that was deleted.

    None, and nothing, where the job names no hierarchy.
    """
    if request.hierarchy is None:
        return None, VersionLabels()
    id = heartbeat.read(lambda session: hierarchy_id(session, job_id))
    tree = None if id is None else heartbeat.read(lambda session: hierarchies.taxonomy(session, id))
    if id is None or tree is None:
        raise Conflict("the hierarchy was deleted")
    return tree, heartbeat.read(lambda session: of_hierarchy(session, id))


def hierarchy_id(session: Session, job_id: str) -> str | None:
    """The id of a job's hierarchy, as long as it is there."""
    with reading(session):
        return session.scalars(select(tables.Job.hierarchy_id).where(tables.Job.id == job_id)).one()


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
        return _split_sets(corpus, request, tree, known or VersionLabels())
    y = np.asarray(corpus.y)
    if split is not None:
        train, test = _parted(split)
    elif corpus.split is None:
        train, test = _parted(stratified(y, request.test_fraction, request.seed))
    else:
        train, test = _parted(np.asarray(corpus.split))
    present = np.unique(y[train])
    index = np.full(len(corpus.labels), -1, np.int32)
    index[present] = np.arange(len(present), dtype=np.int32)
    truth = index if tree is None else node_numbers(tree, corpus.labels)
    truth_test = truth[y[test]]
    if request.unseen_labels == "refuse" and (truth_test < 0).any():
        what = "no training row has" if tree is None else "are not in the hierarchy"
        unseen = named(corpus.labels[c] for c in np.unique(y[test][truth_test < 0]))
        raise InvalidInput(f"{int((truth_test < 0).sum())} test row(s) have labels that {what}: {unseen}")
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    classes = [corpus.labels[c] for c in present]
    return Rows(train, test, classes, index[y[train]], truth[y[train]], truth_test, tree, weights)


def featured(corpus: Corpus, rows: Rows, recipe: TextRecipe) -> Featured:
    """Make the matrices; raises FitError where no term of the texts is left."""
    if corpus.texts is not None:
        features, X_train = TextFeatures.fit(ChosenTexts(corpus.texts, rows.train), recipe)
        return Featured(features, X_train, features.transform(ChosenTexts(corpus.texts, rows.test)))
    assert corpus.X is not None
    n_features = int(corpus.X.shape[1])
    require_matrix(len(rows.train) + len(rows.test), int(corpus.X.nnz))
    X_train, X_test = corpus.X[rows.train], corpus.X[rows.test]
    used = _used(X_train)
    given = SparseFeatures(n_features, corpus.feature_names)
    if _MOST_UNUSED * len(used) >= n_features:
        return Featured(given, X_train, X_test)
    given = SparseFeatures(n_features, corpus.feature_names, used)
    return Featured(given, given.transform(X_train), given.transform(X_test))


def require_matrix(n_rows: int, nnz: int) -> None:
    """Raise TooLargeError where a job may not hold a sparse matrix of that size as often as preparing it takes."""
    refuse(f"preparing {n_rows:,} rows with {nnz:,} values", _COPIES * (12 * nnz + 8 * n_rows), None)


def _used(X: csr_matrix) -> NDArray[np.int32]:
    """The columns that some row has, ascending; the first, where none has any."""
    if X.shape[1] <= 8 * X.nnz:
        there = np.zeros(X.shape[1], bool)
        there[X.indices] = True
        used = np.flatnonzero(there)
    else:
        used = np.unique(X.indices)  # costs nothing for those that are not there
    return np.asarray(used if len(used) else [0], np.int32)


def _split_sets(corpus: Corpus, request: TrainRequest, tree: Taxonomy | None, known: VersionLabels) -> Rows:
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
    if corpus.split is not None:
        train, test = _parted(np.asarray(corpus.split))
    elif request.stratify == "labels":
        train, test = _parted(stratified_sets(labels.indptr, labels.indices, request.test_fraction, request.seed))
    else:
        train, test = _parted(stratified(np.zeros(corpus.n_rows, np.int32), request.test_fraction, request.seed))
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    n_added = orphans.n_added + labels.nnz - along.nnz
    report = {"labels_added": float(n_added), "rows_completed": float(len(np.unique(orphans.rows)))}
    none = np.empty(0, np.int32)
    return Rows(train, test, list(tree.names), none, labels[train], labels[test], tree, weights, report)


def _parted(split: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows marked 0 and those marked 1; rows for validation are neither."""
    return np.flatnonzero(split == 0), np.flatnonzero(split == 1)


def node_numbers(tree: Taxonomy, labels: Sequence[str]) -> NDArray[np.int32]:
    """The node of each label; -1 for one that the tree does not have."""
    known = set(tree.names)
    there = np.array([label in known for label in labels])
    nodes = np.full(len(labels), -1, np.int32)
    nodes[there] = tree.find(label for label in labels if label in known)
    return nodes


class ChosenTexts:
    """The texts of some rows, decoded one at a time, as often as asked for."""

    def __init__(self, texts: Sequence[str] | Texts, rows: NDArray[np.int64]) -> None:
        self._texts = texts
        self._rows = rows

    def __iter__(self) -> Iterator[str]:
        for row in self._rows.tolist():
            yield self._texts[row]
