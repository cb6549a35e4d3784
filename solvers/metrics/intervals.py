"""Percentile bootstrap intervals: Efron and Tibshirani 1993, section 13.3."""

from collections.abc import Callable, Iterator

import numpy as np

from solvers.numerics.array_types import Floats, Floats32

RESAMPLES, CONFIDENCE = 1000, 0.95
_CHUNK_BYTES = 64 << 20
_TAG = 0xB007


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
