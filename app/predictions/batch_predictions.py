"""Predictions for whole datasets: submitted as jobs, stored as files, also in buckets, and downloaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app import outbound
from app.config import settings
from app.curation.schemas import SuggestRowsRequest
from app.datasets import versions as dataset_versions
from app.datasets.addresses import object_of
from app.errors import Conflict, InvalidInput, Item, NotFound
from app.models import row_kinds
from app.models import service as models
from app.outbound import RefusedError
from app.predictions.least_cost import check_least_cost
from app.predictions.model_cache import ModelCache
from app.predictions.schemas import MEDIA_TYPES, BatchPredictRequest, PredictionFormat, PredictionPlan, SureRows
from app.predictions.service import limits
from app.predictions.sure_answers import labels_answered, promise
from app.store import tables
from app.store.buckets import StorageRefused
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_id, by_ref

# requests that a version answers for the rows of a dataset
R = TypeVar("R", BatchPredictRequest, SuggestRowsRequest)

FOLDER = "predictions"
# of jobs that leave a file there
KINDS = ("predict", "suggest_rows", "wrong_labels")
_TARGET = "s3://bucket/key or gs://bucket/key"


@dataclass(frozen=True)
class PredictionFile:
    """A file of predictions: where it is, what it is, and what to call it."""

    path: Path
    media_type: str
    name: str


def resolve_batch(session: Session, request: R, lock: bool = True) -> tuple[tables.Dataset, R]:
    """What a request names, with ``lock`` held to the end of the transaction; the request with the resolved versions.

    Raises
    ------
    NotFound
        No such model, version, alias or dataset.
    Conflict
        The dataset is not ready.
    InvalidInput
        The dataset has no such part, its rows are of another kind than those trained on, or the file cannot be written
        to the target.
    """
    if isinstance(request, BatchPredictRequest) and request.target is not None:
        require_target(request.target)
    version = models.version_row(session, request.model, request.version, request.alias, lock=lock)
    dataset = by_ref(session, tables.Dataset, request.dataset, lock=lock)
    rows = dataset_versions.resolve_version(session, dataset, request.dataset_version)
    row_kinds.require_same(session, version, dataset, rows)
    if request.part in ("test", "validation") and rows.n_train == rows.n_rows:
        detail = f"all rows of the dataset are for training; part {request.part} needs a split of its own"
        raise InvalidInput("the dataset has no such part", [Item(detail, "/part")])
    named = {"version": version.number, "alias": None, "dataset_version": rows.number}
    return dataset, request.model_copy(update=named)


def chosen_rows(session: Session, dataset: tables.Dataset, request: BatchPredictRequest) -> int:
    """How many rows a request chooses."""
    rows = dataset_versions.resolve_version(session, dataset, request.dataset_version)
    if request.part == "all" or rows.n_train == rows.n_rows:
        return rows.n_rows
    if request.part == "train":
        return rows.n_train
    counts = rows.statistics.get(f"n_{request.part}")
    return rows.n_rows - rows.n_train if counts is None else int(counts)


def plan(session: Session, cache: ModelCache, request: BatchPredictRequest) -> PredictionPlan:
    """The rows of a job, and how many are expected to have a sure label; nothing is queued.

    Raises
    ------
    NotFound, Conflict, InvalidInput
        As for a job, and where the model does not take the threshold, the precision or the labels.
    """
    with reading(session):
        dataset, version = resolve_batch(session, request, lock=False)
        n_rows = chosen_rows(session, dataset, version)
        workspace = dataset.workspace
    loaded = cache.get((workspace, request.model, version.version, None))
    document = request.model_dump(exclude_none=True)
    used, _ = limits(loaded, document, may_be_unsure=True)
    check_least_cost(loaded.model, document)
    found = PredictionPlan(model=loaded.version.model, version=loaded.version.version, n_rows=n_rows)
    if used is None:
        return found
    promised = promise(loaded.model, used)
    n_answered = round(n_rows * promised.get("answered", 0.0))
    counts = {"n_rows": n_rows, "n_answered": n_answered}
    if used.own_level is not None:
        counts["n_at_level"] = n_answered
    elif not loaded.model.names_sets:
        counts["n_sure"] = round(n_rows * labels_answered(loaded.model, used))
    asked: dict[str, Any] = {"asked": request.min_precision, "sure_level": request.sure_level}
    return found.model_copy(update={"sure": SureRows(**promised, **asked, **counts)})


def separator(session: Session, datasets: Sequence[str | None]) -> str | None:
    """What separates the labels of a row in the file of the first of these datasets that has a separator."""
    ids = [id for id in datasets if id is not None]
    found = dataset_versions.options(session, ids)
    return next((found[id]["label_separator"] for id in ids if "label_separator" in found[id]), None)


def path_of(job_id: str, format: str) -> str:
    """Where the file of a job is kept."""
    return f"{FOLDER}/{job_id}.{format}"


def of_job(session: Session, job_id: str, name: str | None = None) -> PredictionFile:
    """The file that a job has made, called after its rows, the model and the version.

    Parameters
    ----------
    name : str, optional
        What to call the rows; by default, as their dataset.

    Raises
    ------
    NotFound
        No such job, it is none of predictions, or its file was removed after the time for which files are kept.
    Conflict
        The job has not succeeded.
    """
    with reading(session):
        job = by_id(session, tables.Job, job_id)
        dataset = session.get(tables.Dataset, job.dataset_id or "")
    if job.kind not in KINDS:
        raise NotFound("the job makes no predictions")
    if job.state != "succeeded":
        raise Conflict(f"the job is {job.state}; its predictions are available once it has succeeded")
    format: PredictionFormat = job.request.get("format", "jsonl" if job.kind == "wrong_labels" else "parquet")
    try:
        path = files().local(path_of(job.id, format))
    except FileNotFoundError:
        raise NotFound("the predictions have expired; submit the job again") from None
    version = (job.result or {}).get("version")
    by_whom = [job.kind] if version is None else [job.request["model"], str(version)]
    rows = name if name is not None or dataset is None else dataset.name
    parts = [*by_whom, job.id[:8]] if rows is None else [rows, *by_whom]
    return PredictionFile(path, MEDIA_TYPES[format], f"{'-'.join(parts)}.{format}")


def require_target(target: str) -> None:
    """Raise InvalidInput unless the settings allow an object's address, ``s3://bucket/key`` or ``gs://bucket/key``."""
    try:
        parts = outbound.parts_of(target, ("s3", "gs"), _TARGET)
        if not parts.path or parts.path.endswith("/") or parts.query:
            raise RefusedError(f"expected {_TARGET}, in ASCII")
        outbound.require_within(target, settings().targets, "POLYMARGIN_TARGETS")
    except RefusedError as error:
        raise InvalidInput("the file cannot be written there", [Item(str(error), "/target")]) from None


def write_to_target(target: str, path: Path, sha256: str) -> None:
    """Write a file to the object, which appears whole and replaces one that is there.

    Raises
    ------
    InvalidInput
        The settings do not allow the address, or the bucket does not exist or may not be written to.
    StorageAway
        The bucket does not answer.
    """
    require_target(target)
    bucket, key = object_of(target)
    try:
        bucket.put(key, path, sha256)
    except StorageRefused as error:
        raise InvalidInput("the file cannot be written there", [Item(error.detail, "/target")]) from None
