"""Sparse dual variables that were scaled, brought to their bounds where rounding has kept them from there."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Floats, Ints, Ints32

NEAR = 1.0 - 16.0 * float(np.finfo(np.float64).eps)


@njit(cache=True, nogil=True)
def snap_to_bounds(start: Ints, length: Ints32, values: Floats, bounds: Floats) -> None:
    """In the lists of a pool, whose first entry is the sum of the others with its sign turned; values in place."""
    for i in range(start.shape[0]):
        first, total = start[i], 0.0
        for t in range(first + 1, first + length[i]):
            if -values[t] >= NEAR * bounds[i]:
                values[t] = -bounds[i]
            total -= values[t]
        if length[i] > 0:
            values[first] = total
