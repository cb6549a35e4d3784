"""Summaries of a dataset's columns."""

from __future__ import annotations

import numpy as np

from app.datasets.recipe_schemas import ColumnSummary
from app.formats.table import Parsed


def summaries(parsed: Parsed) -> list[ColumnSummary]:
    """Each column of a file, as it was read: texts, numbers, categories, and those that were left out.

    Raises
    ------
    ValueError
        Nothing is known of the columns.
    """
    columns = parsed.columns
    if columns is None:
        raise ValueError("the columns are unknown")
    found = [ColumnSummary(name=name, role="text") for name in columns.texts]
    if parsed.X is not None:
        by_column = parsed.X.tocsc()
        counts = np.diff(by_column.indptr)
        for place, name in enumerate(columns.numbers):
            values = by_column.data[by_column.indptr[place] : by_column.indptr[place + 1]]
            found.append(_number(name, values, parsed.n_rows))
        levels = [name.partition("=") for name in (parsed.feature_names or [])[len(columns.numbers) :]]
        for name in columns.categories:
            own = [(level, counts[len(columns.numbers) + at]) for at, (of, _, level) in enumerate(levels) if of == name]
            missing = sum(int(count) for level, count in own if not level)
            n_levels = sum(1 for level, count in own if level and count)
            found.append(ColumnSummary(name=name, role="category", missing=missing, levels=n_levels))
    return found + [ColumnSummary(name=name, role="left out", why=why) for name, why in columns.left_out.items()]


def _number(name: str, values: np.ndarray, n_rows: int) -> ColumnSummary:
    """Least, most and mean of a column with nonzero values."""
    there = values[~np.isnan(values)]
    n_missing, n_zeros = len(values) - len(there), n_rows - len(values)
    if not len(there) + n_zeros:
        return ColumnSummary(name=name, role="number", missing=n_missing)
    least, most = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
    least, most = (min(least, 0.0), max(most, 0.0)) if n_zeros else (least, most)
    mean = float(there.sum() / (len(there) + n_zeros))
    return ColumnSummary(name=name, role="number", missing=n_missing, least=least, most=most, mean=mean)
