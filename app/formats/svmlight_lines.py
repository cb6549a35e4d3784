"""Lines of svmlight files by compiled loops: all that the format allows, and what is wrong where it is not kept."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.formats.decimals import EXACT, LONG, NOT_A_NUMBER, NOT_FINITE, long_decimals, read_decimal
from app.formats.matrix import MAX_INDEX
from app.formats.table import Problems, shorten
from solvers.compilation import njit

_MAX_ERRORS = 10_000
_NO_LABEL, _LABEL_LIST, _NOT_A_PAIR, _INDEX_RANGE, _ORDER, _COSTS, _ZERO = 10, 11, 12, 13, 14, 15, 16

_DETAILS = {
    NOT_A_NUMBER: "'{}' has no number after the colon",
    NOT_FINITE: "'{}' is not a finite number",
    _NO_LABEL: "the line begins with the feature '{}', expected a label",
    _LABEL_LIST: "'{}' is a list of labels, expected one label (pass label_separator=, to read sets)",
    _NOT_A_PAIR: "'{}' is not index:value",
    _INDEX_RANGE: f"the index of '{{}}' is not between 1 and {MAX_INDEX}",
    _ORDER: "the index of '{}' is not greater than the one before it: sort each row's features by index",
    _ZERO: "the index of '{}' is 0, but indices begin at 1; pass zero_based=true if indices begin at 0",
    _COSTS: "'{}' is a second cost in the row",
}


class Columns(NamedTuple):
    """What is in the lines of a block: a row of each array for each row, pair, long number or error.

    Attributes
    ----------
    labels : int64 array, shape (n_rows, 2)
        Where each row's label begins and ends.
    lines : int64 array, shape (n_rows,)
    n_features : int64 array, shape (n_rows,)
    costs : int64 array, shape (n_rows, 2)
        Where the number of each row's cost begins and ends; zeros where it has none.
    indices : int32 array, shape (n_pairs,)
        From 0.
    values : float64 array, shape (n_pairs,)
    longs : int64 array, shape (n_longs, 4)
        Place in `values`, start, end and line of the numbers that are yet to be read.
    errors : int64 array, shape (<= 10,000, 4)
        Line, code, start and end.
    """

    labels: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    n_features: npt.NDArray[np.int64]
    costs: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    longs: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]


def read_lines(
    data: npt.NDArray[np.uint8], first_line: int, sets: bool, problems: Problems, first_index: int = 1
) -> tuple[Columns, int]:
    """What is in the lines of data, all numbers read, and how many lines they are; `problems` takes what is wrong."""
    room = _room(data)
    n_lines, n_rows, nnz, n_longs, n_errors = _scan(data, len(data), first_line, sets, room, first_index)
    columns = Columns(
        labels=room.labels[:n_rows],
        lines=room.lines[:n_rows],
        n_features=room.n_features[:n_rows],
        costs=room.costs[:n_rows],
        indices=room.indices[:nnz],
        values=room.values[:nnz],
        longs=room.longs[:n_longs],
        errors=room.errors[:n_errors],
    )
    _read_longs(data, columns, problems)
    for line, code, start, end in columns.errors.tolist():
        problems.add(line, _DETAILS[code].format(shorten(data[start:end].tobytes())))
    problems.uncounted(n_errors - len(columns.errors))
    return columns, n_lines


def _read_longs(data: npt.NDArray[np.uint8], columns: Columns, problems: Problems) -> None:
    values = long_decimals(data, columns.longs[:, 1], columns.longs[:, 2])
    for k in np.flatnonzero(~np.isfinite(values)):
        _, start, end, line = columns.longs[k]
        problems.add(int(line), f"'{shorten(data[start:end].tobytes())}' is too large for a 64-bit number")
    columns.values[columns.longs[:, 0]] = values


def _room(data: npt.NDArray[np.uint8]) -> Columns:
    """Columns for as many rows as there are lines, and as many pairs as there are colons."""
    n_lines, n_pairs = 1 + int(np.count_nonzero(data == 10)), int(np.count_nonzero(data == 58))
    return Columns(
        labels=np.empty((n_lines, 2), dtype=np.int64),
        lines=np.empty(n_lines, dtype=np.int64),
        n_features=np.empty(n_lines, dtype=np.int64),
        costs=np.zeros((n_lines, 2), dtype=np.int64),
        indices=np.empty(n_pairs, dtype=np.int32),
        values=np.empty(n_pairs, dtype=np.float64),
        longs=np.empty((n_pairs, 4), dtype=np.int64),
        errors=np.empty((min(n_lines, _MAX_ERRORS), 4), dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _scan(data, end, first_line, sets, columns, first_index):  # type: ignore[no-untyped-def]
    """Read lines into the columns; a line with an error is counted and left.

    Returns how many lines, rows, pairs, long numbers and errors there are.
    """
    # not plain zeros: what is called with one in the first round would be compiled for that number, and once more
    n_rows, nnz, n_longs, n_errors, p = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    line = first_line
    while p < end:
        p = _blank(data, p, end)
        if p < end and data[p] != 10 and data[p] != 35:
            start = p
            p, code = _read_labels(data, p, end, sets)
            columns.labels[n_rows, 0] = start
            columns.labels[n_rows, 1] = p
            columns.costs[n_rows, 0] = columns.costs[n_rows, 1] = 0
            row_nnz, row_longs = nnz, n_longs
            if code == EXACT:
                p, start, code, nnz, n_longs = _read_features(
                    data, p, end, line, n_rows, nnz, n_longs, columns, first_index
                )
            if code == EXACT:
                columns.lines[n_rows] = line
                columns.n_features[n_rows] = nnz - row_nnz
                n_rows += 1
            else:
                if n_errors < columns.errors.shape[0]:
                    columns.errors[n_errors, 0] = line
                    columns.errors[n_errors, 1] = code
                    columns.errors[n_errors, 2] = start
                    columns.errors[n_errors, 3] = p
                n_errors += 1
                nnz, n_longs = row_nnz, row_longs
        while p < end and data[p] != 10:
            p += 1
        if p < end:
            line += 1
            p += 1
    return line - first_line, n_rows, nnz, n_longs, n_errors


@njit(cache=True, nogil=True)
def _read_labels(data, start, end, sets):  # type: ignore[no-untyped-def]
    """Where the label ends that begins a line, and its code.

    Where rows have sets, the label is everything before the first feature: one token, and the next after a comma.
    """
    p = _token(data, start, end)
    code = _label_code(data, start, p)
    if not sets:
        return p, code
    if code == _NO_LABEL:
        return start, EXACT
    while data[p - 1] == 44:
        q = _blank(data, p, end)
        after = _token(data, q, end)
        if q == after or _label_code(data, q, after) == _NO_LABEL:
            break  # nothing follows the comma: an empty label, which is an error
        p = after
    return p, EXACT


@njit(cache=True, nogil=True)
def _read_features(data, p, end, line, row, nnz, n_longs, columns, first_index):  # type: ignore[no-untyped-def]
    """Read what follows the label; the end of the line, or of a faulty token, its start and code, and the counts."""
    before = first_index - np.int64(1)
    code = EXACT
    start = p
    while code == EXACT:
        p = _blank(data, p, end)
        if p == end or data[p] == 10 or data[p] == 35:
            break
        start = p
        p = _token(data, p, end)
        colon = start
        index = np.int64(0)
        while colon < p and 48 <= data[colon] <= 57:
            index = min(index * 10 + (np.int64(data[colon]) - 48), np.int64(MAX_INDEX + 1))
            colon += 1
        if colon in (p, start) or data[colon] != 58:
            if _is_cost(data, start, p):
                code = _COSTS if columns.costs[row, 0] > 0 else EXACT
                columns.costs[row, 0] = start + 5
                columns.costs[row, 1] = p
            elif not _is_qid(data, start, p):
                code = _NOT_A_PAIR
        elif index < first_index:
            code = _ZERO
        elif index - first_index >= MAX_INDEX:
            code = _INDEX_RANGE
        elif index <= before:
            code = _ORDER
        else:
            before = index
            code, value = read_decimal(data, colon + 1, p)
            if code == LONG:
                columns.longs[n_longs, 0] = nnz
                columns.longs[n_longs, 1] = colon + 1
                columns.longs[n_longs, 2] = p
                columns.longs[n_longs, 3] = line
                n_longs += 1
                code = EXACT
            columns.indices[nnz] = index - first_index
            columns.values[nnz] = value
            nnz += 1
    return p, start, code, nnz, n_longs


@njit(cache=True, nogil=True)
def _blank(data, p, end):  # type: ignore[no-untyped-def]
    """The first place from p on that is no white space, or a newline."""
    while p < end and (data[p] == 32 or data[p] == 9 or 11 <= data[p] <= 13):
        p += 1
    return p


@njit(cache=True, nogil=True)
def _token(data, p, end):  # type: ignore[no-untyped-def]
    """The end of the token that begins at p: white space or a comment."""
    while p < end and data[p] != 32 and not 9 <= data[p] <= 13 and data[p] != 35:
        p += 1
    return p


@njit(cache=True, nogil=True)
def _is_qid(data, start, end):  # type: ignore[no-untyped-def]
    return (end - start > 4 and data[start] == 113 and data[start + 1] == 105 and data[start + 2] == 100) and data[
        start + 3
    ] == 58


@njit(cache=True, nogil=True)
def _is_cost(data, start, end):  # type: ignore[no-untyped-def]
    return (
        (end - start > 4 and data[start] == 99 and data[start + 1] == 111)
        and (data[start + 2] == 115 and data[start + 3] == 116)
        and data[start + 4] == 58
    )


@njit(cache=True, nogil=True)
def _label_code(data, start, end):  # type: ignore[no-untyped-def]
    """Distinguish a label from a feature (12:...) and from a list of labels (3,5)."""
    p = start
    commas = 0
    while p < end and (48 <= data[p] <= 57 or (data[p] == 44 and start < p < end - 1)):
        commas += data[p] == 44
        p += 1
    if p == end:
        return _LABEL_LIST if commas > 0 else EXACT
    return _NO_LABEL if data[p] == 58 and p > start and commas == 0 else EXACT
