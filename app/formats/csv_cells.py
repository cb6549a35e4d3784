"""CSV bytes to cells, and cells to numbers or texts: the compiled loops below the CSV parser (RFC 4180)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.formats.decimals import EMPTY, EXACT, LONG, NOT_A_NUMBER, read_decimal
from solvers.compilation import njit

MAX_ERRORS = 10_000
RAGGED, AFTER_QUOTE, UNCLOSED = 20, 21, 22


class Records(NamedTuple):
    """Whole records of a block of bytes.

    Attributes
    ----------
    consumed : int
        Bytes that they take; what follows is the beginning of a record whose end is not in the block.
    n_lines : int
        Newlines in those bytes, inside quotes too.
    cells : int64 array, shape (n_records * n_columns, 2)
        Start and end of each cell, without its quotes.
    doubled : uint8 array, shape (n_records * n_columns,)
        1 where the cell has doubled quotes.
    lines : int64 array, shape (n_records,)
        Line on which each record begins.
    errors : int64 array, shape (<= 10,000, 3)
        Line, code, number of cells found.
    """

    consumed: int
    n_lines: int
    cells: npt.NDArray[np.int64]
    doubled: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    n_errors: int


class Numbers(NamedTuple):
    """Numeric cells of some records as sparse rows.

    Attributes
    ----------
    lengths : int64 array, shape (n_records,)
    indices : int32 array, shape (nnz,)
        Place of the cell's column among the numeric columns.
    values : float64 array, shape (nnz,)
    longs : int64 array, shape (n_longs, 5)
        Place in `values`, start, end, record, numeric column of the decimals that are yet to be read.
    errors : int64 array, shape (<= 10,000, 5)
        Record, code, start, end, numeric column.
    """

    lengths: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    longs: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    n_errors: int


@njit(cache=True, nogil=True)
def split_records(data, at_end, n_columns, first_line, delimiter, quote):  # type: ignore[no-untyped-def]
    """Cut data into the fields of Records; a record with an error is counted and left.

    Blank lines and rows of empty cells are skipped. `delimiter` and `quote` are bytes; a quote of -1 is none.
    """
    end = len(data)
    n_marks = 2
    for at in range(end):
        n_marks += data[at] == delimiter or data[at] == 10
    # A block of blank lines makes many records of one empty cell, but none of them is stored.
    n_most = n_marks // n_columns + 1
    cells = np.empty((n_most * n_columns, 2), dtype=np.int64)
    doubled = np.zeros(n_most * n_columns, dtype=np.uint8)
    lines = np.empty(n_most, dtype=np.int64)
    errors = np.empty((MAX_ERRORS, 3), dtype=np.int64)
    n_records, n_errors = 0, 0
    # not a plain zero: what is called with it in the first round would be compiled for that number, and once more
    p, line = np.int64(0), first_line
    consumed, line_consumed = p, line
    while p < end:
        first, record_line = p, line
        n_cells, code = 0, EXACT
        more, filled = True, False
        while more:
            start, stop, twice, cell_code, p, line = _cell(data, p, end, line, delimiter, quote)
            code = cell_code if code == EXACT else code
            filled |= start < stop
            if n_cells < n_columns:
                cells[n_records * n_columns + n_cells, 0] = start
                cells[n_records * n_columns + n_cells, 1] = stop
                doubled[n_records * n_columns + n_cells] = twice
            n_cells += 1
            more = p < end and data[p] == delimiter
            p += more
        if p == end and not at_end:
            break
        # a single quoted cell is a row; of several cells spreadsheets write blank rows
        blank = not filled and code == EXACT and (n_cells > 1 or start == first)
        if code == EXACT and n_cells != n_columns:
            code = RAGGED
        if code == EXACT and not blank:
            lines[n_records] = record_line
            n_records += 1
        elif not blank:
            if n_errors < MAX_ERRORS:
                errors[n_errors, 0] = record_line
                errors[n_errors, 1] = code
                errors[n_errors, 2] = n_cells
            n_errors += 1
        if p < end:
            line += 1
            p += 1
        consumed, line_consumed = p, line
    n_cells = n_records * n_columns
    return (
        consumed,
        line_consumed - first_line,
        cells[:n_cells],
        doubled[:n_cells],
        lines[:n_records],
        errors[: min(n_errors, MAX_ERRORS)],
        n_errors,
    )


@njit(cache=True, nogil=True)
def read_numbers(data, cells, n_columns, numeric):  # type: ignore[no-untyped-def]
    """Read the cells of the columns `numeric` into the fields of Numbers; zeros are left out."""
    n_records = len(cells) // n_columns
    n_numeric = len(numeric)
    lengths = np.zeros(n_records, dtype=np.int64)
    indices = np.empty(n_records * n_numeric, dtype=np.int32)
    values = np.empty(n_records * n_numeric, dtype=np.float64)
    longs = np.empty((n_records * n_numeric, 5), dtype=np.int64)
    errors = np.empty((MAX_ERRORS, 5), dtype=np.int64)
    nnz, n_longs, n_errors = 0, 0, 0
    for record in range(n_records):
        for feature in range(n_numeric):
            start, end = cells[record * n_columns + numeric[feature]]
            while start < end and (data[start] == 32 or data[start] == 9):
                start += 1
            while start < end and (data[end - 1] == 32 or data[end - 1] == 9):
                end -= 1
            code, value = read_decimal(data, start, end)
            if code == NOT_A_NUMBER:
                code, value = _read_boolean(data, start, end)
            if code == LONG:
                longs[n_longs, 0] = nnz
                longs[n_longs, 1] = start
                longs[n_longs, 2] = end
                longs[n_longs, 3] = record
                longs[n_longs, 4] = feature
                n_longs += 1
            elif code != EXACT:
                if n_errors < MAX_ERRORS:
                    errors[n_errors, 0] = record
                    errors[n_errors, 1] = EMPTY if start == end else code
                    errors[n_errors, 2] = start
                    errors[n_errors, 3] = end
                    errors[n_errors, 4] = feature
                n_errors += 1
            if code == LONG or value != 0.0:
                indices[nnz] = feature
                values[nnz] = value
                nnz += 1
                lengths[record] += 1
    return lengths, indices[:nnz], values[:nnz], longs[:n_longs], errors[: min(n_errors, MAX_ERRORS)], n_errors


@njit(cache=True, nogil=True)
def read_texts(data, starts, ends, doubled):  # type: ignore[no-untyped-def]
    """Copy cells one after another, doubled quotes made single: bytes and the length of each."""
    lengths = np.empty(len(starts), dtype=np.int64)
    total = 0
    for k in range(len(starts)):
        total += ends[k] - starts[k]
    blob = np.empty(total, dtype=np.uint8)
    n = 0
    for k in range(len(starts)):
        before = n
        p = starts[k]
        while p < ends[k]:
            blob[n] = data[p]
            n += 1
            p += 2 if doubled[k] and data[p] == 34 else 1
        lengths[k] = n - before
    return blob[:n], lengths


@njit(cache=True, nogil=True)
def _read_boolean(data, start, end):  # type: ignore[no-untyped-def]
    """Read the spellings of booleans that :mod:`app.values` knows as 1 and 0: a code of read_decimal, and the value."""
    words = (b"true", b"True", b"TRUE", b"false", b"False", b"FALSE")
    for at in range(6):
        word = words[at]
        same = end - start == len(word)
        for k in range(len(word)):
            same = same and data[start + k] == word[k]
        if same:
            return EXACT, 1.0 if at < 3 else 0.0
    return NOT_A_NUMBER, 0.0


@njit(cache=True, nogil=True)
def _cell(data, p, end, line, delimiter, quote):  # type: ignore[no-untyped-def]
    """One cell from p on: start, stop, doubled quotes, code, the place of what ends it, the line there."""
    if p < end and data[p] == quote:
        p += 1
        start, twice = p, 0
        while p < end and (data[p] != quote or (p + 1 < end and data[p + 1] == quote)):
            twice |= data[p] == quote
            line += data[p] == 10
            p += 2 if data[p] == quote else 1
        stop = p
        if p == end:
            return start, stop, twice, UNCLOSED, p, line
        p += 1
        if p < end and data[p] == 13 and (p + 1 == end or data[p + 1] == 10):
            p += 1
        code = EXACT
        while p < end and data[p] != delimiter and data[p] != 10:
            code = AFTER_QUOTE
            p += 1
        return start, stop, twice, code, p, line
    start = p
    while p < end and data[p] != delimiter and data[p] != 10:
        p += 1
    stop = p - 1 if p > start and data[p - 1] == 13 and (p == end or data[p] == 10) else p
    return start, stop, 0, EXACT, p, line
