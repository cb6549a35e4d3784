"""Permissions of the data folder: only its user can read it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_OTHERS = 0o077


def keep_private(home: Path) -> None:
    """Make ``home`` if it is not there, close it to others, and let this process make no file that they can read."""
    os.umask(_OTHERS)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_mode & _OTHERS:
        with contextlib.suppress(PermissionError):  # another user's folder, who decides
            home.chmod(0o700)


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Let this process make no file that others can read, until the end of the block."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)
