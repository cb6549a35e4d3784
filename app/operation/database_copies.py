"""Copies of a service's database: all rows as one transaction sees them, in SQLite, and back into an empty database."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.orm import Session

from app.config import settings
from app.store import migrate, tables
from app.store.db import db_now, make_engine

_ROWS = 1000


class BackupError(Exception):
    """A backup cannot be made or restored; the text says why."""


def require_service() -> None:
    """Raise BackupError where the settings name no database of a service, or one of another schema."""
    url = settings().sqlalchemy_url
    # SQLite would make an empty one
    if url.startswith("sqlite") and not database_file(url).is_file():
        raise BackupError(
            f"there is no database {database_file(url)}; set POLYMARGIN_HOME to the service's data folder"
        )
    if schema(url) != migrate.newest():
        raise BackupError(
            "the database has a different schema than this version of the program; run polymargin migrate"
        )


def schema(url: str) -> str | None:
    """The revision that a database is at, None of one without tables; raises BackupError where there is none."""
    try:
        return migrate.current(url)
    except ArgumentError as error:
        raise BackupError(f"POLYMARGIN_DATABASE_URL names no database: {error}") from None
    except OperationalError as error:
        said = str(error.orig).partition("\n")[0]
        raise BackupError(f"the database (POLYMARGIN_DATABASE_URL) does not answer: {said}") from None


def snapshot(target: Path) -> None:
    """All rows as one transaction sees them."""
    url = settings().sqlalchemy_url
    if url.startswith("sqlite"):
        source = sqlite3.connect(f"file:{database_file(url)}?mode=ro", uri=True)
        copy = sqlite3.connect(target)
        try:
            source.backup(copy)  # all pages in one step, so no writer comes between
        finally:
            copy.close()
            source.close()
        return
    migrate.upgrade(f"sqlite:///{target}")
    target.with_name(f"{target.name}.lock").unlink(missing_ok=True)
    engine, copied = make_engine(url), make_engine(f"sqlite:///{target}")
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as rows, copied.begin() as into:
            for table in tables.Table.metadata.sorted_tables:
                for chunk in rows.execution_options(stream_results=True).execute(select(table)).partitions(_ROWS):
                    into.execute(insert(table), [row._asdict() for row in chunk])
    finally:
        engine.dispose()
        copied.dispose()


def copy_into(source: Engine, url: str) -> None:
    """Rows of a snapshot into an empty database."""
    migrate.upgrade(url)
    target = make_engine(url)
    try:
        with source.connect() as rows, target.begin() as into:
            for table in tables.Table.metadata.sorted_tables:
                if into.execute(select(func.count()).select_from(table)).scalar_one():
                    raise BackupError(f"the database has rows in {table.name} already; restore into an empty one")
                for chunk in rows.execute(select(table)).partitions(_ROWS):
                    into.execute(insert(table), [row._asdict() for row in chunk])
    finally:
        target.dispose()


def calm(engine: Engine) -> None:
    """No job runs, no worker is known and nobody is signed in, in what was restored."""
    J = tables.Job
    free: dict[str, Any] = {"lease_until": None, "worker": None}
    with Session(engine) as session:
        session.execute(update(J).where(J.state == "running").values(state="queued", notified_at=None, **free))
        ended = update(J).where(J.state == "cancelling").values(state="cancelled", finished_at=db_now(), **free)
        session.execute(ended)
        # who has signed out since would be signed in again
        for table in (tables.Worker, tables.Slot, tables.SignIn):
            session.execute(delete(table))
        session.commit()


def database_file(url: str) -> Path:
    """The file of a database in SQLite."""
    return Path(url.removeprefix("sqlite:///"))
