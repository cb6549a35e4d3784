"""Inputs of an evaluation job: the version, the rows, their labels by the model's numbers, and label frequencies."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.sparse import csr_matrix
from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.errors import InvalidInput
from app.evaluations.schemas import EvaluateRequest
from app.formats.labels import PARTS
from app.hierarchies.label_checks import named
from app.hierarchies.nodes import taxonomy
from app.hierarchies.version_labels import VersionLabels
from app.jobs.schemas import TrainRequest, stored_request
from app.models import service as models
from app.models.rows import matrix
from app.models.schemas import ModelVersion
from app.models.warm_starts import saved_split
from app.plurals import counted
from app.predictions.model_cache import LoadedModel, load_version
from app.store import tables
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files
from solvers.core.model import Model
from solvers.labels.label_sets import closed, own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.evaluation import Labels, Truth
from solvers.metrics.ranking import propensities
from workers.phases.holding_out import arrivals, held_out
from workers.phases.preparation import hierarchy_id
from workers.phases.splitting import Rows, node_numbers, split_rows, with_branches
from workers.running.job_context import JobContext

# of scores that are there at once, and of rows
CHUNK_BYTES, MOST_ROWS = 64 << 20, 4096


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """The rows of an evaluation.

    Attributes
    ----------
    rows : int64 array
        Row numbers, ascending.
    n_unknown : int
        Rows with a label that the model cannot name.
    inverse : float64 array, shape (n_labels,), or None
        ``1 / p`` of each label by its training rows; None if these were deleted.
    n_train : int
        Those training rows.
    n_own : int64 array, shape (n_labels,), or None
        For sets of labels: number of training rows with each label as their own; None if these were deleted.
    tree_sha256 : str or None
        Of the tree that is measured along, without labels that it lacks.
    """

    dataset: tables.DatasetVersion
    loaded: LoadedModel
    corpus: Corpus
    rows: NDArray[np.int64]
    labels: Labels
    truth: Truth
    n_unknown: int
    inverse: NDArray[np.float64] | None
    n_train: int
    n_own: NDArray[np.int64] | None
    tree_sha256: str | None

    @property
    def measured(self) -> bool:
        """Whether it is the version's measured model that answers, not the one that is served."""
        return self.loaded.measured

    def matrix(self, begin: int, end: int) -> csr_matrix:
        """The features of some of the rows, as the model reads them; raises InvalidInput where it cannot."""
        return self.matrix_of(np.arange(begin, end))

    def matrix_of(self, places: NDArray[np.int64]) -> csr_matrix:
        """The features of the rows in these places."""
        return matrix(self.corpus, self.loaded.features, self.rows[places])


def job_tree(context: JobContext) -> Taxonomy | None:
    """The label tree that the job names, where it is still there."""
    return context.read(lambda session: _tree(session, context.lease.job_id))


