"""Scaling of numbers: imputes missing values and scales columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import ColumnRecipe
from app.features.base import FitError, InstanceError

_BLOCK_ROWS = 4096
# columns whose largest number is beyond these are measured after a division by a power of two
_LEAST, _MOST, _MOST_EXPONENT = 1e-100, 1e100, 1000
_LEAST_SQUARE = 1e-290


class NumberScaling:
    """Fitted state of columns of numbers.

    A number x becomes (x - centre) / scale, where a missing one is `fill` first. Rows then have a feature for each
    column in which some training row lacked its number: 1 where it is missing. Where the recipe has a weight of
    vectors, the elements of a list have that length together, and zeros in the place of a missing list.

    Parameters
    ----------
    fill, centre, scale : float64 arrays, shape (n_columns,)
    marked : bool array, shape (n_columns,)
    lists : int64 array, shape (n_columns,), optional
        The number of the list that each column is an element of, -1 for none; left out, there are no lists.
    """

    def __init__(
        self,
        recipe: ColumnRecipe,
        fill: npt.NDArray[np.float64],
        centre: npt.NDArray[np.float64],
        scale: npt.NDArray[np.float64],
        marked: npt.NDArray[np.bool_],
        lists: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._recipe, self._fill, self._centre, self._scale = recipe, fill, centre, scale
        self._lists = _weighed_lists(recipe, lists, len(fill))
        self.marked = marked
        self._places = np.cumsum(marked) - 1 + len(fill)

    @classmethod
    def fit(
        cls, X: csr_matrix[np.float64], recipe: ColumnRecipe, lists: npt.NDArray[np.int64] | None = None
    ) -> NumberScaling:
        """Learn from the rows of X, shape (n, n_columns), in which NaN is missing; ``lists`` as of the class."""
        n, d = X.shape
        by_column = X.tocsc()
        fill, centre, scale, marked = np.zeros(d), np.zeros(d), np.ones(d), np.zeros(d, bool)
        column = np.empty(n)
        single = np.flatnonzero(_weighed_lists(recipe, lists, d) < 0)
        for place in single.tolist():
            begin, end = by_column.indptr[place], by_column.indptr[place + 1]
            column[:] = 0.0
            column[by_column.indices[begin:end]] = by_column.data[begin:end]
            missing = np.isnan(column)
            marked[place] = recipe.mark_missing and bool(missing.any())
            there = column[~missing]
            if not len(there):
                continue
            if recipe.missing != "zero":
                fill[place] = np.median(there) if recipe.missing == "median" else there.mean()
            column[missing] = fill[place]
            centre[place], scale[place] = _measured(column, recipe)
        if recipe.scaling == "power_of_two":
            scale[single] = _power_of_two(by_column[:, single].data)
        return cls(recipe, fill, centre, scale, marked, lists)

    @classmethod
    def from_arrays(
        cls,
        recipe: ColumnRecipe,
        arrays: Mapping[str, npt.NDArray[Any]],
        lists: npt.NDArray[np.int64] | None = None,
    ) -> NumberScaling:
        """The state whose `arrays` these are."""
        fill, centre, scale, marked = (np.asarray(arrays[name]) for name in ("fill", "centre", "scale", "marked"))
        return cls(recipe, fill, centre, scale, marked, lists)

    def weighed(self, recipe: ColumnRecipe) -> NumberScaling:
        """The same with another weight of vectors, as the recipe has it."""
        return NumberScaling(recipe, self._fill, self._centre, self._scale, self.marked, self._lists)

    @property
    def vectors(self) -> npt.NDArray[np.int64]:
        """The features that are elements of lists of one length."""
        return np.flatnonzero(self._lists >= 0)

    @property
    def n_features(self) -> int:
        """Columns, and marks of missing values."""
        return len(self._fill) + int(self.marked.sum())

    @property
    def is_dense(self) -> bool:
        """Whether a zero does not stay one."""
        return bool(self._centre.any())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`fill`, `centre`, `scale` (float64, n_columns) and `marked` (bool, n_columns)."""
        return {"fill": self._fill, "centre": self._centre, "scale": self._scale, "marked": self.marked}

    def transform(self, X: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
        """Rows, shape (n, n_features), of rows of X, shape (n, n_columns)."""
        missing = np.isnan(X.data)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        marks = missing & self.marked[X.indices]
        if self.is_dense:
            n_columns = len(self._fill)
            dense = np.empty((X.shape[0], n_columns))
            for begin in range(0, X.shape[0], _BLOCK_ROWS):
                block = X[begin : begin + _BLOCK_ROWS].toarray()
                block = np.where(np.isnan(block), self._fill, block)
                dense[begin : begin + _BLOCK_ROWS] = (block - self._centre) / self._scale
            at, columns = np.nonzero(dense)
            values = dense[at, columns]
        else:
            at, columns = row, X.indices.astype(np.int64)
            values = np.where(missing, self._fill[columns], X.data) / self._scale[columns]
        listed, weight = self._lists[columns] >= 0, self._recipe.trial_vector_weight
        if self._recipe.scaling == "unit_norm":
            values[~listed] = _of_length_one(values[~listed], at[~listed], X.shape[0])
        if weight is not None and listed.any():
            n_lists = int(self._lists.max()) + 1
            group = at[listed] * n_lists + self._lists[columns[listed]]
            values[listed] = weight * _of_length_one(values[listed], group, X.shape[0] * n_lists)
        places = np.concatenate([columns, self._places[X.indices[marks]]])
        entries = (np.concatenate([values, np.ones(int(marks.sum()))]), (np.concatenate([at, row[marks]]), places))
        scaled = csr_matrix(entries, shape=(X.shape[0], self.n_features))
        scaled.eliminate_zeros()
        scaled.sort_indices()
        if not np.isfinite(scaled.data).all():
            raise InstanceError("a number is too large to be scaled")
        return scaled


def _weighed_lists(recipe: ColumnRecipe, lists: npt.NDArray[np.int64] | None, n_columns: int) -> npt.NDArray[np.int64]:
    """The lists of columns, without those whose elements are scaled one by one."""
    if lists is None or recipe.vector_weight is None:
        return np.full(n_columns, -1, np.int64)
    return lists


def _power_of_two(data: npt.NDArray[np.float64]) -> float:
    """What the largest absolute value is divided by to lie in [1, 2); 1 where all are zero or missing."""
    largest = float(np.nanmax(np.abs(data), initial=0.0))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest > 0.0 else 1.0


def _of_length_one(values: npt.NDArray[np.float64], row: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float64]:
    """Values divided by the lengths of their rows; rows whose squares leave the range of floats are shrunk before."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.bincount(row, values**2, minlength=n)
    if not (np.isfinite(squares).all() and (squares[row] > _LEAST_SQUARE).all()):
        largest = np.zeros(n)
        np.maximum.at(largest, row, np.abs(values))
        values = np.ldexp(values, -np.frexp(largest)[1][row])
        squares = np.bincount(row, values**2, minlength=n)
    return values / np.sqrt(np.where(squares > 0.0, squares, 1.0))[row]


def _measured(column: npt.NDArray[np.float64], recipe: ColumnRecipe) -> tuple[float, float]:
    """Centre and scale of a column; a column of one value is not scaled."""
    squared = recipe.scaling in ("standard", "robust")
    largest = float(np.abs(column).max())
    if squared and largest > 0.0 and not _LEAST < largest < _MOST:
        # no square may overflow or vanish: a power of two, which changes no digit, makes the column one of about 1
        exponent = math.frexp(largest)[1]
        if exponent > _MOST_EXPONENT:
            raise FitError(f"a column has numbers as large as {largest:.3g}, too large to scale: divide them")
        centre, scale = _measured(np.ldexp(column, -exponent), recipe)
        return math.ldexp(centre, exponent), math.ldexp(scale, exponent)
    if squared and float(column.min()) == float(column.max()):
        return float(column[0]), 1.0
    if recipe.scaling == "standard":
        centre, scale = float(column.mean()), float(column.std())
    elif recipe.scaling == "robust":
        lower, centre, upper = (float(value) for value in np.quantile(column, (0.25, 0.5, 0.75)))
        scale = upper - lower
    elif recipe.scaling == "max_abs":
        centre, scale = 0.0, float(np.abs(column).max())
    else:
        centre, scale = 0.0, 1.0
    return centre, scale if scale > 0.0 and np.isfinite(scale) else 1.0
