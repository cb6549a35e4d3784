"""Maps failures of disks and databases to API errors: storage full, unavailable or conflict."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.errors import Conflict, PolymarginError, StorageFull, Unavailable
from app.store.db import DATABASE_AWAY
from app.store.disk_space import NO_ROOM, where_full

log = structlog.get_logger("polymargin.store")

# primary result codes of SQLite, https://www.sqlite.org/rescode.html
_BUSY, _LOCKED, _READ_ONLY, _IO_ERROR, _FULL, _CANNOT_OPEN, _PROTOCOL = 5, 6, 8, 10, 13, 14, 15
_SQLITE_AWAY = (_BUSY, _LOCKED, _READ_ONLY, _IO_ERROR, _CANNOT_OPEN, _PROTOCOL)
_POSTGRES_FULL = "53100"
# of unique constraints, primary keys and foreign keys, in SQLite and PostgreSQL
_DOUBLES_AND_GONE: frozenset[int | str | None] = frozenset((2067, 1555, 787, "23505", "23503"))


def explained(error: BaseException) -> PolymarginError | None:
    """StorageFull, Unavailable or Conflict, if ``error`` is such a failure; else None."""
    if isinstance(error, PolymarginError):
        return error
    if isinstance(error, OSError):
        return disk_full(error) if error.errno in NO_ROOM else None
    if isinstance(error, PoolTimeoutError):
        return Unavailable("Too many requests are waiting for the database.")
    if isinstance(error, DBAPIError):
        return _of_database(error)
    return None


def is_passing(error: BaseException) -> bool:
    """Whether a failure is unrelated to the rows: the database is unavailable, or a disk is full."""
    return isinstance(explained(error), StorageFull | Unavailable)


@contextmanager
def isolated(session: Session, event: str, **what: object) -> Iterator[None]:
    """Log a failure in the block as ``event`` and continue, so that one faulty item does not stop the others.

    Failures that pass by themselves are raised, as they would fail the others, too.
    """
    try:
        yield
    except Exception as error:
        session.rollback()
        if is_passing(error):
            raise
        log.exception(event, **what)


def disk_full(error: OSError | None = None) -> StorageFull:
    """The error of a full disk of this machine, with what was written if ``error`` names it."""
    return StorageFull(f"The disk is full: {where_full(error)}. Nothing was changed; free some space and retry.")


def _of_database(error: DBAPIError) -> PolymarginError | None:
    if isinstance(error, IntegrityError):
        codes = getattr(error.orig, "sqlite_errorcode", None), getattr(error.orig, "sqlstate", None)
        if _DOUBLES_AND_GONE.isdisjoint(codes):
            return None
        # services look before they write: another request has come between
        return Conflict("Another request has created, changed or deleted the same resource; retry.")
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        primary = code & 0xFF
        if primary == _FULL:
            return disk_full()
        return _database_unavailable() if primary in _SQLITE_AWAY else None
    if getattr(error.orig, "sqlstate", None) == _POSTGRES_FULL:
        return StorageFull("The disk of the database is full. Nothing was changed; free some space and retry.")
    return _database_unavailable() if error.connection_invalidated or isinstance(error, DATABASE_AWAY) else None


def _database_unavailable() -> Unavailable:
    return Unavailable("The database is unavailable.")


FAILURES: tuple[type[Exception], ...] = (OSError, SQLAlchemyError)
