"""The preparation of a job: from a dataset's rows and a label tree to the problem that is solved.

The rows are split, the labels of the training part become classes, and features are learnt from the training part
alone: the same in every process that prepares a job.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.datasets.recipe_schemas import TextRecipe
from app.errors import Conflict
from app.features.named_text import OF_TABLES
from app.formats.labels import PARTS
from app.hierarchies.nodes import taxonomy
from app.hierarchies.version_labels import VersionLabels, of_hierarchy
from app.jobs.leases import Lease
from app.jobs.request_schemas import AdoptRequest
from app.jobs.schemas import TrainRequest
from app.jobs.slots import ShardLease
from app.store import tables
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.db import reading
from app.store.files import Files
from solvers.core.base import Solver
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from workers.phases import certain_rows, warm_starts
from workers.phases.featuring import Featured, chosen_text, featured, kernel_featured, with_chosen_weight
from workers.phases.holding_out import arrivals, held_out
from workers.phases.splitting import Rows, node_numbers, split_rows
from workers.phases.warm_starts import Former
from workers.running.job_context import LeaseHeartbeat

_SHOWN = 20
_log = structlog.get_logger("polymargin.worker")


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is trained on, and what it is tested on.

    Attributes
    ----------
    dataset : DatasetVersion
    tree : Taxonomy or None
        Of the job's hierarchy.
    split : int8 array, shape (n_rows,), or None
        0 of rows that train, 1 of rows that are held out; None where the dataset has a split of its own.
    certain : Corpus or None
        The other dataset whose answers end the training.
    """

    dataset: tables.DatasetVersion
    corpus: Corpus
    rows: Rows
    data: Featured
    problem: Problem
    labels: VersionLabels = field(default_factory=VersionLabels)
    tree: Taxonomy | None = None
    former: Former | None = None
    split: NDArray[np.int8] | None = None
    certain: Corpus | None = None

    @property
    def n_rows(self) -> int:
        """Of the dataset."""
        return self.corpus.n_rows

    @cached_property
    def rows_to_answer(self) -> csr_matrix:
        """The rows whose answers may end the training; raises InvalidInput where they do not fit the features."""
        return self.data.X_test if self.certain is None else certain_rows.features(self.certain, self.data)


def prepare(
    heartbeat: LeaseHeartbeat, lease: Lease | ShardLease, store: Files, request: TrainRequest, solver: Solver[Any]
) -> Prepared:
    """Read the dataset of a job, split it, and make the features that the solver takes.

    Raises
    ------
    Conflict
        A dataset or the hierarchy is not there any more.
    InvalidInput, FitError, ProblemError
        The dataset cannot be trained on.
    """
    heartbeat.phase("loading")
    job_id = lease.job_id
    dataset = heartbeat.read(
        lambda session: dataset_versions.stored(session, lease.dataset_id, request.dataset_version)
    )
    corpus = cached_corpus(store, dataset.path)
    tree, labels = vocabulary(heartbeat, job_id, request)
    corpus, n_mapped = labels.mapped(corpus)
    former, split = warm_starts.load(heartbeat, store, request), None
    if corpus.split is None:
        given = arrivals(heartbeat, store, dataset.dataset_id, dataset.number, corpus, labels)
        split = corpus.present(held_out(given, request, tree, labels))
        split = split if former is None else former.split(split)
    rows = split_rows(corpus, request, tree, labels, split)
    if rows.unknown:
        _log.warning("unknown_labels", job_id=job_id, rule=request.unknown_labels, **unknown_shown(rows.unknown))
    if n_mapped:
        rows = replace(rows, report={**rows.report, "labels_mapped": float(n_mapped)})
    certain = certain_rows.load(heartbeat, store, request)
    heartbeat.phase("features")
    data = features_of(corpus, rows, request, solver, labels)
    rows = _with_chosen(rows, data)
    problem = rows.problem(data.X_train, data.names)
    return Prepared(dataset, corpus, rows, data, problem, labels, tree, former, split, certain)


