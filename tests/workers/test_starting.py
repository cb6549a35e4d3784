"""How a worker starts."""

import gc
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.config import settings
from app.store import db, migrate
from workers import main
from workers.pool import upgrade_database


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


def test_what_is_imported_is_never_collected_and_what_jobs_leave_is(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, workers.main; sys.exit('workers.pool' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    seen = []
    monkeypatch.setattr(
        "workers.pool.run_pool", lambda *pool: seen.append((*pool, gc.isenabled(), gc.get_freeze_count() > 0))
    )
    main.main("general", 1)
    assert seen == [("general", 1, True, True)]
