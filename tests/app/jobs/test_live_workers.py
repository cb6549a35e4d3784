"""Live workers: who reports is there, who is silent is not."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.jobs import slots
from app.store import tables
from app.store.db import db_now, writing


def test_processes_are_counted_by_queue(session: Session) -> None:
    for worker, queue in (("a:1", "general"), ("b:1", "general"), ("b:2", "shard-0")):
        slots.report_worker(session, worker, queue, 2)
        slots.report_worker(session, worker, queue, 2)
    assert slots.processes_alive(session) == {"general": 4, "shard-0": 2}
    slots.worker_ends(session, "a:1")
    assert slots.processes_alive(session) == {"general": 2, "shard-0": 2}


def test_a_silent_worker_is_not_counted_and_later_forgotten(session: Session) -> None:
    slots.report_worker(session, "a:1", "general", 2)
    for silence, rows in ((60, 2), (10**6, 1)):
        with writing(session):
            silent = update(tables.Worker).where(tables.Worker.id == "a:1")
            session.execute(silent.values(seen_at=db_now() - silence))
        slots.report_worker(session, "b:1", "general", 1)
        assert slots.processes_alive(session) == {"general": 1}
        with session.begin():
            assert len(session.execute(select(tables.Worker.id)).all()) == rows
