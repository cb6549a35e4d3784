"""Files on their way to the service."""

from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20


def pieces(file: Path) -> Iterator[bytes]:
    """A file piece by piece, as it is read from the disk."""
    with file.open("rb") as opened:
        while piece := opened.read(CHUNK_BYTES):
            yield piece
