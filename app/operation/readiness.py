"""Whether every part that a request may need is there."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.operation.schemas import Readiness
from app.store import tables
from app.store.db import db_now, reading
from app.store.queue import GENERAL, reachable
from app.store.storage_state import STATE

OK = "ok"


def check(sessions: sessionmaker[Session]) -> Readiness:
    """Ask the database, the queue and the workers now, and say what object storage answered last.

    A service without its storage is ready: it answers by the models in memory.
    """
    queue = OK if reachable() else "Redis does not answer"
    try:
        with sessions() as session:
            workers = OK if slots.processes_alive(session).get(GENERAL) else "no worker was heard of lately"
        database = OK
    except SQLAlchemyError:
        database, workers = "the database does not answer", "unknown"
    return Readiness(
        ready=database == queue == workers == OK,
        database=database,
        queue=queue,
        workers=workers,
        storage=STATE.fault() or OK,
    )


@dataclass(frozen=True)
class Load:
    """What goes on in the installation at this moment.

    Attributes
    ----------
    jobs : mapping of str to int
        How many jobs are in each state that any job is in.
    waiting_seconds : float
        How long the oldest queued job has waited; 0 where there is none.
    workers : mapping of str to int
        Worker processes by queue, of the workers heard of lately.
    free_bytes : int
        On the disk of the data folder.
    """

    jobs: Mapping[str, int]
    waiting_seconds: float
    workers: Mapping[str, int]
    free_bytes: int


def load(sessions: sessionmaker[Session]) -> Load:
    """Measures of the whole installation for Prometheus."""
    J = tables.Job
    with sessions() as session:
        jobs = count_by_state(session)
        with reading(session):
            waiting = session.scalars(
                select(db_now() - func.min(J.created_at)).where(J.state == "queued", ~trial_jobs.parked())
            ).one()
        workers = slots.processes_alive(session)
    return Load(jobs, max(waiting or 0.0, 0.0), workers, shutil.disk_usage(settings().home).free)


def count_by_state(session: Session) -> Mapping[str, int]:
    """How many jobs are in each state that any job is in, of those that the session sees; no trials."""
    J = tables.Job
    state = case((trial_jobs.parked(), "running"), else_=J.state).label("state")
    with reading(session):
        shown = select(state).where(J.parent_id.is_(None)).subquery()
        query = select(shown.c.state, func.count().label("n_jobs")).group_by(shown.c.state)
        return {row.state: row.n_jobs for row in session.execute(query)}
