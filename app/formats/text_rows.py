"""Texts gathered while a file is read: in one blob, and row by row with sets of labels."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from app.formats.growing import Growing
from app.formats.label_sets import LabelSets
from app.formats.table import Parsed, Problems, Texts, row_error

Block = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]
_BLOCK_ROWS = 1 << 14


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


class TextRows:
    """Rows as they come; blocks of them are moved into arrays.

    Attributes
    ----------
    problems : Problems
        What is wrong with the file; :meth:`take` raises it.
    """

    def __init__(self) -> None:
        self.problems = Problems()
        self._texts, self._ids, self._labels = TextBlob(), TextBlob(), LabelSets()
        self._block: list[tuple[bytes, bytes, Sequence[str], int]] = []
        self._has_ids = False

    def add(self, text: str, labels: Sequence[str], id: str, line: int) -> None:
        """Append a row; `id` is empty where the file does not name it, `line` is that of errors."""
        self._has_ids = self._has_ids or bool(id)
        self._block.append((text.encode(), id.encode(), labels, line))
        if len(self._block) >= _BLOCK_ROWS:
            self._flush()

    def build(self, why_empty: str = "the file is empty or has only blank lines") -> Parsed:
        """All rows, of kind "text" with sets of labels; raises FormatError, also where there are none."""
        self._flush()
        self.problems.raise_if_any()
        names, y, indptr = self._labels.build()
        if len(indptr) == 1:
            raise row_error(1, why_empty)
        ids = self._ids.build() if self._has_ids else None
        return Parsed("text", names, y, texts=self._texts.build(), ids=ids, label_indptr=indptr)

    def _flush(self) -> None:
        texts, ids, labels, lines = zip(*self._block, strict=True) if self._block else ((), (), (), ())
        self._labels.add_sets(np.arange(len(labels)), labels, np.array(lines, dtype=np.int64), self.problems)
        for blob, pieces in ((self._texts, texts), (self._ids, ids)):
            blob.add(np.frombuffer(b"".join(pieces), np.uint8), np.array([len(each) for each in pieces], np.int64))
        self._block = []
