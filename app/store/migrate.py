"""Brings a database to the newest schema; safe when several processes start at once."""

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, make_url, text

import migrations
from app.store.db import make_engine

# Any number, the same in every process of every version.
_ADVISORY_LOCK = 0x706F6C79
# SQLite's auto_vacuum by which free pages are counted, and given back when asked
_INCREMENTAL = 2


def upgrade(url: str, revision: str = "head") -> None:
    """Run the migrations that the database at ``url`` lacks; a second process waits and finds them done.

    A database that lacks none is only read, so that its writers need not end first. So is one of a later version:
    within a major version migrations only add to the schema, so that this program runs with it.
    """
    engine = make_engine(_prepared(url))
    try:
        with _locked(engine) as connection:
            if revision == "head" and _is_upgraded(engine):
                return
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.commit()
            if engine.dialect.name == "sqlite":
                _let_shrink(connection)
    finally:
        engine.dispose()


@cache
def newest() -> str:
    """The revision of the schema that this version of the program has."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def current(url: str) -> str | None:
    """The revision that the database at ``url`` is at; None of one without tables."""
    engine = make_engine(url)
    try:
        with _reading(engine) as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def _is_upgraded(engine: Engine) -> bool:
    with _reading(engine) as connection:
        found, wanted = MigrationContext.configure(connection).get_current_revision(), newest()
        if found is not None and found > wanted:
            return True
        return found == wanted and (engine.dialect.name != "sqlite" or _can_shrink(connection))


def _reading(engine: Engine) -> Connection:
    return engine.connect().execution_options(sqlite_begin="DEFERRED")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def _prepared(url: str) -> str:
    if url.startswith("sqlite") and (database := make_url(url).database):
        Path(database).parent.mkdir(parents=True, exist_ok=True)
    return url


@contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    if engine.dialect.name == "sqlite":
        with open(f"{engine.url.database}.lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with engine.connect() as connection:
                # A table is changed by building a new one; dropping the old one must not delete rows that refer to it.
                _enforce_foreign_keys(connection, False)
                yield connection
                _enforce_foreign_keys(connection, True)
        return
    with engine.connect() as holder, engine.connect() as connection:
        # Held by a session of its own, so that it outlasts every transaction of the migrations.
        holder.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _ADVISORY_LOCK})
        holder.commit()
        try:
            yield connection
        finally:
            holder.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_LOCK})
            holder.commit()


def _let_shrink(connection: Connection) -> None:
    # Pages can be given back only if the file was made for that, or is rewritten, which takes its size in free disk.
    driver = connection.connection.driver_connection
    assert driver is not None
    if not _can_shrink(connection):
        driver.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        with contextlib.suppress(sqlite3.OperationalError):
            driver.execute("VACUUM")


def _can_shrink(connection: Connection) -> bool:
    driver = connection.connection.driver_connection
    assert driver is not None
    return bool(driver.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL)


def _enforce_foreign_keys(connection: Connection, on: bool) -> None:
    # Within a transaction, which SQLAlchemy would begin, SQLite passes over it.
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(f"PRAGMA foreign_keys = {'ON' if on else 'OFF'}")
