"""Whether every part that a request may need is there."""

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from app.schemas.health import Readiness
from app.services import live_workers
from app.store import tables
from app.store.db import reading
from app.store.queue import GENERAL, reachable

OK = "ok"


def check(sessions: sessionmaker[Session]) -> Readiness:
    """Ask the database, the queue and the workers now."""
    queue = OK if reachable() else "Redis does not answer"
    try:
        with sessions() as session:
            workers = OK if live_workers.alive(session).get(GENERAL) else "no worker was heard of lately"
        database = OK
    except SQLAlchemyError:
        database, workers = "the database does not answer", "unknown"
    return Readiness(ready=database == queue == workers == OK, database=database, queue=queue, workers=workers)


def jobs_by_state(sessions: sessionmaker[Session]) -> Mapping[str, int]:
    """How many jobs are in each state that any job is in."""
    with sessions() as session:
        return count_by_state(session)


def count_by_state(session: Session) -> Mapping[str, int]:
    """As :func:`jobs_by_state`, of the jobs that the session sees."""
    with reading(session):
        query = select(tables.Job.state, func.count().label("n_jobs")).group_by(tables.Job.state)
        return {row.state: row.n_jobs for row in session.execute(query)}
