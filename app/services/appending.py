"""Rows are appended to a dataset: a job makes its next version, and the one before stays what it was."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.errors import Conflict, InvalidInput
from app.schemas.datasets import ImportOptions, NewDataset, NewRows
from app.schemas.jobs import FINAL_STATES, Job
from app.services import append_sources, feedback, job_queue, quotas
from app.services.datasets import file_format
from app.services.import_options import check_options
from app.services.jobs import show
from app.services.lookup import by_ref, require_owner
from app.store import tables
from app.store.db import new_id, reading, writing
from app.store.files import Upload, files

_BRIEF = defer(tables.Dataset.statistics)


def check_append(session: Session, ref: str, new: NewRows) -> None:
    """Before any byte is received: whether rows may be appended.

    Raises
    ------
    NotFound
        No such dataset.
    Forbidden
        Somebody else made it.
    Conflict
        It is not ready, or other rows are being appended.
    InvalidInput
        The format does not have what the options say of it.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref, _BRIEF)
        require_owner(session, dataset)
        _require_quiet(session, dataset)
        if new.format is not None:
            check_options(_options(session, dataset, new), new.format)
        quotas.require_room(session, 1, hold=False)


def append(session: Session, ref: str, new: NewRows, upload: Upload, from_feedback: Sequence[str] = ()) -> Job:
    """Keep a received file beside those of a dataset and queue the job that appends its rows.

    Parameters
    ----------
    from_feedback : sequence of str
        Ids of the feedback that the file consists of.

    Raises as :func:`check_append` does; the upload is gone afterwards, whatever happens.
    """
    store, path = files(), None
    try:
        if upload.size_bytes == 0:
            raise InvalidInput("the file is empty")
        with writing(session):
            quotas.require_jobs(session)
            quotas.require_room(session, upload.size_bytes)
            dataset = by_ref(session, tables.Dataset, ref, _BRIEF, lock=True)
            require_owner(session, dataset)
            _require_quiet(session, dataset)
            options = _options(session, dataset, new)
            if new.format is not None:
                check_options(options, new.format)
            format = file_format(NewDataset(**options.model_dump(), name="rows", format=new.format), upload.path)
            request = {
                "kind": "append",
                **options.model_dump(mode="json"),
                "format": format,
                "part": new.part,
                "source": new_id(),
                "sha256": upload.sha256,
                "size_bytes": upload.size_bytes,
            }
            if from_feedback:
                request["feedback"] = len(from_feedback)
            path = append_sources.path_of(dataset.id, request)
            upload.move(store.path(path))
            row = job_queue.enqueue(session, "append", dataset.id, request)
            if from_feedback:
                feedback.claim(session, list(from_feedback), row.id)
            session.refresh(row)
            job = show(row)
    except BaseException:
        upload.abort()
        if path is not None:
            store.delete(path)
        raise
    job_queue.notify(session, job.id, row.queue)
    return job


def _require_quiet(session: Session, dataset: tables.Dataset) -> None:
    if dataset.state != "ready":
        raise Conflict(f"the dataset is {dataset.state}; rows can be appended to a ready one")
    unfinished = select(tables.Job.id).where(
        tables.Job.dataset_id == dataset.id,
        tables.Job.kind == "append",
        tables.Job.state.not_in(sorted(FINAL_STATES)),
    )
    job = session.scalars(unfinished.limit(1)).first()
    if job is not None:
        raise Conflict(f"the job {job} is appending rows to the dataset; wait for its end")


def _options(session: Session, dataset: tables.Dataset, new: NewRows) -> ImportOptions:
    """What is said of the new file and, where nothing is, what was said of the first."""
    first = select(tables.Job.request).where(tables.Job.dataset_id == dataset.id, tables.Job.kind == "import")
    stored = session.scalars(first.limit(1)).first() or {}
    before = ImportOptions.model_validate(stored).model_dump()
    given = new.model_dump(include=new.model_fields_set & ImportOptions.model_fields.keys())
    return ImportOptions.model_validate(before | given)
