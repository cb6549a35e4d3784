"""Backups of a service that goes on running, from SQLite or PostgreSQL, and back into either.

A backup is a folder: ``polymargin.db``, all rows as one transaction saw them, always in SQLite; ``files``, the folders
that these rows name; ``admin.key``; and ``backup.json``, written last, with the SHA-256 of each file.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.config import settings
from app.services.common.named_files import NamedFolder, faults, named_folders
from app.store import migrate, tables
from app.store.db import db_now, make_engine
from app.store.files import Files
from app.store.privacy import keep_private
from app.version import VERSION

FORMAT, CONTENTS, DATABASE, KEY = 1, "backup.json", "polymargin.db", "admin.key"
_TRIES, _ROWS, _BLOCK = 3, 1000, 1 << 20
Say = Callable[[str], None]
# where a file was copied to, by device, inode, size and time: several folders may share it
_Copies = dict[tuple[int, int, int, int], Path]


class BackupError(Exception):
    """A backup cannot be made or restored; the text says why."""


class _Vanished(Exception):
    """Something was deleted between the snapshot of the rows and the copy of its files."""


def backup(target: Path, link: bool, say: Say) -> dict[str, Any]:
    """Write a backup of the service that the settings name to the new folder ``target``.

    Parameters
    ----------
    target : Path
    link : bool
        Files are hard links where that is possible: no room is taken, and damage to the disk takes both.
    say : callable
        Takes one line for people.

    Returns
    -------
    dict
        What ``backup.json`` has, without the hashes.

    Raises
    ------
    BackupError
        The folder is there already, there is no database, it does not answer or is not at this version's schema, or too
        much is deleted meanwhile.
    """
    if target.exists():
        raise BackupError(f"{target} is there already; a backup goes to a new folder")
    _require_schema()
    part = target.with_name(f".{target.name}.part")
    for _ in range(_TRIES):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        try:
            contents = _write(part, link, say)
        except _Vanished as error:
            say(f"{error} was deleted meanwhile; beginning anew")
            continue
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.rename(target)
        return {name: value for name, value in contents.items() if name != "files"}
    shutil.rmtree(part, ignore_errors=True)
    raise BackupError("things are deleted faster than they are copied; try again later")


def restore(source: Path, say: Say) -> dict[str, Any]:
    """Bring a backup into the data folder and the database that the settings name, both of them empty.

    Every file is compared with its hash first. Jobs that ran are queued again; no worker is known any more.

    Raises
    ------
    BackupError
        There is no backup, it was made by a later version or is damaged, or something is there already.
    """
    contents = _contents(source)
    home, url = settings().home, settings().sqlalchemy_url
    if settings().files.exists() or (home / KEY).exists() or (url.startswith("sqlite") and _database(url).exists()):
        raise BackupError(f"the data folder {home} is not empty; restore into a new one (POLYMARGIN_HOME)")
    if not url.startswith("sqlite"):
        _schema(url)
    _require_own(contents["files"])
    say(f"Comparing {len(contents['files'])} files with their hashes")
    for name, digest in contents["files"].items():
        if not (source / name).is_file() or _sha256(source / name) != digest:
            raise BackupError(f"{name} is not what was written: the backup is damaged")
    keep_private(home)
    rows = home / DATABASE if not url.startswith("sqlite") else _database(url)
    rows.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source / DATABASE, rows)
        migrate.upgrade(f"sqlite:///{rows}")
        engine = make_engine(f"sqlite:///{rows}")
        try:
            _calm(engine)
            if not url.startswith("sqlite"):
                _into(engine, url)
        finally:
            engine.dispose()
        say("Copying files")
        copies: _Copies = {}
        for name in contents["files"]:
            if name not in (DATABASE, KEY):
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                _transfer(source / name, home / name, False, copies)
        if KEY in contents["files"]:
            shutil.copyfile(source / KEY, home / KEY)
    finally:
        if not url.startswith("sqlite"):
            for leftover in home.glob(f"{DATABASE}*"):
                leftover.unlink()
    return {name: value for name, value in contents.items() if name != "files"}


def _write(part: Path, link: bool, say: Say) -> dict[str, Any]:
    say("Copying rows")
    _snapshot(part / DATABASE)
    engine = make_engine(f"sqlite:///{part / DATABASE}")
    store, copied = Files(settings().files), Files(part / "files")
    copied.root.mkdir()
    hashes: dict[str, str] = {}
    copies: _Copies = {}
    try:
        with Session(engine) as session:
            folders = named_folders(session)
            say(f"Copying {len(folders)} folders of files")
            for folder in folders:
                hashes |= _copied_whole(store, copied, folder, link, copies, say)
            _drop_lost_checkpoints(session, copied)
            counted = {
                table.__tablename__: session.scalars(select(func.count()).select_from(table)).one()
                for table in (tables.Dataset, tables.Model, tables.ModelVersion, tables.Job)
            }
    finally:
        engine.dispose()
    with sqlite3.connect(part / DATABASE) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    if settings().admin_key_file.is_file():
        shutil.copyfile(settings().admin_key_file, part / KEY)
        hashes[KEY] = _sha256(part / KEY)
    hashes[DATABASE] = _sha256(part / DATABASE)
    found = [(part / name).stat() for name in hashes]
    size = sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())
    contents = {
        "format": FORMAT, "version": VERSION, "schema": migrate.newest(), "size_bytes": size,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"), "rows": counted, "files": hashes,
    }  # fmt: skip
    (part / CONTENTS).write_text(json.dumps(contents, indent=1))
    return contents


def _require_schema() -> None:
    """Raise BackupError where the settings name no database of a service, or one of another schema."""
    url = settings().sqlalchemy_url
    # SQLite would make an empty one
    if url.startswith("sqlite") and not _database(url).is_file():
        raise BackupError(
            f"there is no database {_database(url)}; say where the service has its data (POLYMARGIN_HOME)"
        )
    if _schema(url) != migrate.newest():
        raise BackupError("the database has another schema than this version of the program; run polymargin migrate")


def _schema(url: str) -> str | None:
    try:
        return migrate.current(url)
    except OperationalError as error:
        said = str(error.orig).partition("\n")[0]
        raise BackupError(f"the database (POLYMARGIN_DATABASE_URL) does not answer: {said}") from None


def _snapshot(target: Path) -> None:
    """All rows as one transaction sees them."""
    url = settings().sqlalchemy_url
    if url.startswith("sqlite"):
        source = sqlite3.connect(f"file:{_database(url)}?mode=ro", uri=True)
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


def _into(source: Engine, url: str) -> None:
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


def _calm(engine: Engine) -> None:
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


def _drop_lost_checkpoints(session: Session, copied: Files) -> None:
    """A checkpoint that was replaced while it was copied: its job begins anew."""
    for row in session.scalars(select(tables.Checkpoint)).all():
        if not copied.path(row.path).exists():
            session.execute(delete(tables.Step).where(tables.Step.job_id == row.job_id))
            session.delete(row)
    session.commit()


def _copied_whole(
    store: Files, copied: Files, folder: NamedFolder, link: bool, copies: _Copies, say: Say
) -> dict[str, str]:
    """As :func:`_copy`; nothing is left of a checkpoint that is replaced meanwhile.

    Raises
    ------
    _Vanished
        Anything else has been deleted meanwhile.
    """
    try:
        hashes = _copy(store, copied, folder.path, link, copies)
        if not (lost := list(faults(copied, folder, hashes=False))):
            return hashes
    except FileNotFoundError:
        lost = []
    if folder.may_vanish:
        copied.delete(folder.path)
        return {}
    if lost and lost == list(faults(store, folder, hashes=False)):
        say(f"Damaged in the service, and so in the backup: {lost[0]}")
        return hashes
    raise _Vanished(folder.what)


def _copy(store: Files, copied: Files, path: str, link: bool, copies: _Copies) -> dict[str, str]:
    """Copy or link the files of a folder; their hashes by path. Raises FileNotFoundError where it vanishes."""
    hashes = {}
    place = store.path(path)
    if not place.is_dir():
        raise FileNotFoundError(path)
    for folder, inner, names in os.walk(place):
        inner[:] = [name for name in inner if not name.startswith(".")]  # what is being written
        for name in names:
            source = Path(folder) / name
            target = copied.root / source.relative_to(store.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            _transfer(source, target, link, copies)
            hashes[target.relative_to(copied.root.parent).as_posix()] = _sha256(target)
    return hashes


def _transfer(source: Path, target: Path, link: bool, copies: _Copies) -> None:
    """Link a file or copy it; one that was copied before for another folder becomes a link of that copy."""
    if link:
        try:
            os.link(source, target)
            return
        except FileNotFoundError:
            raise
        except OSError:  # another disk, or one that knows no links
            pass
    found = source.stat()
    file = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    if found.st_nlink > 1 and file in copies:
        try:
            os.link(copies[file], target)
            return
        except OSError:  # gone with a folder that vanished, or the disk knows no links
            pass
    shutil.copyfile(source, target)
    copies[file] = target


def _require_own(names: Iterable[str]) -> None:
    """Raise BackupError where a name leads elsewhere than to what a backup has."""
    for name in names:
        parts = name.split("/")
        if name not in (DATABASE, KEY) and (parts[0] != "files" or len(parts) < 2 or {"", ".", ".."} & set(parts)):
            raise BackupError(f"{CONTENTS} names {name!r:.200}, which is no file of a backup")


def _contents(source: Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = json.loads((source / CONTENTS).read_bytes())
    except (OSError, ValueError):
        raise BackupError(f"{source} holds no whole backup: it has no readable {CONTENTS}") from None
    if contents.get("format") != FORMAT or contents["schema"] > migrate.newest():
        raise BackupError(f"the backup was made by version {contents.get('version')}; this is {VERSION}")
    return contents


def _database(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