def all_rows(prepared: Prepared, request: TrainRequest, solver: Solver[Any]) -> Prepared:
    """The same with the rows that were held out among those that train; features are learnt from all of them.

    Test rows stay out whose label is no node of the label tree, unless the request says what to do with such labels.

    Raises
    ------
    InvalidInput, FitError, ProblemError
        All rows cannot be trained on.
    """
    corpus, tree = prepared.corpus, prepared.tree
    split = np.zeros(corpus.n_rows, np.int8)
    if tree is not None and corpus.label_indptr is None and request.unknown_labels == "refuse":
        split[node_numbers(tree, corpus.labels)[np.asarray(corpus.y)] < 0] = PARTS.index("validation")
    rows = split_rows(corpus, request, tree, prepared.labels, split)
    request = request.model_copy(update={"columns": with_chosen_weight(request.columns, prepared.data)})
    chosen = chosen_text(prepared.data) if request.text is not None and request.text.fields == "auto" else None
    data = features_of(corpus, rows, request, solver, prepared.labels, chosen)
    data = replace(data, report=prepared.data.report)
    rows = _with_chosen(rows, data)
    return replace(prepared, rows=rows, data=data, problem=rows.problem(data.X_train, data.names), former=None)


def _with_chosen(rows: Rows, data: Featured) -> Rows:
    """The rows with a report of the weights that were chosen for text columns, and of that of lists of numbers."""
    rows = replace(rows, report={**rows.report, **data.report})
    weight = data.features.terms.vector_weight if isinstance(data.features, OF_TABLES) else None
    if weight is None:
        return rows
    assert weight != "auto"
    return replace(rows, report={**rows.report, "vector_weight": weight})


def places(prepared: Prepared, among: Prepared) -> NDArray[np.int64]:
    """The place of each training row among those of another preparation of the dataset; -1 where it has none."""
    train, other = prepared.rows.train, among.rows.train
    at = np.searchsorted(other, train)
    known = at < len(other)
    known[known] = other[at[known]] == train[known]
    return np.where(known, at, -1)


def features_of(
    corpus: Corpus,
    rows: Rows,
    request: TrainRequest,
    solver: Solver[Any],
    labels: VersionLabels,
    chosen: TextRecipe | None = None,
) -> Featured:
    """The features that the solver takes, learnt from the rows that train; ``chosen`` as :func:`featured` has it."""
    if solver.takes_kernel_values:
        return kernel_featured(corpus, rows, rows.train, request.columns)
    takes = solver.takes_names(sets=corpus.label_indptr is not None, named=labels.has_names)
    names = labels if takes else None
    return featured(corpus, rows, request.text or TextRecipe(), request.columns, names, chosen)


def unknown_shown(unknown: Mapping[str, int]) -> dict[str, Any]:
    """How many labels are unknown and how many rows have them, and the most frequent by name."""
    first = dict(list(unknown.items())[:_SHOWN])
    return {"n_labels": len(unknown), "n_rows_with_them": sum(unknown.values()), "labels": first}


def digest(problem: Problem) -> NDArray[np.uint8]:
    """SHA-256 of a problem, shape (32,): every shard of a gang must have made the same one."""
    sha256 = hashlib.sha256("\0".join(problem.classes).encode())
    for array in (problem.X.indptr, problem.X.indices, problem.X.data, problem.y, problem.weights):
        sha256.update(np.ascontiguousarray(array).data)
    return np.frombuffer(sha256.digest(), np.uint8)


def vocabulary(
    heartbeat: LeaseHeartbeat, job_id: str, request: TrainRequest | AdoptRequest
) -> tuple[Taxonomy | None, VersionLabels]:
    """The tree of the job's hierarchy with facts about its labels, or None without facts if the job names none.

    Raises
    ------
    Conflict
        The hierarchy was deleted.
    """
    if request.hierarchy is None:
        return None, VersionLabels()
    id = heartbeat.read(lambda session: hierarchy_id(session, job_id))
    tree = None if id is None else heartbeat.read(lambda session: taxonomy(session, id))
    if id is None or tree is None:
        raise Conflict("the hierarchy was deleted")
    return tree, heartbeat.read(lambda session: of_hierarchy(session, id, tree.names))


def hierarchy_id(session: Session, job_id: str) -> str | None:
    """The id of a job's hierarchy, as long as it is there."""
    with reading(session):
        return session.scalars(select(tables.Job.hierarchy_id).where(tables.Job.id == job_id)).one()
