"""Processes that are stopped."""

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker


def stop_between_transactions(pid: int, database: sessionmaker[Session]) -> None:
    """A process that sleeps within a transaction keeps its locks, and nobody could take the job before it wakes."""
    for attempt in range(1, 101):
        os.kill(pid, signal.SIGSTOP)
        _wait_until_stopped(pid)
        if not _holds_a_lock(database):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05 * attempt)  # ever longer: a busy machine lets it do nothing in a short time
    raise AssertionError("the process was never between transactions")


def _wait_until_stopped(pid: int) -> None:
    """A thread within a system call stops when it leaves it, and may have taken a lock in it."""
    states = Path(f"/proc/{pid}/task")
    if not states.is_dir():
        time.sleep(0.2)
        return
    for _ in range(1000):
        if all(_state(thread) in "Tt" for thread in states.iterdir()):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} did not stop")


def _state(thread: Path) -> str:
    with suppress(OSError):  # it ended meanwhile
        # after the command's name, which may hold spaces and parentheses
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    return "T"


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
