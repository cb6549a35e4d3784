"""Ends that a job's worker may meet."""

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.operation import sweep as sweeping
from app.store import tables
from app.store.db import db_now, writing


class Crash(BaseException):
    """The process is gone: nothing that handles errors sees this."""


def expire(session: Session, job_id: str) -> None:
    """Let the lease of a job run out whose worker is gone."""
    with writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == job_id).values(lease_until=db_now() - 1))
    sweeping.sweep(session)
