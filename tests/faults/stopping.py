"""Processes that are stopped."""

import os
import signal
import sqlite3
import time
from contextlib import closing

from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker


def stop_between_transactions(pid: int, database: sessionmaker[Session]) -> None:
    """A process that sleeps within a transaction keeps its locks, and nobody could take the job before it wakes."""
    for attempt in range(1, 101):
        os.kill(pid, signal.SIGSTOP)
        if not _holds_a_lock(database):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05 * attempt)  # ever longer: a busy machine lets it do nothing in a short time
    raise AssertionError("the process was never between transactions")


def _holds_a_lock(database: sessionmaker[Session]) -> bool:
    """Whether some process writes, perhaps the one that sleeps."""
    with database() as session:
        if session.get_bind().dialect.name == "postgresql":
            time.sleep(0.1)
            open_ones = (
                "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in tr%'"
            )
            return session.scalar(text(open_ones)) != 0
        path = session.get_bind().engine.url.database
    # other processes, as the supervisor, hold it for less than this
    with closing(sqlite3.connect(str(path), timeout=2.0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False
