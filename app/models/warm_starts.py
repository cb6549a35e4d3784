"""Which version a training may begin from, and where the dual variables of versions are."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.errors import InvalidInput, Item
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.store import tables
from app.store.db import reading
from app.store.files import Files, files
from solvers.core.base import Solver

DUALS, SPLIT = "duals", "split"


def folder(session: Session, named: str) -> str:
    """Where the files of the version ``MODEL@NUMBER`` are; raises NotFound."""
    model, _, number = named.rpartition("@")
    with reading(session):
        return models.version_row(session, model, int(number)).path


def saved_split(store: Files, path: str) -> NDArray[np.int8] | None:
    """The part that each row was in, where a version has kept it beside its model; ``path`` is its folder."""
    if not store.exists(f"{path}/{SPLIT}"):
        return None
    found: NDArray[np.int8] = store.load_arrays(f"{path}/{SPLIT}", mmap=False)[0]["split"]
    return found


def keeps_duals(session: Session, model: str, number: int) -> bool:
    """Whether a version has kept the dual variables that a training could begin from; raises NotFound."""
    with reading(session):
        return files().exists(f"{models.version_row(session, model, number).path}/{DUALS}")


def resolve(
    session: Session, request: TrainRequest, solver: Solver[Any], dataset: tables.Dataset, version: int
) -> str | None:
    """The version that a request begins from, as ``MODEL@NUMBER``; None where it names none.

    Raises
    ------
    NotFound
        No such model, version or alias.
    InvalidInput
        The training cannot begin there; the fault says why.
    """
    if request.keep_duals and not solver.starts_warm:
        raise _refused(f"{solver.name} has no dual variables that could start another training", "/keep_duals")
    if request.warm_start is None:
        return None
    model, _, which = request.warm_start.rpartition("@")
    numbered = re.fullmatch("[0-9]{1,9}", which)
    row = models.version_row(session, model, int(which) if numbered else None, None if numbered else which, lock=True)
    trained_on = row.request.get("dataset_version") or 1
    if not solver.starts_warm:
        fault = f"{solver.name} begins from nothing: machines that are trained by their dual variables begin from them"
    elif request.shards is not None or request.path is not None or row.request.get("path") is not None:
        fault = "trainings in class shards and paths in C begin from nothing"
    elif row.solver != solver.name:
        fault = f"the version was trained by {row.solver}, whose dual variables are others than those of {solver.name}"
    elif row.dataset_id != dataset.id or trained_on > version:
        fault = "the version was not trained on the first rows of this dataset, so its dual variables belong to others"
    elif _lost_rows(session, dataset.id, trained_on, version):
        fault = "rows of the dataset were deleted since, so the dual variables of the version belong to other rows"
    elif not files().exists(f"{row.path}/{DUALS}"):
        fault = "the version has not kept its dual variables: a training keeps them with keep_duals"
    else:
        return f"{model}@{row.number}"
    raise _refused(fault, "/warm_start")


def _lost_rows(session: Session, dataset_id: str, first: int, last: int) -> bool:
    """Whether rows were deleted from one version of a dataset to another."""
    sizes = [row.n_rows for row in dataset_versions.until(session, dataset_id, last) if row.number >= first]
    return any(after < before for before, after in pairwise(sizes))


def _refused(fault: str, pointer: str) -> InvalidInput:
    return InvalidInput("the training cannot begin from another version", [Item(fault, pointer)])
