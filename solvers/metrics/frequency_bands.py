"""Measures of ranked lists by how many training rows have a label: unseen labels, rare ones, frequent ones.

A band's measures count the labels of the band alone as true, and are means over the rows that have one of them. The
lists are those of all labels, so that a label of one band competes with the labels of the others.
"""

from typing import NamedTuple

import numpy as np

from solvers.metrics.intervals import RowSums
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32


class Band(NamedTuple):
    """Labels with ``least`` to ``most`` training rows; ``name`` begins the names of their measures."""

    name: str
    least: int
    most: int | None

    def has(self, n_training: Ints) -> Bools:
        """Whether labels with so many training rows belong to it."""
        return (n_training >= self.least) & (True if self.most is None else n_training <= self.most)


BANDS = (
    Band("unseen", 0, 0),
    Band("rows_1", 1, 1),
    Band("rows_2_to_9", 2, 9),
    Band("rows_10_to_99", 10, 99),
    Band("rows_100", 100, None),
)
SHORT, LONG = 5, 10
MEASURES = ("share", f"f1@{SHORT}", f"precision@{SHORT}", f"recall@{LONG}", f"ndcg@{LONG}")


def add_bands(sums: RowSums, places: Ints32, row: Ints, n_rows: int, n_training: Ints) -> None:
    """Add the measures of each band that some row has a label of.

    Parameters
    ----------
    sums : RowSums
    places : int32 array, shape (n_true,)
        Of the true labels in their rows' lists, 1 for the first; 0 of one that is never listed.
    row : int64 array, shape (n_true,)
    n_rows : int
    n_training : int64 array, shape (n_true,)
        Training rows that have the label.
    """
    every = sums.column(np.bincount(row, minlength=n_rows))
    for band in BANDS:
        chosen = band.has(n_training)
        if chosen.any():
            _add(sums, band.name, places[chosen], row[chosen], n_rows, every)


def _add(sums: RowSums, name: str, places: Ints32, row: Ints, n_rows: int, every: int) -> None:
    sizes = np.bincount(row, minlength=n_rows)
    held, ideal = sums.column(sizes > 0), _gains(np.arange(1, LONG + 1)).cumsum()
    best = np.where(sizes > 0, ideal[np.clip(sizes, 1, LONG) - 1], 1.0)
    short, long = ((places > 0) & (places <= k) for k in (SHORT, LONG))
    hits = np.bincount(row, short, minlength=n_rows)
    values = (
        2 * hits / (SHORT + sizes),
        hits / SHORT,
        np.bincount(row, long, minlength=n_rows) / np.maximum(sizes, 1),
        np.bincount(row, np.where(long, _gains(np.maximum(places, 1)), 0.0), minlength=n_rows) / best,
    )
    sums.measure(f"{name}_{MEASURES[0]}", 0, sums.column(sizes), every)
    for measure, each in zip(MEASURES[1:], values, strict=True):
        sums.measure(f"{name}_{measure}", 0, sums.column(np.where(sizes > 0, each, 0.0)), held)


def _gains(places: Array) -> Floats:
    return np.asarray(1 / np.log2(1 + places))
