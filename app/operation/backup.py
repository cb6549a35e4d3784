"""Backups of a service that goes on running, from SQLite or PostgreSQL, and back into either.

A backup is a folder: ``polymargin.db``, all rows as one transaction saw them, always in SQLite; ``files``, the folders
that these rows name; ``admin.key``; and ``backup.json``, written last, with the SHA-256 of each file.
"""

import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import StorageFull
from app.operation.database_copies import BackupError, calm, copy_into, database_file, require_service, schema, snapshot
from app.operation.moving_files import ordered
from app.store import migrate, tables
from app.store.db import make_engine
from app.store.disk_space import free_bytes, megabytes
from app.store.failures import explained
from app.store.files import Files, files
from app.store.named_files import NamedFolder, faults, named_folders
from app.store.privacy import keep_private, private_files
from app.store.text_repair import repair
from app.version import VERSION
from solvers.core.artefact_files import file_digest

FORMAT, CONTENTS, DATABASE, KEY, FILES = 1, "backup.json", "polymargin.db", "admin.key", "files"
_TRIES = 3
Say = Callable[[str], None]
# where a file was copied to, by device, inode, size and time: several folders may share it
_Copies = dict[tuple[int, int, int, int], Path]


class _Vanished(Exception):
    """Something was deleted between the snapshot of the rows and the copy of its files."""


def backup(target: Path, link: bool, say: Say) -> dict[str, Any]:
    """Write a backup of the service that the settings name to the new folder ``target``.

    Parameters
    ----------
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
        The folder is there already or has no room, there is no database, it does not answer or is not at this version's
        schema, or too much is deleted meanwhile.
    """
    if target.exists():
        raise BackupError(f"{target} already exists; pass a new folder for the backup")
    require_service()
    part = target.with_name(f".{target.name}.part")
    for _ in range(_TRIES):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        try:
            with private_files():
                contents = _write(part, link, say)
        except _Vanished as error:
            say(f"{error} was deleted meanwhile; starting again")
            continue
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            if _is_full(error):
                raise BackupError(
                    f"{target} has no room: {megabytes(free_bytes(target))} are free there without the unfinished "
                    "backup, which was removed"
                ) from None
            raise
        os.sync()  # all that the backup lists is on disk
        part.rename(target)
        return {name: value for name, value in contents.items() if name != "files"}
    shutil.rmtree(part, ignore_errors=True)
    raise BackupError("files are deleted faster than they are copied; try again later")


