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
from solvers.core.certain_answers import certain
from solvers.core.certain_training import UntilCertain
from solvers.core.model import Model
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


def until_certain(machine: Solver[Any], rows: Corpus | None, data: Featured, request: TrainRequest) -> Solver[Any]:
    """What trains: the machine, or where the request says so, until enough answers are certain.

    Parameters
    ----------
    rows : Corpus, optional
        The other dataset; by default the rows held out.

    Raises
    ------
    InvalidInput
        Its rows do not fit the features.
    """
    if request.until_certain is None:
        return machine
    X = data.X_test if rows is None else _features(rows, data)
    return UntilCertain(machine, X, request.until_certain) if X.shape[0] else machine


def share_certain(model: Model, rows: Corpus, data: Featured) -> float:
    """The share of the other dataset's rows that have a certain answer; the model has a reach."""
    return float(certain(model, _features(rows, data)).mean())


def _features(rows: Corpus, data: Featured) -> csr_matrix:
    try:
        return matrix(rows, data.features, np.arange(rows.n_rows))
    except InvalidInput as error:
        raise InvalidInput(f"certain_rows: {error}") from None
