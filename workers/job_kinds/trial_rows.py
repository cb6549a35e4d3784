"""The rows that trials of a tuning are trained and measured on, and their features.

Features are learnt from the training rows of each fold alone. What trials of the same recipe have in common stays in
this process until another recipe, or a job of another kind, comes: trials of one recipe follow one another.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets import versions as dataset_versions
from app.datasets.recipe_schemas import TextRecipe
from app.errors import InvalidInput
from app.formats.labels import PARTS
from app.hierarchies.version_labels import VersionLabels
from app.jobs.request_schemas import HeldOut, TuneRequest
from app.jobs.schemas import TrainRequest
from app.store import tables
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import files
from solvers.core.base import Solver
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.selection.splits import stratified, stratified_folds, stratified_sets
from workers.phases.featuring import Featured, featured, kernel_featured
from workers.phases.holding_out import arrivals, held_out
from workers.phases.preparation import vocabulary
from workers.phases.splitting import Rows, split_rows
from workers.running.job_context import JobContext
from workers.running.job_memory import job_bytes

# of what a job may take
_KEPT_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on and rows to measure on, with their features."""

    rows: Rows
    data: Featured
    problem: Problem

    @property
    def nbytes(self) -> int:
        """Of the features."""
        X = (self.data.X_train, self.data.X_test)
        return int(sum(each.data.nbytes + each.indices.nbytes + each.indptr.nbytes for each in X))


@dataclass(eq=False)
class TrialRows:
    """What trials of one tuning and one recipe share.

    Attributes
    ----------
    dataset : DatasetVersion
    splits : list of int8 arrays, shape (n_rows,)
        For each fold 0 of rows to train on, 1 of rows to measure on, 2 of all others.
    train : int64 array
        The rows for training, which the folds are made of.
    """

    dataset: tables.DatasetVersion
    corpus: Corpus
    tree: Taxonomy | None
    labels: VersionLabels
    held_out: HeldOut
    splits: list[NDArray[np.int8]]
    request: TrainRequest
    recipe: TextRecipe
    train: NDArray[np.int64]
    _folds: dict[tuple[int, bool, bool], Fold] = field(default_factory=dict)

    def fold(self, at: int, context: JobContext, solver: Solver[Any]) -> Fold:
        """One of the folds with the features that a solver takes; kept for the trials to come where there is room.

        Of rows that are values of a kernel, those with the rows to train on alone are taken.
        """
        named = solver.takes_names(sets=self.corpus.label_indptr is not None, named=self.labels.has_names)
        key = at, solver.takes_kernel_values, named
        found = self._folds.get(key)
        if found is None:
            context.phase("features", point=at)
            rows = split_rows(self.corpus, self.request, self.tree, self.labels, self.splits[at])
            if solver.takes_kernel_values:
                data = kernel_featured(self.corpus, rows, self.train, self.request.columns)
            else:
                names = self.labels if named else None
                data = featured(self.corpus, rows, self.recipe, self.request.columns, names)
            found = Fold(rows, data, rows.problem(data.X_train, data.names))
            if found.nbytes + sum(each.nbytes for each in self._folds.values()) <= _KEPT_SHARE * job_bytes():
                self._folds[key] = found
        return found


_kept: dict[str, TrialRows] = {}


def forget() -> None:
    """Free what was kept for trials to come."""
    _kept.clear()


def trial_rows(context: JobContext, request: TuneRequest, recipe: TextRecipe | None) -> TrialRows:
    """The rows of a trial; raises InvalidInput where none can be held out, Conflict where the dataset is gone."""
    lease = context.lease
    recipe = recipe or TextRecipe()
    key = f"{lease.parent_id} {recipe.model_dump_json()}"
    if key not in _kept:
        forget()
        context.phase("loading")
        _kept[key] = _load(context, request, recipe)
    return _kept[key]


def _load(context: JobContext, request: TuneRequest, recipe: TextRecipe) -> TrialRows:
    lease = context.lease
    dataset = context.read(lambda session: dataset_versions.stored(session, lease.dataset_id, request.dataset_version))
    shared = {name: getattr(request, name) for name in ("dataset", "model", "hierarchy", "seed", "test_fraction")}
    training = TrainRequest(
        **shared,
        stratify=request.stratify,
        missing_parents=request.missing_parents,
        unknown_labels=request.unknown_labels,
        columns=request.columns,
        unseen_labels="count",
        validation_rows="train",
    )
    corpus = cached_corpus(files(), dataset.path)
    tree, labels = vocabulary(context, lease.job_id, training)
    corpus, _ = labels.mapped(corpus)
    split = None
    if corpus.split is None:
        given = arrivals(context, files(), dataset.dataset_id, dataset.number, corpus, labels)
        split = corpus.present(held_out(given, training, tree, labels))
    rows = split_rows(corpus, training, tree, labels, split)
    by, parts = _held_out(corpus, rows, request)
    splits = []
    for out in parts:
        split = np.full(corpus.n_rows, PARTS.index("validation"), np.int8)
        split[rows.train[~out]], split[rows.train[out]] = 0, 1
        splits.append(split)
    reported = HeldOut(
        by=by,
        folds=len(splits),
        seed=request.seed,
        n_train=int((splits[0] == 0).sum()),
        n_held_out=int(sum((split == 1).sum() for split in splits)),
    )
    return TrialRows(dataset, corpus, tree, labels, reported, splits, training, recipe, rows.train)


def _held_out(corpus: Corpus, rows: Rows, request: TuneRequest) -> tuple[str, list[NDArray[np.bool_]]]:
    """Which of the training rows each fold holds out, and what that goes by."""
    sets = rows.truth_train if isinstance(rows.truth_train, csr_matrix) else None
    if request.folds is not None:
        if sets is None:
            fold = stratified_folds(rows.y_train, request.folds, request.seed)
        else:
            shuffled = np.random.default_rng([request.seed, 0x5E75]).permutation(len(rows.train))
            fold = np.empty(len(rows.train), np.int64)
            fold[shuffled] = np.arange(len(rows.train)) % request.folds
        by, parts = "folds", [fold == number for number in range(request.folds)]
    else:
        marked = None if corpus.split is None else np.asarray(corpus.split)[rows.train] == PARTS.index("validation")
        if marked is not None and marked.any():
            by, parts = "validation", [marked]
        elif sets is None:
            by, parts = "fraction", [stratified(rows.y_train, request.validation_fraction, request.seed)]
        else:
            by = "fraction"
            parts = [stratified_sets(sets.indptr, sets.indices, request.validation_fraction, request.seed)]
    parts = [out for out in parts if out.any() and not out.all()]
    if not parts:
        raise InvalidInput("no row can be held out: every class has only one row")
    return by, parts