def _is_full(error: BaseException) -> bool:
    """Whether a disk is full; what reads the service writes nothing, so that it is the backup's."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    return isinstance(explained(error), StorageFull)


def restore(source: Path, say: Say) -> dict[str, Any]:
    """Bring a backup into the data folder and the database that the settings name, both of them empty.

    Every file is compared with its hash first. Jobs that ran are queued again; no worker is known any more. No service
    starts on the remains of an interrupted restore; another restore removes it first, but for rows in PostgreSQL.

    Raises
    ------
    BackupError
        There is no backup, it was made by a later version or is damaged, or something is there already.
    """
    contents = _contents(source)
    home, url = settings().home, settings().sqlalchemy_url
    rows, mark = database_file(url) if url.startswith("sqlite") else home / DATABASE, settings().restoring_file
    _require_empty(home, rows, mark.exists())
    if not url.startswith("sqlite"):
        schema(url)
    _require_own(contents["files"])
    say(f"Comparing {len(contents['files'])} files with their hashes")
    for name, digest in contents["files"].items():
        if not (source / name).is_file() or file_digest(source / name) != digest:
            raise BackupError(f"{name} differs from what was written: the backup is damaged")
    keep_private(home)
    with _marked(mark) as broke_off:
        _require_empty(home, rows, broke_off)
        _remove_restored(home, rows)
        try:
            _restore_into(home, rows, source, contents["files"], say)
            os.sync()
        except BaseException:
            _remove_restored(home, rows)
            raise
    return {name: value for name, value in contents.items() if name != "files"}


def _require_empty(home: Path, rows: Path, interrupted: bool) -> None:
    """Raise BackupError where the data folder has more than the remains of an interrupted restore."""
    if not interrupted and (settings().files_folder.exists() or (home / KEY).exists() or rows.exists()):
        raise BackupError(f"the data folder {home} is not empty; restore into a new one (POLYMARGIN_HOME)")
    if not interrupted and settings().files and files().names(""):
        raise BackupError(f"{settings().files} is not empty; restore into a new prefix (POLYMARGIN_FILES)")


@contextmanager
def _marked(mark: Path) -> Iterator[bool]:
    """Have a file there that says that a restore has not ended; yields whether an interrupted restore left one.

    Raises BackupError while another process restores.
    """
    broke_off = mark.exists()
    with mark.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another restore into {mark.parent} is running") from None
        try:
            yield broke_off
        finally:
            mark.unlink(missing_ok=True)


def _restore_into(home: Path, rows: Path, source: Path, names: Iterable[str], say: Say) -> None:
    """The rows, by way of the file ``rows`` or into it, then the files and the key."""
    url = settings().sqlalchemy_url
    rows.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source / DATABASE, rows)
        migrate.upgrade(f"sqlite:///{rows}")
        engine = make_engine(f"sqlite:///{rows}")
        try:
            with engine.begin() as connection:
                repair(connection, tables.Table.metadata)
            calm(engine)
            if not url.startswith("sqlite"):
                copy_into(engine, url)
        finally:
            engine.dispose()
    finally:
        if not url.startswith("sqlite"):
            _remove_database(rows)
    say("Copying files")
    copies: _Copies = {}
    store = files()
    for name in ordered(names):
        if name in (DATABASE, KEY):
            continue
        if store.working is store:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            _transfer(source / name, home / name, False, copies)
        else:
            store.put(Path(name).relative_to(FILES).as_posix(), source / name, file_digest(source / name))
    if KEY in names:
        shutil.copyfile(source / KEY, home / KEY)


def _remove_restored(home: Path, rows: Path) -> None:
    shutil.rmtree(settings().files_folder, ignore_errors=True)
    store = files()
    for name in [] if store.working is store else store.names(""):
        store.delete(name)
    (home / KEY).unlink(missing_ok=True)
    _remove_database(rows)


def _remove_database(file: Path) -> None:
    """Remove a database in SQLite with all that SQLite and migrations put beside it."""
    for ending in ("", "-wal", "-shm", "-journal", ".lock"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def _write(part: Path, link: bool, say: Say) -> dict[str, Any]:
    say("Copying rows")
    snapshot(part / DATABASE)
    engine = make_engine(f"sqlite:///{part / DATABASE}")
    store, copied = files(), Files(part / FILES)
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
        hashes[KEY] = file_digest(part / KEY)
    hashes[DATABASE] = file_digest(part / DATABASE)
    found = [(part / name).stat() for name in hashes]
    size = sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())
    contents = {
        "format": FORMAT, "version": VERSION, "schema": migrate.newest(), "size_bytes": size,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"), "rows": counted, "files": hashes,
    }  # fmt: skip
    (part / CONTENTS).write_text(json.dumps(contents, indent=1))
    return contents


def _drop_lost_checkpoints(session: Session, copied: Files) -> None:
    """A checkpoint that was replaced while it was copied: its job starts from the beginning."""
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
    sizes = store.sizes(path)
    if not sizes:
        raise FileNotFoundError(path)
    for file in sizes:
        target = copied.path(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        with store.opened(file) as source:
            _transfer(source, target, link, copies)
        hashes[target.relative_to(copied.root.parent).as_posix()] = file_digest(target)
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
            raise BackupError(f"{CONTENTS} names {name!r:.200}, which is not a file of a backup")


def _contents(source: Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = json.loads((source / CONTENTS).read_bytes())
    except (OSError, ValueError):
        raise BackupError(f"{source} is not a complete backup: it has no readable {CONTENTS}") from None
    if contents.get("format") != FORMAT or contents["schema"] > migrate.newest():
        raise BackupError(f"the backup was made by version {contents.get('version')}; this is {VERSION}")
    return contents
