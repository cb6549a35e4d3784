"""The rows whose answers end a training as soon as they are certain: those held out, or those of another dataset."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput
from app.jobs.schemas import TrainRequest
from app.models.rows import matrix
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files
from solvers.core.base import Solver
from solvers.core.certain_training import UntilCertain
from workers.phases.featuring import Featured
from workers.running.job_context import LeaseHeartbeat


def load(heartbeat: LeaseHeartbeat, store: Files, request: TrainRequest) -> Corpus | None:
    """The other dataset that a request names; raises Conflict where it was deleted."""
    if request.certain_rows is None:
        return None
    id, _, number = request.certain_rows.partition("@")
    found = heartbeat.read(lambda session: dataset_versions.find(session, id, int(number)))
    if found is None:
        raise Conflict("the dataset of certain_rows was deleted")
    return cached_corpus(store, found.path)


def features(rows: Corpus, data: Featured) -> csr_matrix:
    """The rows of the other dataset as the model reads them; raises InvalidInput where they do not fit."""
    try:
        return matrix(rows, data.features, np.arange(rows.n_rows))
    except InvalidInput as error:
        raise InvalidInput(f"certain_rows: {error}") from None


def until_certain(machine: Solver[Any], X: csr_matrix, request: TrainRequest) -> Solver[Any]:
    """What trains: the machine, or where the request says so, until enough answers to the rows of X are certain."""
    if request.until_certain is None or X.shape[0] == 0:
        return machine
    return UntilCertain(machine, X, request.until_certain)
