"""Files of artefacts: written so that they outlive a loss of power, and known by their SHA-256."""

import hashlib
import os
from pathlib import Path

import numpy as np

from solvers.numerics.array_types import Array


def write_array(path: Path, array: Array) -> str:
    """Write an array durably; returns the SHA-256 of the file."""
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
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
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