def evaluated_rows(
    context: JobContext, store: Files, request: EvaluateRequest, tree: Taxonomy | None = None
) -> EvaluatedRows:
    """Load the version and the dataset of a job, and choose and label the rows that are measured.

    Parameters
    ----------
    tree : Taxonomy, optional
        Measured along; by default that of the model, where it has one.

    Raises
    ------
    NotFound, Conflict
        The version or the dataset is not there any more.
    InvalidInput
        The dataset has no such rows, or the tree does not fit the model.
    """
    lease = context.lease
    dataset = context.read(lambda session: dataset_versions.stored(session, lease.dataset_id, request.dataset_version))
    version = context.read(lambda session: models.version(session, request.model, request.version))
    # on rows that the served model is trained on, its measured twin answers
    measured = lease.dataset_id == version.dataset or dataset.sha256 == version.dataset_sha256
    loaded = context.read(lambda session: load_version(session, version, measured=measured))
    corpus, _ = loaded.labels.mapped(cached_corpus(store, dataset.path))
    trained = _trained_on(context, store, version, loaded)
    split = None
    if trained is not None and version.dataset == dataset.dataset_id and corpus.split is None:
        given = arrivals(context, store, dataset.dataset_id, dataset.number, corpus, loaded.labels)
        along = None if trained.request.hierarchy is None else loaded.model.tree
        dealt = corpus.present(held_out(given, trained.request, along, loaded.labels))
        split = trained.onto(dealt, corpus)
    rows = _part(request, corpus, split)
    own_tree = loaded.tree
    if tree is not None and own_tree is None and version.hierarchy is not None:
        own_tree = context.read(lambda session: taxonomy(session, str(version.hierarchy)))
    labels = labels_of(loaded.model, tree, own_tree)
    labels, truth, n_unknown = labelled(corpus, rows, labels, loaded.labels)
    inverse, n_own = None, None
    if trained is not None:
        counts = np.array([trained.counts.get(name, 0) for name in labels.names])
        inverse = 1 / propensities(counts, len(trained.split.train), request.propensity_a, request.propensity_b)
        own = trained.own_counts()
        n_own = None if own is None else np.array([own.get(name, 0) for name in labels.names], np.int64)
    n_train = 0 if trained is None else len(trained.split.train)
    along = tree or loaded.model.tree
    sha256 = None if along is None else along.sha256
    return EvaluatedRows(dataset, loaded, corpus, rows, labels, truth, n_unknown, inverse, n_train, n_own, sha256)


def training_counts(split: Rows) -> dict[str, int]:
    """How many training rows have each label, those below it included along a tree of sets."""
    if isinstance(split.truth_train, csr_matrix):
        counts = np.asarray(split.truth_train.sum(axis=0)).ravel()
    else:
        counts = np.bincount(split.y_train, minlength=len(split.classes))
    return dict(zip(split.classes, counts.tolist(), strict=True))


def labelled(
    corpus: Corpus, rows: NDArray[np.int64], labels: Labels, reported: VersionLabels | None = None
) -> tuple[Labels, Truth, int]:
    """Labels of some rows of a dataset as indices of a model's labels, including labels that it does not have.

    Returns
    -------
    labels : Labels
        The model's, and then those of the rows that are none of these.
    truth : Truth
    n_unknown : int
        Rows that have one of the latter.
    """
    indptr = np.arange(corpus.n_rows + 1) if corpus.label_indptr is None else np.asarray(corpus.label_indptr)
    given = csr_matrix((np.ones(len(corpus.y), bool), np.asarray(corpus.y), indptr))[rows]
    number = {name: at for at, name in enumerate(labels.names)}
    known = np.array([number.get(name, -1) for name in corpus.labels], np.int64)
    present = np.unique(given.indices)
    strange = present[known[present] < 0]
    known[strange] = labels.n_known + np.arange(len(strange))
    more = Labels(
        (*labels.names, *(corpus.labels[at] for at in strange)), labels.n_known, labels.class_labels, labels.tree
    )
    found = known[given.indices]
    row = np.repeat(np.arange(len(rows)), np.diff(given.indptr))
    n_unknown = len(np.unique(row[found >= labels.n_known]))
    if corpus.label_indptr is None:
        return more, Truth(more.close(found), found), n_unknown
    sets = sp.csr_matrix((np.ones(len(found), bool), (row, found)), shape=(len(rows), more.n))
    if labels.tree is not None:
        own = sets[:, : labels.n_known]
        complete, _ = closed(labels.tree, own.indptr, own.indices)
        complete = complete if reported is None else reported.closed(labels.tree, complete)
        sets = sp.csr_matrix(sp.hstack([complete, sets[:, labels.n_known :]], format="csr"), dtype=bool)
    sets.sum_duplicates()
    return more, Truth(sets), n_unknown


