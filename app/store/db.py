"""Engines, sessions and transactions: the same promises on SQLite and PostgreSQL."""

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection, Double, Engine, create_engine, event, text
from sqlalchemy.exc import ArgumentError, InterfaceError, InternalError, OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.sql.functions import FunctionElement

from app.config import settings
from app.json_text import repaired

# what a session raises when its database is away, or (the last) has ended a transaction that was idle
DATABASE_AWAY = (OperationalError, InterfaceError, InternalError)
_BUSY_SECONDS = 30.0
# A server that vanished is noticed within the default lease.
_POSTGRES = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
_LEAST_IDLE_SECONDS = 5.0
_LEAST_SHRINK_BYTES = 4 << 20
_PAGES_AT_ONCE = 1024


def make_engine(url: str, statement_seconds: float | None = None) -> Engine:
    """An engine for ``url``: SQLite (WAL, synchronous=FULL, foreign keys) or PostgreSQL by psycopg 3.

    PostgreSQL has ``statement_seconds`` for each statement, with None any time.

    Raises
    ------
    ArgumentError
        It is no URL of a database, or its driver is not installed.
    """
    if not url.startswith("sqlite"):
        from app.store.postgres import bound  # who has SQLite waits for no driver

        options = _POSTGRES | {"options": _postgres_options()}
        engine = _engine(url, pool_pre_ping=True, connect_args=options)
        if statement_seconds is not None:
            bound(engine, statement_seconds)
        return engine
    sqlite = {"timeout": _BUSY_SECONDS, "check_same_thread": False}
    engine = _engine(url, connect_args=sqlite)
    event.listen(engine, "connect", _on_sqlite_connect)
    event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _engine(url: str, **options: Any) -> Engine:
    try:
        return create_engine(url, json_serializer=_to_json, json_deserializer=_of_json, **options)
    except (ValueError, ImportError) as error:  # a port that is no number; a driver that is not there
        raise ArgumentError(str(error)) from error


def sessions() -> sessionmaker[Session]:
    """The process's session factory, made from ``settings()`` at first use and again in a forked child."""
    url = settings().sqlalchemy_url
    with _lock:
        factory = _factories.get(url)
        if factory is None:
            factory = _factories[url] = sessionmaker(
                make_engine(url, settings().statement_seconds), expire_on_commit=False
            )
        return factory


def dispose() -> None:
    """Close every pooled connection of this process."""
    with _lock:
        for factory in _factories.values():
            factory.kw["bind"].dispose()
        _factories.clear()


@contextmanager
def reading(session: Session) -> Iterator[Session]:
    """A read-only transaction that keeps no writer waiting; inside another transaction it joins that one."""
    if session.in_transaction():
        yield session
        return
    session.connection(execution_options={"sqlite_begin": "DEFERRED"})
    try:
        yield session
        session.commit()  # a rollback would make the session forget what it has read
    except BaseException:
        session.rollback()
        raise


@contextmanager
def writing(session: Session) -> Iterator[Session]:
    """A transaction that commits at its end, or rolls back where an exception leaves it."""
    try:
        session.connection()
        yield session
        session.commit()
    except BaseException:
        session.rollback()
        raise


def one_at_a_time(session: Session, what: str) -> None:
    """Wait until no other transaction goes on that has called this with the same words; to the end of this one.

    On SQLite only one transaction writes at a time anyhow.
    """
    if session.get_bind().dialect.name == "postgresql":
        number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big", signed=True)
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


def shrink(session: Session) -> int:
    """Give pages that nothing needs any more back to the file system; return their bytes. PostgreSQL does so itself."""
    engine = session.get_bind()
    if engine.dialect.name != "sqlite":
        return 0
    with engine.connect() as connection:  # type: ignore[union-attr]
        driver: Any = connection.connection.driver_connection

        def ask(pragma: str) -> int:
            return int(driver.execute(f"PRAGMA {pragma}").fetchone()[0])

        size, n_free = ask("page_size"), ask("freelist_count")
        if n_free * size < _LEAST_SHRINK_BYTES:
            return 0
        for _ in range(0, n_free, _PAGES_AT_ONCE):  # each a transaction: others write between
            # by a script, as it takes a step for each page, and the driver's execute ends after the first
            driver.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
        left = ask("freelist_count")
        ask("wal_checkpoint(PASSIVE)")
    return (n_free - left) * size


class db_now(FunctionElement[float]):  # noqa: N801 - read as an SQL function
    """Seconds since 1970 by the database's own clock, the only clock that leases trust."""

    type = Double()
    inherit_cache = True


def new_id() -> str:
    """A random identifier of 32 hexadecimal digits that sorts by the time of its making."""
    global _last_ns
    with _lock:
        _last_ns = max(_last_ns + 1, time.time_ns())
        return f"{_last_ns:016x}{secrets.token_hex(8)}"


_lock = threading.Lock()
_factories: dict[str, sessionmaker[Session]] = {}
_inherited: list[dict[str, sessionmaker[Session]]] = []
_last_ns = 0


def _postgres_options() -> str:
    # A process that is frozen within a transaction keeps its locks as long as its machine answers for it. It loses them
    # before its lease: else a sweep, which writes to the row of the job whose lease has run out, would wait for it.
    idle = max(_LEAST_IDLE_SECONDS, 0.5 * settings().lease_seconds)
    # To compile a statement takes longer than any of ours runs, and the planner overrates those over keys of the queue.
    return f"-c idle_in_transaction_session_timeout={int(1000 * idle)} -c jit=off"


def _to_json(value: Any) -> str:
    """What a column of JSON stores: requests are checked before, but what workers report may quote any file."""
    text = json.dumps(value)
    return json.dumps(repaired(value)) if "\\u0000" in text or "\\ud" in text else text


def _of_json(text: str) -> Any:
    """What a column of JSON holds: a third of the time of a long page goes into this."""
    try:
        return from_json(text)
    except ValueError:  # half of a surrogate pair, which Python alone reads
        return json.loads(text)


@compiles(db_now, "sqlite")
def _now_sqlite(_element: db_now, _compiler: Any, **_kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(db_now, "postgresql")
def _now_postgresql(_element: db_now, _compiler: Any, **_kw: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


def _on_sqlite_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN would come too late and be deferred
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _on_sqlite_begin(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once if another one wrote in between: lock first.
    mode = connection.get_execution_options().get("sqlite_begin", "IMMEDIATE")
    connection.exec_driver_sql(f"BEGIN {mode}")


def _forget_in_child() -> None:
    # Connections do not survive a fork; kept referenced, because closing them here would disturb the parent's.
    global _lock, _factories
    _inherited.append(_factories)
    _factories = {}
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)
