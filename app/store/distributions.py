"""How lengths, sizes of label sets and features are spread over the rows of a dataset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets.statistics_schemas import Histogram
from app.formats.labels import PARTS

_MOST_BINS = 30
_BLOCK = 1 << 22


def by_part(numbers: NDArray[np.int64], split: NDArray[np.int8] | None) -> Histogram:
    """How many rows of each part have how much.

    Parameters
    ----------
    numbers : int64 array, shape (n_rows,)
        0 or more.
    split : int8 array, shape (n_rows,), or None
        0 train, 1 test, 2 validation; None where all rows are training rows.
    """
    edges = _edges(numbers)
    parts = {"train": numbers} if split is None else {name: numbers[split == at] for at, name in enumerate(PARTS)}
    counts = {name: np.histogram(part, edges)[0].tolist() for name, part in parts.items() if len(part)}
    return Histogram(edges=edges.tolist(), counts=counts)


def feature_rows(X: csr_matrix) -> Histogram:
    """How many features are not zero in how many rows.

    Parameters
    ----------
    X : csr_matrix, shape (n_rows, n_features)
    """
    width = X.shape[1]
    if width > max(len(X.indices), _BLOCK):
        # features that no row has cost nothing
        rows = np.unique(X.indices, return_counts=True)[1]
    else:
        rows = np.zeros(width, np.int64)
        for begin in range(0, len(X.indices), _BLOCK):  # bincount copies what it is given into 64 bits
            rows += np.bincount(X.indices[begin : begin + _BLOCK], minlength=width)
    absent = width - len(rows)
    edges = _edges(np.append(rows, 0) if absent else rows)
    counts = np.histogram(rows, edges)[0]
    counts[:1] += absent
    return Histogram(edges=edges.tolist(), counts={"features": counts.tolist()})


def _edges(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Edges of at most ``_MOST_BINS`` intervals: of one number each, or ever wider ones where there are too many."""
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if most - least < _MOST_BINS:
        return np.arange(least, most + 2)
    edges = np.geomspace(max(least, 1), most + 1, _MOST_BINS + (least > 0)).round().astype(np.int64)
    return np.unique(edges if least > 0 else np.append(0, edges))
