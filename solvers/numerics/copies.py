"""Copies of arrays within compiled code, and what compiled code takes for one."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array


@njit(cache=True, nogil=True, forceinline=True)
def copy(source: Array, target: Array) -> None:
    """The first ``len(source)`` elements of a target of one dimension are those of the source.

    A slice that an array is assigned to does the same, but brings the text of its error along, which takes seconds to
    compile in every function that has one.
    """
    for i in range(len(source)):
        target[i] = source[i]


def fixed(array: Array) -> Array:
    """Read-only, as mapped files are, so that one compiled loop serves them all."""
    plain = np.ascontiguousarray(array).view()
    plain.flags.writeable = False
    return plain
