"""Appending and correcting rows: each makes a new version of the dataset."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.access import quotas
from app.datasets import append_sources
from app.datasets.import_options import check_options
from app.datasets.schemas import ImportOptions, NewDataset, NewRows
from app.datasets.service import file_format
from app.datasets.versions import require_ready
from app.errors import Conflict, InvalidInput
from app.jobs import shown as shown_jobs
from app.jobs import wakeups as job_queue
from app.jobs.schemas import FINAL_STATES, Job
from app.store import tables
from app.store.db import new_id, reading, writing
from app.store.files import Upload, files
from app.store.lookup import by_ref

BRIEF = defer(tables.Dataset.statistics)


def require_quiet(session: Session, dataset: tables.Dataset) -> None:
    """Raise Conflict unless the dataset is ready and no other job makes its next version."""
    require_ready(dataset)
    unfinished = select(tables.Job).where(
        tables.Job.dataset_id == dataset.id,
        tables.Job.kind.in_(append_sources.KINDS),
        tables.Job.state.not_in(sorted(FINAL_STATES)),
    )
    job = session.scalars(unfinished.limit(1)).first()
    if job is not None:
        doing = "appending rows to" if job.kind == "append" else "correcting rows of"
        raise Conflict(f"the job {job.id} is {doing} the dataset; wait until it ends")


def make_next(
    session: Session,
    ref: str,
    upload: Upload,
    request_of: Callable[[tables.Dataset], Mapping[str, Any]],
    then: Callable[[tables.Job], None] = lambda _: None,
) -> Job:
    """Store a file with those of a dataset, and queue the job that makes the next version from it.

    Parameters
    ----------
    request_of : callable
        The job's request with its ``kind``, for the dataset as it is now; what is of the file is added.
    then : callable
        Called with the job in the same transaction.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Conflict
        It is not ready, or another job makes its next version.
    InvalidInput
        The file is empty.

    The upload is gone afterwards, whatever happens.
    """
    store, path = files(), None
    try:
        if upload.size_bytes == 0:
            raise InvalidInput("the file is empty")
        with reading(session):
            id = by_ref(session, tables.Dataset, ref, BRIEF).id
        of_file = {"source": new_id(), "sha256": upload.sha256, "size_bytes": upload.size_bytes}
        path = append_sources.path_of(id, of_file)
        store.send(upload, path)
        with writing(session):
            quotas.require_jobs(session)
            quotas.require_room(session, upload.size_bytes)
            dataset = by_ref(session, tables.Dataset, id, BRIEF, lock=True)
            require_quiet(session, dataset)
            request = {**request_of(dataset), **of_file}
            store.keep(upload, path)
            row = job_queue.enqueue(session, request["kind"], dataset.id, request)
            then(row)
            session.refresh(row)
            job = shown_jobs.one(session, row)
    except BaseException:
        upload.abort()
        if path is not None:
            store.delete(path)
        raise
    job_queue.notify(session, job.id, row.queue)
    return job


def check_append(session: Session, ref: str, new: NewRows) -> None:
    """Check, before any byte is received, whether rows may be appended.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Conflict
        It is not ready, or other rows are being appended.
    InvalidInput
        The format does not support one of the options.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref, BRIEF)
        require_quiet(session, dataset)
        if new.format is not None:
            check_options(_options(session, dataset, new), new.format)
        quotas.require_room(session, 1, hold=False)


def append(
    session: Session,
    ref: str,
    new: NewRows,
    upload: Upload,
    n_feedback: int = 0,
    then: Callable[[tables.Job], None] = lambda _: None,
    corrects: bool = False,
) -> Job:
    """Store a received file with those of a dataset and queue the job that appends its rows.

    Parameters
    ----------
    n_feedback : int
        Number of rows that come from feedback, as the job reports it.
    then : callable
        Called with the job in the transaction that makes it.
    corrects : bool
        Rows that the dataset has, with the same id and content, get their new labels there.

    Raises as :func:`check_append` does; the upload is gone afterwards, whatever happens.
    """

    def request_of(dataset: tables.Dataset) -> dict[str, Any]:
        options = _options(session, dataset, new)
        if new.format is not None:
            check_options(options, new.format)
        format = file_format(NewDataset(**options.model_dump(), name="rows", format=new.format), upload.path)
        request = {"kind": "append", **options.model_dump(mode="json"), "format": format, "part": new.part}
        request |= {"feedback": n_feedback} if n_feedback else {}
        return request | {"corrects": True} if corrects else request

    return make_next(session, ref, upload, request_of, then)


def _options(session: Session, dataset: tables.Dataset, new: NewRows) -> ImportOptions:
    """The options of the new file; options that are not given are those of the first file."""
    before = first_options(session, dataset.id).model_dump()
    given = new.model_dump(include=new.model_fields_set & ImportOptions.model_fields.keys())
    return ImportOptions.model_validate(before | given)


def first_options(session: Session, dataset_id: str) -> ImportOptions:
    """The options that the dataset's first file was read with."""
    first = select(tables.Job.request).where(tables.Job.dataset_id == dataset_id, tables.Job.kind == "import")
    return ImportOptions.model_validate(session.scalars(first.limit(1)).first() or {})