@dataclass(frozen=True, eq=False)
class _Trained:
    """The rows that a version was measured without, and those that it was trained on, by how many have each label."""

    split: Rows
    counts: Mapping[str, int]
    request: TrainRequest
    corpus: Corpus

    def own_counts(self) -> dict[str, int] | None:
        """How many training rows have each label as their own, of sets of labels."""
        sets, tree = self.split.truth_train, self.split.tree
        if tree is None or not isinstance(sets, csr_matrix):
            return None
        own = own_labels(sets, tree.parents)
        return dict(zip(tree.names, np.asarray(own.sum(axis=0)).ravel().tolist(), strict=True))

    def onto(self, grown: NDArray[np.int8], corpus: Corpus) -> NDArray[np.int8]:
        """0 of the rows that it was trained on, 1 of those held out, of another version of the dataset.

        Parameters
        ----------
        grown : int8 array
            How that one's rows are dealt out by the same request: what came later is taken from there. Where nothing
            is held out, all that came later is.
        corpus : Corpus
            That version's.
        """
        found = np.ones_like(grown) if self.request.test_fraction == 0 else grown.copy()
        own = np.full(self.corpus.n_rows, PARTS.index("validation"), np.int8)
        own[self.split.train], own[self.split.test] = 0, 1
        at = corpus.places_in(self.corpus)
        found[at >= 0] = own[at[at >= 0]]
        return found


def _trained_on(context: JobContext, store: Files, version: ModelVersion, loaded: LoadedModel) -> _Trained | None:
    """None where the dataset is gone, or was split in a way that is not known here."""
    if version.dataset is None:
        return None
    number = version.request.get("dataset_version")
    dataset = context.read(lambda session: dataset_versions.find(session, version.dataset, number))
    if dataset is None:
        return None
    try:
        request = stored_request(version.request)
        rule = "refuse" if request.unknown_labels == "refuse" else "drop"
        request = request.model_copy(update={"unseen_labels": "count", "unknown_labels": rule})
    except ValidationError:
        return None
    model = loaded.model
    corpus, _ = loaded.labels.mapped(cached_corpus(store, dataset.path))
    if corpus.label_indptr is not None and model.tree is None:
        return None
    folder = context.read(lambda session: models.folder(session, version.id))
    split = split_rows(corpus, request, model.tree, loaded.labels, saved_split(store, folder))
    return _Trained(split, training_counts(split), request, corpus)


def _part(request: EvaluateRequest, corpus: Corpus, own: NDArray[np.int8] | None) -> NDArray[np.int64]:
    if request.part == "all":
        rows = np.arange(corpus.n_rows, dtype=np.int64)
    elif corpus.split is not None:
        rows = np.flatnonzero(np.asarray(corpus.split) == PARTS.index(request.part))
    elif request.part == "validation":
        raise InvalidInput("the dataset has no rows for validation")
    elif own is not None:
        rows = np.flatnonzero(own == PARTS.index(request.part))
    else:
        raise InvalidInput("the split that the version was trained with is not recorded")
    if len(rows) == 0:
        raise InvalidInput(f"the dataset has no rows in the part {request.part}")
    return rows


def labels_of(model: Model, tree: Taxonomy | None, own: Taxonomy | None = None) -> Labels:
    """What the model can name, in the tree that is measured along where there is one.

    Labels that this tree does not have get the places that they have in the model's own tree.

    Parameters
    ----------
    tree : Taxonomy, optional
        Measured along; by default the model's own, of models over one.
    own : Taxonomy, optional
        The tree of a model whose classes are not its nodes.

    Raises
    ------
    InvalidInput
        The tree has less than half of the model's labels.
    """
    own = model.tree or own
    if tree is None:
        if model.tree is None:
            return Labels(tuple(model.classes), len(model.classes), np.arange(len(model.classes)))
        tree = model.tree
    missing = set(model.classes) - set(tree.names)
    if 2 * len(missing - set(model.record.get("unknown_labels", ()))) > len(model.classes):
        raise InvalidInput(
            f"the label tree has no node for {counted(len(missing), 'label')} of the model's {len(model.classes)}: "
            f"{named(sorted(missing))}; pass as hierarchy the tree that the model was trained along, or another "
            "edition of it"
        )
    if missing:
        tree = with_branches(tree, own, missing)
    return Labels(tree.names, tree.n_nodes, node_numbers(tree, model.classes).astype(np.int64), tree)


def _tree(session: Session, job_id: str) -> Taxonomy | None:
    id = hierarchy_id(session, job_id)
    return None if id is None else taxonomy(session, id)
