"""A log file that never grows beyond a size: the fuller one is kept beside it, and what was there before that goes."""

import contextlib
from pathlib import Path

LOG_BYTES = 10 << 20


class RotatingLog:
    """Appends lines to a file; one that finds no room is lost.

    Parameters
    ----------
    path : Path
        Of the log; the one before it is kept as ``path`` with ``.1`` at its end.
    most_bytes : int
        The file is put aside when it would come to more.
    """

    def __init__(self, path: Path, most_bytes: int = LOG_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        with contextlib.suppress(OSError):
            path.touch()

    def write(self, line: bytes) -> None:
        """Append a line."""
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("ab", buffering=0) as file:
                file.write(line)
