"""Predictions for whole datasets: asked for as jobs, kept as files, and given out."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, Item, NotFound
from app.schemas.predictions.batch_predictions import MEDIA_TYPES, BatchPredictRequest
from app.services.common.lookup import by_id, by_ref
from app.services.datasets import dataset_versions
from app.services.models import models, row_kinds
from app.store import tables
from app.store.db import reading
from app.store.files import files

FOLDER = "predictions"


@dataclass(frozen=True)
class PredictionFile:
    """A file of predictions: where it is, what it is, and what to call it."""

    path: Path
    media_type: str
    name: str


def resolve_batch(session: Session, request: BatchPredictRequest) -> tuple[tables.Dataset, BatchPredictRequest]:
    """What a request names, held to the end of the transaction; the request with the versions that were meant.

    Raises
    ------
    NotFound
        No such model, version, alias or dataset.
    Conflict
        The dataset is not ready.
    InvalidInput
        The dataset has no such part, or its rows are of another kind than those trained on.
    """
    version = models.version_row(session, request.model, request.version, request.alias, lock=True)
    dataset = by_ref(session, tables.Dataset, request.dataset, lock=True)
    rows = dataset_versions.meant(session, dataset, request.dataset_version)
    row_kinds.require_same(session, version, dataset, rows)
    if request.part in ("test", "validation") and rows.n_train == rows.n_rows:
        detail = f"all rows of the dataset are for training; part {request.part} needs a split of its own"
        raise InvalidInput("the dataset has no such part", [Item(detail, "/part")])
    named = {"version": version.number, "alias": None, "dataset_version": rows.number}
    return dataset, request.model_copy(update=named)


def path_of(job_id: str, format: str) -> str:
    """Where the file of a job is kept."""
    return f"{FOLDER}/{job_id}.{format}"


def of_job(session: Session, job_id: str) -> PredictionFile:
    """The file that a job has made.

    Raises
    ------
    NotFound
        No such job, it is none of predictions, or its file was removed after the time for which files are kept.
    Conflict
        The job has not succeeded.
    """
    with reading(session):
        job = by_id(session, tables.Job, job_id)
    if job.kind != "predict":
        raise NotFound("the job makes no predictions")
    if job.state != "succeeded":
        raise Conflict(f"the job is {job.state}; its predictions are there once it has succeeded")
    request = BatchPredictRequest.model_validate(job.request)
    path = files().path(path_of(job.id, request.format))
    if not path.is_file():
        raise NotFound("the predictions were removed after the time for which they are kept; ask for them again")
    return PredictionFile(path, MEDIA_TYPES[request.format], f"{request.model}-{job.id[:8]}.{request.format}")
