"""The queue of jobs: the row is written and committed first, then a worker is notified."""

from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app import tracing
from app.jobs import job_requests as job_tags
from app.jobs.queue import level_of
from app.jobs.schemas import JobKind
from app.schemas import JobOptions
from app.store import tables
from app.store.db import db_now, new_id, writing
from app.store.queue import GENERAL, notify_worker


def enqueue(
    session: Session,
    kind: JobKind,
    dataset_id: str,
    request: dict[str, Any],
    options: JobOptions | None = None,
    queue: str = GENERAL,
) -> tables.Job:
    """Insert a queued job into the caller's transaction; :func:`notify` once that is committed."""
    options = options or JobOptions()
    job = tables.Job(
        id=new_id(),
        kind=kind,
        state="queued",
        queue=queue,
        dataset_id=dataset_id,
        request=request,
        priority=level_of(options.priority),
        tags=options.tags,
        time_limit=options.time_limit_seconds,
        trace=tracing.traceparent(),
        attempt=0,
        losses=0,
        created_at=db_now(),
        notified_at=db_now(),
    )
    session.add(job)
    session.flush()
    if job.tags:
        job_tags.write_tags(session, job, job.tags)
    return job


def notify(session: Session, job_id: str, queue: str) -> bool:
    """Notify a worker of the job; where Redis is away, leave it to the next sweep and return False."""
    if notify_worker(job_id, queue):
        return True
    with writing(session):
        session.execute(
            update(tables.Job).where(tables.Job.id == job_id, tables.Job.state == "queued").values(notified_at=None)
        )
    return False
