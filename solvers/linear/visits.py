"""What compiled loops over examples take and report: named tuples of arrays, and statistics with named fields."""

from typing import Any, NamedTuple

import numpy as np

from solvers.numerics.array_types import Array, Bytes, Floats, Floats32, Ints32

# of the examples visited: their parts of the gap and their weighted losses, each before its step, the largest
# violation, and what the dual has gained
STATISTICS = np.dtype([("gap", "f8"), ("losses", "f8"), ("violation", "f8"), ("gain", "f8")])


class Task(NamedTuple):
    """All that stays fixed while a method trains: rows, class indices, C times the weights, the number of classes."""

    rows: Any
    y: Ints32
    bounds: Floats
    n_classes: int


class Visits(NamedTuple):
    """Which examples a loop visits, ``order[begin:end]``, and how.

    A ``full`` visit looks at all classes, and stops looking once it has found ``most`` candidates; any other looks at
    those that the example's dual variables name, and at ``most`` more, which lie side by side in the weights.
    """

    order: Ints32
    begin: int
    end: int
    full: bool
    most: int


class Progress(NamedTuple):
    """What visits report, changed in place.

    Attributes
    ----------
    unchanged : uint8 array, shape (n_samples,)
        How many full visits in a row have changed nothing: see :func:`solvers.numerics.orders.active`.
    gains : float32 array, shape (n_samples,)
        What the example's last visit has gained.
    statistics : array of STATISTICS, shape (1,)
    """

    unchanged: Bytes
    gains: Floats32
    statistics: Array


def no_progress(n_samples: int) -> Progress:
    """Of a training that has not begun."""
    return Progress(np.zeros(n_samples, np.uint8), np.zeros(n_samples, np.float32), np.zeros(1, STATISTICS))
