"""Percentile bootstrap intervals (Efron and Tibshirani 1993, section 13.3), and measures that are fast to resample.

Such measures are ratios of sums over rows, so many resamples of the rows are measured at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.metrics.label_table import ratios
from solvers.numerics.array_types import Array, Floats, Floats32

RESAMPLES, CONFIDENCE = 1000, 0.95
_CHUNK_BYTES = 64 << 20
_TAG = 0xB007
_BLOCK = 8192


def bootstrap(
    statistic: Callable[[Floats32], Floats],
    n_rows: int,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Floats:
    """Intervals of several measures from the same resamples of the rows.

    Parameters
    ----------
    statistic : callable
        Takes how often each row was drawn, float32 array of shape (n, n_rows), for n resamples at once; returns the
        measures of each, shape (n, n_measures).
    n_rows : int
        Each resample draws so many rows with replacement.
    resamples : int
    confidence : float
        The share of the resamples' values within an interval.
    seed : int
        The same seed and rows give the same intervals.

    Returns
    -------
    float64 array, shape (2, n_measures)
        Lower and upper ends: the quantiles ``(1 - confidence) / 2`` and ``(1 + confidence) / 2``.

    Raises
    ------
    ValueError
        There are no rows, or the settings are out of range.
    """
    if n_rows < 1 or resamples < 1 or not 0 < confidence < 1:
        raise ValueError(f"{resamples} resamples of {n_rows} rows at confidence {confidence} cannot be drawn")
    values = np.concatenate([np.asarray(statistic(counts)) for counts in drawn(n_rows, resamples, seed)])
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    return np.asarray(np.quantile(values, ends, axis=0))


def drawn(n_rows: int, resamples: int, seed: int) -> Iterator[Floats32]:
    """How often each resample draws each row: float32 arrays of shape (n, n_rows), up to 64 MB of them at a time.

    The counts of a resample are multinomial: each of its ``n_rows`` draws takes any row, all alike.
    """
    random = np.random.default_rng([seed, _TAG])
    most = max(1, _CHUNK_BYTES // (4 * n_rows))
    for begin in range(0, resamples, most):
        counts = np.empty((min(most, resamples - begin), n_rows), np.float32)
        for row in counts:
            row[:] = np.bincount(random.integers(n_rows, size=n_rows, dtype=np.int64), minlength=n_rows)
        yield counts


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
