"""How a worker starts."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.config import settings
from app.store import db, migrate
from workers.main import upgrade_database


def test_a_worker_that_starts_while_the_database_is_locked_waits_for_it(
    home: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    configure(sweep_seconds=7)
    monkeypatch.setattr(db, "_BUSY_SECONDS", 0)
    waits = []
    with closing(sqlite3.connect(home / "polymargin.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN EXCLUSIVE")

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                writer.rollback()

        monkeypatch.setattr("time.sleep", sleep)
        upgrade_database()
    assert waits == [7, 7]
    assert migrate.current(settings().sqlalchemy_url) == migrate.newest()
