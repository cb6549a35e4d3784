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
        self._lengths, self._sizes = Growing(np.int64), Growing(np.int64)

    def add(
        self, blob: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Append texts that are concatenated in `blob`, `lengths` bytes each; `sizes` as `Texts` has them."""
        self._bytes.extend(blob)
        self._lengths.extend(lengths)
        if sizes is not None:
            self._sizes.extend(sizes.ravel())

    def build(self) -> Texts:
        """All texts."""
        lengths = self._lengths.build()
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        sizes = self._sizes.build().reshape(len(lengths), -1) if len(self._sizes) else None
        return Texts(self._bytes.build(), offsets, sizes)


Block = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]


def joined(columns: Sequence[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]) -> Block:
    """Texts of several columns made one a row, as `TextBlob.add` takes them: newlines between those not empty."""
    if len(columns) == 1:
        return *columns[0], None
    return joined_rows(list(zip(*(_pieces(blob.tobytes(), lengths) for blob, lengths in columns), strict=True)))


def joined_rows(rows: Sequence[Sequence[bytes]]) -> Block:
    """As :func:`joined`, of rows with a text for each column."""
    texts = [b"\n".join(filter(None, row)) for row in rows]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    several = len(rows) > 0 and len(rows[0]) > 1
    sizes = np.array([[len(each) for each in row] for row in rows], dtype=np.int64) if several else None
    return np.frombuffer(b"".join(texts), dtype=np.uint8), lengths, sizes


def reordered(texts: Texts, order: Sequence[int]) -> Texts:
    """Texts that are joined from their columns in another order."""
    blob = TextBlob()
    fields = (texts.fields(row) for row in range(len(texts)))
    blob.add(*joined_rows([[row[at].encode() for at in order] for row in fields]))
    return blob.build()


def _pieces(blob: bytes, lengths: npt.NDArray[np.int64]) -> Iterator[bytes]:
    begin = 0
    for length in lengths.tolist():
        yield blob[begin : begin + length]
        begin += length
