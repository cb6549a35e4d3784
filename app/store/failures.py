"""What the failures of disks and databases mean to whoever asked: no room, or not there now."""

import errno

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.errors import PolymarginError, StorageFull, Unavailable
from app.store.db import DATABASE_AWAY

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# primary result codes of SQLite, https://www.sqlite.org/rescode.html
_BUSY, _LOCKED, _READ_ONLY, _IO_ERROR, _FULL, _CANNOT_OPEN, _PROTOCOL = 5, 6, 8, 10, 13, 14, 15
_SQLITE_AWAY = (_BUSY, _LOCKED, _READ_ONLY, _IO_ERROR, _CANNOT_OPEN, _PROTOCOL)
_POSTGRES_FULL = "53100"


def explained(error: BaseException) -> PolymarginError | None:
    """StorageFull or Unavailable, where that is what ``error`` says; else None."""
    if isinstance(error, OSError):
        return no_room() if error.errno in _NO_ROOM else None
    if isinstance(error, PoolTimeoutError):
        return Unavailable("Too many requests wait for the database.")
    if isinstance(error, DBAPIError):
        return _of_database(error)
    return None


def no_room() -> StorageFull:
    """The error of a full disk."""
    return StorageFull("The disk is full. Nothing was changed; make room and try again.")


def _of_database(error: DBAPIError) -> PolymarginError | None:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        primary = code & 0xFF
        if primary == _FULL:
            return no_room()
        return _away() if primary in _SQLITE_AWAY else None
    if getattr(error.orig, "sqlstate", None) == _POSTGRES_FULL:
        return no_room()
    return _away() if error.connection_invalidated or isinstance(error, DATABASE_AWAY) else None


def _away() -> Unavailable:
    return Unavailable("The database is not there now.")


FAILURES: tuple[type[Exception], ...] = (OSError, SQLAlchemyError)
