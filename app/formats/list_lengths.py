"""The lengths of a column's lists, all of which must be as long as the first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.formats.table import MAX_LISTED, FormatError, RowError
from app.plurals import counted


class ListLengths:
    """How many lists have each length, and on which lines."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._lines: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, length: int, line: int) -> None:
        """Count one list."""
        self._counts[length] += 1
        if self._counts[length] <= MAX_LISTED:
            self._lines[length].append(line)

    def add_many(self, lengths: npt.NDArray[np.integer], lines: npt.NDArray[np.integer]) -> None:
        """Count lists, each on its line."""
        for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
            spare = max(0, MAX_LISTED - self._counts[int(length)])
            self._counts[int(length)] += int(count)
            self._lines[int(length)] += lines[lengths == length][:spare].tolist()

    def odd_ones(self, column: str, first: int) -> FormatError | None:
        """The error of the lists that are not as long as most, where the first of the file is one of them."""
        if not self._counts:
            return None
        (length, most), *others = self._counts.most_common(2)
        if length == first or (others and others[0][1] == most):
            return None
        odd = sorted((line, own) for own, lines in self._lines.items() if own != length for line in lines)
        errors: Sequence[RowError] = [
            RowError(line, column, f"a list of {own}, expected {counted(length, 'number')} as in most rows")
            for line, own in odd
        ]
        return FormatError(errors, sum(self._counts.values()) - most)
