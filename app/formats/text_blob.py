"""Texts gathered while a file is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.formats.growing import Growing
from app.formats.table import Texts


class TextBlob:
    """Append blocks of UTF-8 texts; becomes Texts."""

    def __init__(self) -> None:
        self._bytes = Growing(np.uint8)
        self._lengths = Growing(np.int64)

    def add(self, blob: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> None:
        """Append texts that are concatenated in `blob`, `lengths` bytes each."""
        self._bytes.extend(blob)
        self._lengths.extend(lengths)

    def build(self) -> Texts:
        """All texts."""
        lengths = self._lengths.build()
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Texts(self._bytes.build(), offsets)


def joined(
    columns: Sequence[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Texts of several columns, each as `TextBlob.add` takes them, made one a row: newlines between those not empty."""
    if len(columns) == 1:
        return columns[0]
    parts = [_pieces(blob.tobytes(), lengths) for blob, lengths in columns]
    rows = [b"\n".join(filter(None, row)) for row in zip(*parts, strict=True)]
    return np.frombuffer(b"".join(rows), dtype=np.uint8), np.array([len(row) for row in rows], dtype=np.int64)


def _pieces(blob: bytes, lengths: npt.NDArray[np.int64]) -> Iterator[bytes]:
    begin = 0
    for length in lengths.tolist():
        yield blob[begin : begin + length]
        begin += length
