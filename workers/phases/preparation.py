"""The preparation of a job: from a dataset's rows and a label tree to the problem that is solved.

The rows are split, the labels of the training part become classes, and features are learnt from the training part
alone: the same in every process that prepares a job.
"""

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.datasets.texts import TextRecipe
from app.schemas.jobs.jobs import TrainRequest
from app.services.datasets import dataset_versions
from app.services.hierarchies import hierarchies
from app.services.hierarchies.version_labels import VersionLabels, of_hierarchy
from app.store import tables
from app.store.cache import local_copy
from app.store.corpus import open_corpus
from app.store.db import reading
from app.store.files import Files
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import make
from workers.phases import warm_starts
from workers.phases.featuring import Featured, featured, kernel_featured
from workers.phases.splitting import Rows, split_rows
from workers.phases.warm_starts import Former
from workers.running.lease_heartbeat import LeaseHeartbeat


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
    if make(request.solver, request.params).takes_kernel_values:
        data = kernel_featured(corpus, rows, rows.train, request.columns)
    else:
        data = featured(corpus, rows, request.text or TextRecipe(), request.columns)
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
