"""What may be wrong with an installation: its parts, its clock, its disk, and whether rows and files agree."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.config import misspelt, settings
from app.errors import SettingsError
from app.jobs import slots
from app.operation import sweep as sweeping
from app.store import migrate
from app.store.buckets import StorageAway
from app.store.db import db_now, reading, sessions
from app.store.files import files
from app.store.named_files import faults, named_folders
from app.store.queue import reachable
from app.store.storage_state import storage_fault

State = Literal["ok", "warning", "fault"]
MOST_CLOCK_SECONDS, LEAST_FREE, MOST_REPORTED = 2.0, 0.05, 20


@dataclass(frozen=True)
class Finding:
    """What a look at one thing has found."""

    part: str
    state: State
    detail: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def examine(hashes: bool) -> Iterator[Finding]:
    """Look at everything, one thing after the other; nothing is changed.

    Parameters
    ----------
    hashes : bool
        Compare every array with its SHA-256, which reads all of them.
    """
    for said in misspelt(os.environ):
        yield Finding("settings", "warning", said)
    try:
        settings()
    except SettingsError as error:
        yield Finding("settings", "fault", str(error))
        return
    yield from _explained("data folder", _home)
    yield from _explained("object storage", _storage)
    there = False
    for finding in _explained("database", _database):
        yield finding
        there = finding.state != "fault"
    yield _redis(there)
    if not there:
        return
    with sessions()() as session:
        looks: list[tuple[str, Callable[[Session], Iterator[Finding]]]] = [
            ("clock", _clock),
            ("workers", _workers),
            ("files", lambda it: _files(it, hashes)),
            ("orphans", _orphans),
        ]
        for part, look in looks:
            try:
                yield from _explained(part, partial(look, session))
            except SQLAlchemyError as error:
                session.rollback()
                yield Finding("database", "fault", f"it does not answer: {type(error).__name__}")


def _explained(part: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a look finds; a file that it cannot read or write is a fault of the part."""
    try:
        yield from look()
    except StorageAway as error:
        yield Finding(part, "fault", error.detail)
    except OSError as error:
        yield Finding(part, "fault", f"{error.filename or 'a file'}: {error.strerror or error}")


def _home() -> Iterator[Finding]:
    home = settings().home
    if not home.is_dir():
        yield Finding("data folder", "fault", f"{home} is not there")
        return
    if not os.access(home, os.W_OK):
        yield Finding("data folder", "fault", f"{home} cannot be written to")
    elif home.stat().st_mode & 0o077:
        yield Finding("data folder", "warning", f"other users of this machine may read {home}; run chmod 700 on it")
    else:
        yield Finding("data folder", "ok", str(home))
    room = shutil.disk_usage(home)
    share = room.free / room.total
    state: State = "warning" if share < LEAST_FREE else "ok"
    yield Finding("disk", state, f"{room.free:,} of {room.total:,} bytes are free ({share:.0%})")


def _storage() -> Iterator[Finding]:
    url = settings().files
    if url:
        fault = storage_fault()
        yield Finding("object storage", "fault" if fault else "ok", f"{url}: {fault}" if fault else url)


def _database() -> Iterator[Finding]:
    url = settings().sqlalchemy_url
    kind = url.partition(":")[0].partition("+")[0]
    if kind == "sqlite" and not (settings().home / "polymargin.db").exists() and not settings().database_url:
        yield Finding("database", "fault", "does not exist yet; polymargin up or migrate creates it")
        return
    try:
        found, wanted = migrate.current(url), migrate.newest()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        yield Finding("database", "fault", f"{kind} does not answer: {reason}")
        return
    if found == wanted:
        yield Finding("database", "ok", f"{kind}, schema {found}")
    elif found is None or found < wanted:
        yield Finding("database", "fault", f"schema {found}, this version has {wanted}: run polymargin migrate")
    else:
        yield Finding("database", "fault", f"schema {found} is of a later version of the program than this ({wanted})")


def _redis(there: bool) -> Finding:
    """Whether the queue answers; ``there`` says that the database does, which knows the service's workers."""
    if "POLYMARGIN_REDIS_URL" in os.environ:
        if reachable():
            return Finding("queue", "ok", "Redis answers")
        return Finding("queue", "fault", "Redis does not answer at POLYMARGIN_REDIS_URL")
    # another Redis may answer at the default address, which polymargin up has nothing to do with
    private = settings().home / "run" / "redis.sock"
    if private.is_socket():
        if reachable(f"unix://{private}"):
            return Finding("queue", "ok", "the private Redis of polymargin up answers")
        return Finding("queue", "warning", "the private Redis of polymargin up does not answer: start polymargin up")
    url = settings().redis_url
    if not reachable():
        return Finding("queue", "warning", "no Redis answers; polymargin up starts a private one")
    if there and _has_workers():
        return Finding("queue", "ok", f"Redis answers at {url}, and workers have been active recently")
    detail = f"a Redis answers at {url}, but no worker was heard of lately: it may be another program's; "
    detail += "polymargin up starts a private one, and POLYMARGIN_REDIS_URL names one for workers of your own"
    return Finding("queue", "warning", detail)


def _has_workers() -> bool:
    try:
        with sessions()() as session:
            return bool(slots.processes_alive(session))
    except SQLAlchemyError:
        return False


def _clock(session: Session) -> Iterator[Finding]:
    before = time.time()
    with reading(session):
        there: float = session.scalars(select(db_now())).one()
    after = time.time()
    off = max(before - there, there - after, 0.0)
    state: State = "warning" if off > MOST_CLOCK_SECONDS else "ok"
    yield Finding("clock", state, f"this machine's and the database's differ by {off:.1f} seconds or less")


def _workers(session: Session) -> Iterator[Finding]:
    alive = slots.processes_alive(session)
    named = ", ".join(f"{queue}: {n}" for queue, n in sorted(alive.items()))
    yield Finding("workers", "ok" if alive else "warning", named or "none was heard of lately; jobs wait")


def _files(session: Session, hashes: bool) -> Iterator[Finding]:
    folders = named_folders(session)
    found = [fault for folder in folders for fault in faults(files(), folder, hashes=hashes)]
    yield from (Finding("files", "fault", fault) for fault in found[:MOST_REPORTED])
    if len(found) > MOST_REPORTED:
        yield Finding("files", "fault", f"{len(found) - MOST_REPORTED} more")
    if not found:
        compared = "all arrays have their hashes" if hashes else "all arrays are there; --hashes compares their bytes"
        yield Finding("files", "ok", f"{len(folders)} folders that rows name: {compared}")


def _orphans(session: Session) -> Iterator[Finding]:
    orphans = sweeping.orphans(session, files())
    detail = f"{len(orphans)} that no row names; workers remove them" if orphans else "none that no row names"
    yield Finding("orphans", "ok", detail)
