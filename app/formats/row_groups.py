"""Rows by what they have, so that errors can name lines: by a code, or by the length of a list."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from app.formats.table import MAX_LISTED, FormatError, RowError
from app.plurals import counted


class RowGroups:
    """The rows of each code, found by one sort and only where they are asked for.

    Parameters
    ----------
    codes : int64 array, shape (n,)
    rows : int64 array, shape (n,)
        Their lines.
    """

    def __init__(self, codes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        self._codes, self._rows = codes, rows

    def rows_with(self, code: int) -> list[int]:
        """The lines of the rows that have a code, in their order."""
        rows, starts = self._sorted
        if code >= len(starts) - 1:
            return []
        found: list[int] = rows[starts[code] : starts[code + 1]].tolist()
        return found

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows in the order of their codes, and where each code begins."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(self._codes))])
        return self._rows[np.argsort(self._codes, kind="stable")], starts


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
