"""Datasets of precomputed kernel values: which columns belong to training rows, and what cannot be trained."""

import numpy as np
from numpy.typing import NDArray

from app.datasets.recipe_schemas import ColumnRecipe
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import InvalidInput, Item


def check(kind: str | None, statistics: DatasetStatistics, columns: ColumnRecipe | None) -> None:
    """Raise InvalidInput if the rows of a dataset cannot be values of a precomputed kernel.

    Parameters
    ----------
    kind : str or None
        Of the dataset.
    columns : ColumnRecipe or None
        What the request would make of the columns.
    """
    n_rows, n_train = statistics.n_rows, statistics.n_train
    if kind != "sparse":
        fault = f"a precomputed kernel needs rows of numbers; this dataset is of the kind {kind}"
        raise InvalidInput("the dataset does not hold kernel values", [Item(fault, "/dataset")])
    if columns is not None:
        raise InvalidInput("the request does not fit the method", [Item(_AS_THEY_ARE, "/columns")])
    if statistics.n_features not in (n_rows, n_train, n_train + statistics.n_validation):
        fault = _misfit(statistics.n_features or 0, n_rows, n_train)
        raise InvalidInput("the dataset does not hold kernel values", [Item(fault, "/dataset")])


def columns_of(
    rows: NDArray[np.int64], train: NDArray[np.int64], n_rows: int, n_columns: int, columns: ColumnRecipe | None
) -> NDArray[np.int32]:
    """The columns of ``rows``, which are some of the rows in ``train``.

    A dataset with a column for each of its rows has them by number; one with a column for each row that trains has
    those in their order, and no others.

    Raises
    ------
    InvalidInput
        There are neither so many columns, or the values would not be left as they are.
    """
    if columns is not None:
        raise InvalidInput(_AS_THEY_ARE)
    if n_columns == n_rows:
        return rows.astype(np.int32)
    if n_columns == len(train):
        return np.searchsorted(train, rows).astype(np.int32)
    raise InvalidInput(_misfit(n_columns, n_rows, len(train)))


_AS_THEY_ARE = "values of a precomputed kernel are used unchanged: remove columns from the request"


def _misfit(n_columns: int, n_rows: int, n_train: int) -> str:
    needed = f"one for each of its {n_rows:,} rows"
    if n_train != n_rows:
        needed += f", or one for each of its {n_train:,} training rows"
    return f"the dataset has {n_columns:,} columns; a precomputed kernel needs {needed}, in their order"
