"""Sessions: the same promises on both databases."""

import os
import signal
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import closing

import pytest
from sqlalchemy import delete, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.store import db, tables
from app.store.db import db_now, new_id, reading, writing


def test_the_databases_clock_counts_seconds_since_1970(session: Session) -> None:
    before = time.time()
    assert before - 2 < session.scalars(select(db_now())).one() < time.time() + 2


def test_ids_sort_by_the_time_of_their_making() -> None:
    ids = [new_id() for _ in range(1000)]
    assert ids == sorted(set(ids))
    assert {len(id) for id in ids} == {32}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_is_durable_and_checks_foreign_keys(session: Session) -> None:
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    assert [session.execute(text(f"PRAGMA {name}")).scalar() for name in pragmas] == ["wal", 2, 1]


def test_foreign_keys_hold(session: Session) -> None:
    with pytest.raises(IntegrityError), writing(session):
        session.add(tables.Checkpoint(job_id="none", attempt=1, step=0, seconds=0.0, path="p", sha256="s"))


def test_an_exception_rolls_the_transaction_back(session: Session) -> None:
    def fail() -> None:
        with writing(session):
            session.add(tables.Model(id=new_id(), name="m", created_at=0.0))
            session.flush()
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert session.scalars(select(tables.Model)).all() == []


def test_writers_that_read_first_wait_for_each_other(database: sessionmaker[Session]) -> None:
    with database() as session, writing(session):
        session.add(tables.Model(id=new_id(), name="0", created_at=0.0))

    def add() -> None:
        for _ in range(10):
            with database() as session, writing(session):
                row = session.scalars(select(tables.Model).with_for_update()).one()
                row.name = str(int(row.name) + 1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database() as session:
        assert session.scalars(select(tables.Model.name)).one() == "40"


def test_reading_goes_on_while_another_writes(database: sessionmaker[Session]) -> None:
    with database() as writer, database() as reader:
        writer.add(tables.Model(id=new_id(), name="m", created_at=0.0))
        writer.flush()
        with reading(reader):
            assert reader.scalars(select(tables.Model)).all() == []
        writer.commit()
        with reading(reader):
            assert len(reader.scalars(select(tables.Model)).all()) == 1


def test_a_forked_child_makes_connections_of_its_own(
    database: sessionmaker[Session], configure: Callable[..., None]
) -> None:
    with database() as session:
        session.execute(select(db_now()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the numerics may have threads, and hold no lock
        child = os.fork()
    if child == 0:
        fresh = db.sessions() is not database
        with db.sessions()() as session:
            session.execute(select(db_now()))
        os._exit(0 if fresh else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert db.sessions() is database


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_statement_that_takes_too_long_ends_and_its_connection_goes_on(
    database: sessionmaker[Session], configure: Callable[..., None]
) -> None:
    configure(statement_seconds=2)
    db.dispose()
    with db.sessions()() as session:
        with pytest.raises(OperationalError) as caught:
            session.execute(text("SELECT pg_sleep(600)"))
        assert not caught.value.connection_invalidated
        session.rollback()
        assert session.execute(text("SELECT 1")).scalar() == 1
    db.dispose()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_process_that_is_stopped_within_a_transaction_keeps_no_lock_for_longer_than_half_a_lease(
    database: sessionmaker[Session], configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "_LEAST_IDLE_SECONDS", 0.1)
    configure(lease_seconds=0.6, heartbeat_seconds=0.2)
    with database() as session, writing(session):
        session.add(tables.Model(id=new_id(), name="m", created_at=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the numerics may have threads, and hold no lock
        child = os.fork()
    if child == 0:
        status = 1
        try:
            with db.sessions()() as session:
                session.scalars(select(tables.Model).with_for_update()).one()
                os.kill(os.getpid(), signal.SIGSTOP)
                session.execute(select(db_now()))
        except db.DATABASE_AWAY:
            status = 7
        finally:
            os._exit(status)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    try:
        with database() as session, writing(session):
            session.execute(text("SET LOCAL lock_timeout = '60s'"))
            session.scalars(select(tables.Model).with_for_update()).one().name = "free"
    finally:
        os.kill(child, signal.SIGCONT)
        ended = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(ended) == 7


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_file_shrinks_when_rows_go(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "_LEAST_SHRINK_BYTES", 1)
    file = settings().home / "polymargin.db"
    rows = [{"id": new_id(), "name": str(i) * 50, "workspace": "default", "created_at": 0.0} for i in range(2000)]
    with writing(session):
        session.execute(insert(tables.Model), rows)
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    full = file.stat().st_size
    with writing(session):
        session.execute(delete(tables.Model))
    given_back = db.shrink(session)
    assert given_back > full / 2
    assert file.stat().st_size <= full - given_back
    assert db.shrink(session) == 0
