"""Texts gathered while a file is read."""

from __future__ import annotations

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
        """Append texts that stand one after another in `blob`, `lengths` bytes each."""
        self._bytes.extend(blob)
        self._lengths.extend(lengths)

    def take(self) -> Texts:
        """All texts."""
        lengths = self._lengths.take()
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Texts(self._bytes.take(), offsets)
