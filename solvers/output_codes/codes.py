"""Output codes: what makes a matrix one, its products with margins, and distances within it.

A code is a matrix M with one row a class and one column a binary problem: +1 and -1 say on which side of the column
the class is, 0 that its examples are left out (Dietterich and Bakiri 1995; Allwein, Schapire and Singer 2000). A
continuous code has real entries, whose size is the confidence in the side (Crammer and Singer 2002, section 5).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from solvers.core.problem import ProblemError
from solvers.numerics.array_types import Array, Floats, Ints, Ints8, Ints32

Code = Ints8

NAMED = 3
CHUNK_BYTES = 32 << 20


class CodeError(ProblemError):
    """A matrix cannot be an output code, or no code of the kind exists; the message says why."""


def check(code: ArrayLike, classes: Sequence[str] | None = None) -> Code:
    """A given matrix as a code.

    Parameters
    ----------
    code : array of -1, 0 and +1, shape (n_classes, n_columns)
    classes : sequence of str, optional
        Label names, for the messages; their number must be that of the rows.

    Returns
    -------
    int8 array, shape (n_classes, n_columns)

    Raises
    ------
    CodeError
        Another shape, other entries, two equal rows, a row of zeros, or a column whose entries other than 0 all have
        one sign.
    """
    try:
        given = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError):
        raise CodeError(
            "a code must be a matrix of -1, 0 and +1 with one row per class; the rows differ in length"
        ) from None
    if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
        raise CodeError(f"a code needs at least two rows and one column; got the shape {given.shape}")
    if classes is not None and len(classes) != len(given):
        raise CodeError(f"the code has {len(given)} rows; expected {len(classes)}, one per class")
    if not np.isin(given, (-1.0, 0.0, 1.0)).all():
        wrong = given[~np.isin(given, (-1.0, 0.0, 1.0))][0]
        raise CodeError(f"a code must contain only -1, 0 and +1; got {wrong:g}")
    matrix = given.astype(np.int8)
    names = list(classes) if classes is not None else [str(r) for r in range(len(matrix))]
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise CodeError(f"the row of class {names[empty[0]]!r:.80} is zero, so no column uses its examples")
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    twin = np.flatnonzero(first[group] != np.arange(len(matrix)))
    if len(twin):
        pair = names[first[group[twin[0]]]], names[twin[0]]
        raise CodeError(
            f"the rows of classes {pair[0]!r:.80} and {pair[1]!r:.80} are equal, so the code cannot distinguish them"
        )
    constant = np.flatnonzero(~((matrix > 0).any(axis=0) & (matrix < 0).any(axis=0)))
    if len(constant):
        shown = ", ".join(map(str, constant[:NAMED])) + (" ..." if len(constant) > NAMED else "")
        raise CodeError(f"{len(constant)} column(s) have no class on one of their sides: {shown}")
    return matrix


def row_distances(code: Array, *, discrete: bool | None = None) -> Floats:
    """Distances between the rows, shape (n_classes, n_classes).

    For entries -1, 0 and +1 the generalised Hamming distance ``sum_t (1 - M_rt M_st) / 2``, where a zero counts one
    half (Allwein, Schapire and Singer 2000, section 3); for all others the Euclidean distance. Zero on the diagonal.
    ``discrete`` says which of the two where ``code`` is a part of another.
    """
    distances = _hamming(code) if _counts(code, discrete) else _euclidean(code)
    np.fill_diagonal(distances, 0.0)
    return distances


def participants(code: Code, y: Ints32) -> Ints:
    """How many examples take part in each column, shape (n_columns,); ``y`` holds their class indices."""
    counts, sizes = np.bincount(y, minlength=len(code)), np.zeros(code.shape[1], np.int64)
    chunk = max(1, CHUNK_BYTES // (8 * code.shape[1]))
    for begin in range(0, len(code), chunk):
        sizes += counts[begin : begin + chunk] @ (code[begin : begin + chunk] != 0)
    return sizes


def closest_rows(code: Code) -> tuple[float, int]:
    """The least of the distances between two rows of a code, and how many pairs have it.

    As :func:`row_distances` has them, which takes memory for all pairs; this does not.
    """
    least, count = np.inf, 0
    size = max(1, CHUNK_BYTES // (8 * len(code)))
    for begin in range(0, len(code) - 1, size):
        rows = code[begin : begin + size].astype(np.float64)
        distances = 0.5 * (code.shape[1] - products(rows, code[begin + 1 :]))
        later = distances[np.arange(len(rows))[:, None] <= np.arange(distances.shape[1])]
        if float(later.min()) < least:
            least, count = float(later.min()), 0
        count += int(np.count_nonzero(later == least))
    return least, count


def products(h: Array, code: Array) -> Floats:
    """``h @ code.T`` in float64 without a copy of the whole code in float64, shape (n_samples, n_classes)."""
    answers, size = np.asarray(h, np.float64), max(1, CHUNK_BYTES // (8 * code.shape[1]))
    if len(code) <= size:
        return np.asarray(answers @ code.astype(np.float64).T)
    scores = np.empty((len(answers), len(code)))
    for begin in range(0, len(code), size):
        scores[:, begin : begin + size] = answers @ code[begin : begin + size].astype(np.float64).T
    return scores


def column_distances(code: Array, *, discrete: bool | None = None) -> Floats:
    """Distances between the columns up to their sign, shape (n_columns, n_columns).

    A column and its complement are one binary problem, so each distance is the smaller of those to the other column
    and to its complement. Measured as the rows' are.
    """
    if _counts(code, discrete):
        distances = _hamming(code.T)
        distances = np.minimum(distances, code.shape[0] - distances)
    else:
        distances = np.minimum(_euclidean(code.T), _euclidean(code.T, -1.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def is_discrete(code: Array) -> bool:
    """Whether all entries are -1, 0 or +1."""
    return bool(np.isin(code, (-1, 0, 1)).all())


def _counts(code: Array, discrete: bool | None) -> bool:
    return is_discrete(code) if discrete is None else discrete


def _hamming(rows: Array) -> Floats:
    signed = rows.astype(np.float64)
    return np.asarray((rows.shape[1] - signed @ signed.T) / 2.0)


def _euclidean(rows: Array, sign: float = 1.0) -> Floats:
    squares = (rows**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2.0 * sign * (rows @ rows.T), 0.0)))
