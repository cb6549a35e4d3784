"""The loops over one row's numbers: in Python they took longer than the row's scores."""

import numpy as np
from numpy.typing import NDArray

from solvers.compilation import njit

OUT_OF_RANGE, NOT_ASCENDING, NOT_FINITE, ZERO = 1, 2, 4, 8


@njit(cache=True, nogil=True)
def flaws(indices: NDArray[np.int32], values: NDArray[np.float64], n_features: int) -> int:
    """What keeps a row from being used as it is, as a sum of this module's numbers; 0: nothing.

    Parameters
    ----------
    indices : int32 array, shape (k,)
    values : float64 array, shape (k,)
    n_features : int
        Indices are in [0, n_features).
    """
    found, before = 0, np.int64(-1)
    for place in range(len(indices)):
        index, value = np.int64(indices[place]), values[place]
        if index < 0 or index >= n_features:
            found |= OUT_OF_RANGE
        if index <= before:
            found |= NOT_ASCENDING
        if not np.isfinite(value):
            found |= NOT_FINITE
        if value == 0.0:
            found |= ZERO
        before = index
    return found


@njit(cache=True, nogil=True)
def weigh_counts(
    columns: NDArray[np.int32],
    of_count: NDArray[np.float64],
    idf: NDArray[np.float64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> int:
    """TF-IDF of one text, of length one: how many terms it has.

    Parameters
    ----------
    columns : int32 array, shape (k,)
        Sorted; a column for each time that its term is there.
    of_count : float64 array
        What a term weighs that is there so many times, before its idf.
    idf : float64 array, shape (k,)
        Of each column's term.
    indices : int32 array, shape (k,)
        Where the distinct columns go.
    weights : float64 array, shape (k,)
        Where their weights go.
    """
    n, begin, squares = 0, 0, 0.0
    for end in range(1, len(columns) + 1):
        if end < len(columns) and columns[end] == columns[begin]:
            continue
        indices[n] = columns[begin]
        weights[n] = of_count[end - begin] * idf[begin]
        squares += weights[n] * weights[n]
        n, begin = n + 1, end
    length = np.sqrt(squares) if squares > 0.0 else 1.0
    for place in range(n):
        weights[place] /= length
    return n
