"""Measures that are ratios of sums over rows, by which resamples of the rows are measured many at a time."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.metrics.label_table import ratios
from solvers.numerics.array_types import Array, Floats, Floats32

_BLOCK = 8192


class Measure(NamedTuple):
    """``scale`` times the sum of one column over that of another, or over the number of rows where that is None."""

    name: str
    level: int
    over: int
    under: int | None
    scale: float


@dataclass
class RowSums:
    """Columns of numbers by row, and the measures made of them.

    Attributes
    ----------
    columns : list of float32 arrays, shape (n_rows,)
    measures : list of Measure
    """

    columns: list[Floats32] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)

    def column(self, values: Array) -> int:
        """Add a column and return its number."""
        self.columns.append(np.asarray(values, np.float32))
        return len(self.columns) - 1

    def measure(self, name: str, level: int, over: int, under: int | None = None, scale: float = 1.0) -> None:
        """Add a measure of columns that were added."""
        self.measures.append(Measure(name, level, over, under, scale))

    def values(self, counts: Floats32) -> Floats:
        """The measures of resamples, shape (n, n_measures), of how often each draws each row, shape (n, n_rows)."""
        n_rows = counts.shape[1]
        totals = np.zeros((len(counts), len(self.columns) + 1))
        totals[:, -1] = n_rows
        for begin in range(0, n_rows, _BLOCK):
            # sums of so few numbers lose nothing to speak of in 32 bits, at half the time
            rows = slice(begin, begin + _BLOCK)
            block = np.stack([column[rows] for column in self.columns], axis=1)
            totals[:, :-1] += counts[:, rows] @ block
        return self._measured(totals)

    def of_all(self) -> Floats:
        """The measures of all rows as they are, shape (n_measures,); summed in 64 bits."""
        n_rows = len(self.columns[0])
        totals = [*(float(column.sum(dtype=np.float64)) for column in self.columns), float(n_rows)]
        return np.asarray(self._measured(np.array([totals]))[0])

    def _measured(self, totals: Floats) -> Floats:
        over = [measure.over for measure in self.measures]
        under = [-1 if measure.under is None else measure.under for measure in self.measures]
        scale = np.array([measure.scale for measure in self.measures])
        return np.asarray(ratios(totals[:, over], totals[:, under]) * scale)
