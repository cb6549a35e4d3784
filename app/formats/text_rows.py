"""Texts with sets of labels, gathered row by row while a file is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.formats.label_sets import LabelSets
from app.formats.table import Parsed, Problems, row_error
from app.formats.text_blob import TextBlob

_BLOCK_ROWS = 1 << 14


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
