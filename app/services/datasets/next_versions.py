"""Jobs that make the next version of a dataset, of the newest and a file: one at a time."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.errors import Conflict, InvalidInput
from app.schemas.jobs.jobs import FINAL_STATES, Job
from app.services.access import quotas
from app.services.common import append_sources
from app.services.common.lookup import by_ref, require_owner
from app.services.datasets.dataset_versions import require_ready
from app.services.engine import job_queue, shown_jobs
from app.store import tables
from app.store.db import new_id, writing
from app.store.files import Upload, files

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
        doing = "appending rows to" if job.kind == "append" else "correcting labels of"
        raise Conflict(f"the job {job.id} is {doing} the dataset; wait for its end")


def make_next(
    session: Session,
    ref: str,
    upload: Upload,
    request_of: Callable[[tables.Dataset], Mapping[str, Any]],
    then: Callable[[tables.Job], None] = lambda _: None,
) -> Job:
    """Keep a file beside those of a dataset, and queue the job that makes a version of it.

    Parameters
    ----------
    request_of : callable
        The job's request with its ``kind``, for the dataset as it is now; what is of the file is added.
    then : callable
        Called with the job in the same transaction.

    Raises
    ------
    NotFound
        No such dataset.
    Forbidden
        Somebody else made it.
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
        with writing(session):
            quotas.require_jobs(session)
            quotas.require_room(session, upload.size_bytes)
            dataset = by_ref(session, tables.Dataset, ref, BRIEF, lock=True)
            require_owner(session, dataset)
            require_quiet(session, dataset)
            of_file = {"source": new_id(), "sha256": upload.sha256, "size_bytes": upload.size_bytes}
            request = {**request_of(dataset), **of_file}
            path = append_sources.path_of(dataset.id, request)
            upload.move(store.path(path))
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
