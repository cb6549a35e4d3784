"""Disks without room: which file found none, and how much is free."""

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.config import settings

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class NoRoomError(OSError):
    """A disk has no room for a file: ``filename`` is what was written, ``n_bytes`` its size where that is known."""

    n_bytes: int | None = None


@contextmanager
def writing_to(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Raise NoRoomError with the path where a disk has no room for what the block writes.

    Parameters
    ----------
    path : Path
        The file or folder. Systems do not name it in errors of writing.
    n_bytes : int, optional
        Its size.
    """
    try:
        yield
    except NoRoomError:
        raise
    except OSError as error:
        if not _is_no_room(error):
            raise
        named = NoRoomError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        named.n_bytes = n_bytes
        raise named from error


def _is_no_room(error: OSError) -> bool:
    if isinstance(error, shutil.Error):  # of copytree, which keeps the words alone
        return any(os.strerror(number) in str(error) for number in NO_ROOM)
    return error.errno in NO_ROOM


def where_full(error: OSError | None = None) -> str:
    """What was written, or where the least room is, with the room: ``x.npy in the data folder (0 MB free)``.

    Paths are relative to the folder of the service that has them.
    """
    found = settings()
    titles = {
        found.files_folder: "the folder of files",
        found.home: "the data folder",
        Path(tempfile.gettempdir()): "the folder of temporary files",
    }
    titles |= {} if found.cache is None else {found.cache: "the cache"}
    free = {folder: free_bytes(folder) for folder in titles}
    fullest = min(free, key=lambda folder: free[folder])
    if error is None or error.filename is None:
        return f"{titles[fullest]} ({megabytes(free[fullest])} free)"
    path = Path(os.fsdecode(error.filename))
    owner = next((folder for folder in sorted(titles, key=str, reverse=True) if path.is_relative_to(folder)), None)
    named = path.name if owner is None else f"{path.relative_to(owner)} in {titles[owner]}"
    needed = error.n_bytes if isinstance(error, NoRoomError) else None
    room = f"{megabytes(free_bytes(path))} free" + ("" if needed is None else f", {megabytes(needed)} needed")
    return f"{named} ({room})"


def free_bytes(path: Path) -> int:
    """Bytes that are free where a path is or would be."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(there).free


def megabytes(n_bytes: int) -> str:
    """A size in words: ``340 kB``, ``12 MB`` or ``3.4 GB``."""
    if 0 < n_bytes < 1e6:
        return f"{math.ceil(n_bytes / 1e3):,} kB"
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.1f} GB"
