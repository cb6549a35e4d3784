"""A file read through a window of bytes that moves from one whole record to the next."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from app.formats.table import row_error

BLOCK_BYTES = 8 << 20
MAX_RECORD_BYTES = 64 << 20
BOM = b"\xef\xbb\xbf"
NOT_UTF8 = "valid UTF-8 (if the file has another encoding, set encoding, for example to windows-1252)"


class Window:
    """Unread bytes of a file, at least one record of them.

    A record (a line, or a CSV record with newlines in quotes) may have up to 64 MiB; a longer one is refused, so
    that an unclosed quote or a file without newlines cannot fill the memory.
    """

    def __init__(self, path: Path, block_bytes: int = BLOCK_BYTES, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self._file = path.open("rb", buffering=0)
        self._block_bytes = max(block_bytes, len(BOM) + 1)
        self._max_record_bytes = max_record_bytes
        self._unread = b""
        self._consumed = True
        self._started = False
        self.at_end = False

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def fill(self, line: int) -> bytes:
        """Unread bytes and the next block of the file; empty at the file's end.

        Parameters
        ----------
        line : int
            Line number at which the unread bytes begin, for the error.

        Raises
        ------
        FormatError
            If a record is longer than `max_record_bytes`.
        """
        wanted = self._block_bytes
        if not self._consumed:
            left = self._max_record_bytes - len(self._unread)
            if left <= 0:
                self.at_end = not self._file.read(1)
                if not self.at_end:
                    raise row_error(line, f"a record is longer than {self._max_record_bytes} bytes")
            # Doubling keeps the repeated scans of one long record linear in its length.
            wanted = min(max(wanted, len(self._unread)), left)
        parts = [self._unread]
        while wanted > 0 and not self.at_end:
            part = self._file.read(wanted)
            self.at_end = not part
            parts.append(part)
            wanted -= len(part)
        self._unread = b"".join(parts)
        if not self._started:
            self._unread = self._unread.removeprefix(BOM)
            self._started = True
        return self._unread

    def consume(self, n_bytes: int) -> None:
        """Drop the first `n_bytes` of the unread bytes."""
        self._unread = self._unread[n_bytes:]
        self._consumed = n_bytes > 0


def as_array(data: bytes) -> npt.NDArray[np.uint8]:
    """The bytes as a uint8 array, not copied."""
    return np.frombuffer(data, dtype=np.uint8)
