"""Rows by what they have, for the faults of one value after another."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt


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
