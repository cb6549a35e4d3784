"""Files of artefacts: written so that they outlive a loss of power, and known by their SHA-256."""

import hashlib
import os
import threading
from pathlib import Path

import numpy as np

from solvers.numerics.array_types import Array

# numpy parses an array's header as a Python literal, and CPython 3.11's parser counts its depth for all threads
# together: where one thread's parsing is interrupted by another's, both end in SystemError.
_reading_header = threading.Lock()
os.register_at_fork(
    before=_reading_header.acquire, after_in_parent=_reading_header.release, after_in_child=_reading_header.release
)


def read_array(path: Path, *, mmap: bool) -> Array:
    """The array of a file that :func:`write_array` wrote, copied or mapped; threads may read at the same time.

    Raises
    ------
    OSError
        There is no such file.
    ValueError
        The file holds no array, or less than its header says.
    """
    with _reading_header:
        mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped if mmap else np.array(mapped)


def write_array(path: Path, array: Array) -> str:
    """Write an array durably; returns the SHA-256 of the file.

    Raises
    ------
    OSError
        With its ``errno``, by which the caller recognises a full disk.
    """
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        try:
            np.save(file, array, allow_pickle=False)
        except OSError as error:
            if error.errno is None:
                # numpy leaves out why the system refuses to write; Python says it
                file.write(array.reshape(-1).view(np.uint8).data)
            raise
        file.flush()
        os.fsync(file.fileno())
    return file_digest(path)


def write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed or removed in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
