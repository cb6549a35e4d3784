"""The running workers, as they report themselves."""

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.jobs import slots
from app.jobs.slots import silence_seconds
from app.store import tables
from app.store.db import db_now, reading, writing


def report(session: Session, worker: str, queue: str, processes: int) -> None:
    """Note that a worker lives, and forget those that have long been silent."""
    with writing(session):
        session.merge(tables.Worker(id=worker, queue=queue, processes=processes, seen_at=db_now()))
        session.flush()
        slots.offer(session, queue)
        session.execute(
            delete(tables.Worker)
            .where(tables.Worker.seen_at < db_now() - 100 * silence_seconds())
            .execution_options(synchronize_session=False)
        )


def leave(session: Session, worker: str) -> None:
    """Note that a worker has ended."""
    with writing(session):
        session.execute(delete(tables.Worker).where(tables.Worker.id == worker))


def alive(session: Session) -> dict[str, int]:
    """Worker processes by queue, of the workers heard of lately."""
    query = (
        select(tables.Worker.queue, func.sum(tables.Worker.processes))
        .where(tables.Worker.seen_at > db_now() - silence_seconds())
        .group_by(tables.Worker.queue)
    )
    with reading(session):
        return {queue: int(processes) for queue, processes in session.execute(query)}
