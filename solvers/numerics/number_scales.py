"""How large numbers are, and how far the spreads of dense columns lie apart."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from solvers.numerics.array_types import Floats

# spreads of columns that differ by more than this factor are brought to one size
APART = 1000.0
# numbers whose largest lies between these are taken as they are: C means what it says
ORDINARY = (2.0**-20, 2.0**24)
# a matrix is dense where at least so many of its numbers are not zero, and it has at most so many columns
_DENSE, _MOST_COLUMNS = 0.5, 10_000
_BLOCK_CELLS = 1 << 20
# deviations below this part of a column's largest number are rounding errors of a constant column
_ROUNDING = 1e-14


class Spread(NamedTuple):
    """The standard deviation of a column."""

    column: int
    deviation: float


class Scales(NamedTuple):
    """The largest absolute value and, of dense columns that vary, the smallest and the largest spread."""

    largest: float
    least: Spread | None = None
    most: Spread | None = None


def scales_of(X: csr_matrix) -> Scales:
    """The scales of a csr_matrix of float64, shape (n_rows, n_features); NaN is a missing number, and is left out."""
    there = X.data[~np.isnan(X.data)] if np.isnan(X.data).any() else X.data
    largest = max(float(there.max(initial=0.0)), -float(there.min(initial=0.0)))
    if not is_dense(X):
        return Scales(largest)
    deviations = _deviations(X)
    varying = np.flatnonzero(deviations > 0.0)
    if not len(varying):
        return Scales(largest)
    least, most = (int(varying[place(deviations[varying])]) for place in (np.argmin, np.argmax))
    return Scales(largest, Spread(least, float(deviations[least])), Spread(most, float(deviations[most])))


def why_scaled(largest: float, least: tuple[str, float] | None, most: tuple[str, float] | None) -> str | None:
    """Why numbers need scaling; None where they can be taken as they are.

    Parameters
    ----------
    largest : float
        Absolute value.
    least, most : (str, float), optional
        The columns with the smallest and the largest standard deviation, by name.
    """
    if least is not None and most is not None and most[1] > APART * least[1]:
        return (
            f"the standard deviations of columns differ by orders of magnitude: '{most[0]}' has "
            f"{most[1]:.3g}, '{least[0]}' {least[1]:.3g}"
        )
    if largest > 0.0 and not ORDINARY[0] <= largest <= ORDINARY[1]:
        size = "large" if largest > 1.0 else "small"
        return f"the numbers are very {size}: the largest absolute value is {largest:.3g}"
    return None


def is_dense(X: csr_matrix) -> bool:
    """Whether most numbers of a matrix of not too many columns are not zero."""
    n, d = X.shape
    return bool(0 < d <= _MOST_COLUMNS and X.nnz >= _DENSE * n * d)


def _deviations(X: csr_matrix) -> Floats:
    """The standard deviation of each column, shape (n_features,), computed so that no square overflows or vanishes."""
    d = X.shape[1]
    largest, counts = np.zeros(d), np.zeros(d)
    for block in _blocks(X):
        known = ~np.isnan(block)
        np.maximum(largest, np.where(known, np.abs(block), 0.0).max(axis=0, initial=0.0), out=largest)
        counts += known.sum(axis=0)
    exponents = np.frexp(largest)[1]
    counts = np.maximum(counts, 1.0)
    sums = np.zeros(d)
    for block in _blocks(X):
        sums += np.nansum(np.ldexp(block, -exponents), axis=0)
    means = sums / counts
    squares = np.zeros(d)
    for block in _blocks(X):
        squares += np.nansum((np.ldexp(block, -exponents) - means) ** 2, axis=0)
    deviations = np.sqrt(squares / counts)
    deviations[deviations < _ROUNDING] = 0.0
    return np.asarray(np.ldexp(deviations, exponents))


def _blocks(X: csr_matrix) -> Iterator[Floats]:
    step = max(1, _BLOCK_CELLS // X.shape[1])
    for begin in range(0, X.shape[0], step):
        yield X[begin : begin + step].toarray()
