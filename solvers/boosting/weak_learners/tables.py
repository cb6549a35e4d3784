"""Scores of tables: one row of outputs for every interval of a feature."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.boosting.weak_learners.bin_codes import bin_of


@njit(cache=True, nogil=True)
def look_up(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[np.float64],
    place: NDArray[np.int32],
    first: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    table: NDArray[np.float64],
    base: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[i] = base + the rows of the table for the entries of row i.

    Feature j has the thresholds ``first[f] : first[f + 1]`` with ``f = place[j]``, none if that is -1, and one interval
    more; the intervals of all features follow one another in the table.
    """
    for i in range(len(out)):
        row = out[i]
        row[:] = base
        for p in range(indptr[i], indptr[i + 1]):
            f = place[indices[p]]
            if f >= 0:
                more = table[first[f] + f + bin_of(data[p], thresholds, first[f], first[f + 1])]
                for c in range(len(row)):
                    row[c] += more[c]
