"""A training request's problem, from the dataset's arrays: the same in every process that makes it."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import Conflict
from app.schemas.jobs import TrainRequest
from app.store import tables
from app.store.cache import local_copy
from app.store.corpus import open_corpus
from app.store.files import Files
from solvers.core.problem import Problem
from workers.featuring import Featured, featured
from workers.job_context import JobContext
from workers.lease_heartbeat import LeaseHeartbeat
from workers.rows import Rows, split_rows
from workers.trees import label_tree


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is trained on, and what it is tested on."""

    dataset: tables.Dataset
    rows: Rows
    data: Featured
    problem: Problem


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
    tell = heartbeat.phase if isinstance(heartbeat, JobContext) else _nobody
    tell("loading")
    dataset = heartbeat.read(lambda session: session.get(tables.Dataset, dataset_id))
    if dataset is None or dataset.path is None:
        raise Conflict("the dataset is not ready, or was deleted")
    corpus = open_corpus(local_copy(store, dataset.path), dataset.path)
    rows = split_rows(corpus, request, label_tree(heartbeat, job_id, request))
    tell("features")
    data = featured(corpus, rows, request.text)
    return Prepared(dataset, rows, data, rows.problem(data.X_train))


def digest(problem: Problem) -> NDArray[np.uint8]:
    """SHA-256 of a problem, shape (32,): every shard of a gang must have made the same one."""
    sha256 = hashlib.sha256("\0".join(problem.classes).encode())
    for array in (problem.X.indptr, problem.X.indices, problem.X.data, problem.y, problem.weights):
        sha256.update(np.ascontiguousarray(array).data)
    return np.frombuffer(sha256.digest(), np.uint8)


def _nobody(_phase: str) -> None:
    """A shard tells nobody what it does."""
