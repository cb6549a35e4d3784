"""Decimal numbers in bytes to float64, correctly rounded, for compiled loops that scan files.

Most numbers in files are short. A decimal whose digits make an integer up to 2**53 and whose power of ten is at
most 22 has both parts exact in float64, so one product or quotient rounds correctly (Clinger 1990, "How to read
floating point numbers accurately"). The scan does those, and leaves the long ones to Arrow's parser, all at once.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from solvers.compilation import njit

EXACT, LONG, NOT_A_NUMBER, NOT_FINITE, EMPTY = 0, 1, 2, 3, 4


def read_decimals(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
    """Values of the decimals at `data[starts[k]:ends[k]]`, blanks around them left out.

    Returns
    -------
    values : float64 array, shape (len(starts),)
        Infinite where a number is too large for float64.
    codes : int8 array, shape (len(starts),)
        EXACT, or what is wrong: EMPTY, NOT_A_NUMBER or NOT_FINITE.
    """
    if len(starts) == 0:  # which needs nothing compiled
        return np.empty(0), np.empty(0, dtype=np.int8)
    values, codes, places = _read_decimals(data, starts, ends)
    late = np.flatnonzero(codes == LONG)
    values[late] = long_decimals(data, places[late, 0], places[late, 1])
    codes[late] = EXACT
    return values, codes


def long_decimals(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Values of the decimals at `data[starts[k]:ends[k]]`, which `read_decimal` called LONG.

    Returns
    -------
    float64 array, shape (len(starts),)
        Infinite where a number is too large for float64.
    """
    if len(starts) == 0:
        return np.empty(0)
    cells = pieces(data, starts + (data[starts] == ord("+")), ends, pa.large_utf8())
    values: npt.NDArray[np.float64] = cells.cast(pa.float64()).to_numpy()
    return values


def pieces(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], kind: pa.DataType
) -> pa.Array:
    """The pieces data[starts[k]:ends[k]], of which none begins before the last one ends, as large strings or bytes."""
    n = len(starts)
    # Arrow's strings have no gaps between them: those that are here are strings of their own, each after a piece
    offsets = np.column_stack([starts, ends]).ravel()
    every = pa.Array.from_buffers(kind, max(0, 2 * n - 1), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return every.take(pa.array(np.arange(0, 2 * n, 2)))


_POWERS = np.array([10.0**k for k in range(23)])


@njit(cache=True, nogil=True)
def read_decimal(data, start, end):  # type: ignore[no-untyped-def]
    """Read data[start:end] as [sign] digits [. digits] [e [sign] digits]: one of the four codes, and the value."""
    p = start
    negative = False
    if p < end and (data[p] == 43 or data[p] == 45):
        negative = data[p] == 45
        p += 1
    mantissa = np.int64(0)
    exponent = np.int64(0)
    n_kept = 0
    whole = True
    seen = False
    dot = False
    while p < end:
        c = np.int64(data[p])
        if 48 <= c <= 57:
            seen = True
            if n_kept < 18:
                mantissa = mantissa * 10 + (c - 48)
                if mantissa > 0:
                    n_kept += 1
                if dot:
                    exponent -= 1
            else:
                whole = False
                if not dot:
                    exponent += 1
        elif c == 46 and not dot:
            dot = True
        else:
            break
        p += 1
    if not seen:
        return (NOT_FINITE if _spells_nonfinite(data, start, end) else NOT_A_NUMBER), 0.0
    if p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        down = False
        if p < end and (data[p] == 43 or data[p] == 45):
            down = data[p] == 45
            p += 1
        if p == end:
            return NOT_A_NUMBER, 0.0
        power = np.int64(0)
        while p < end and 48 <= data[p] <= 57:
            power = min(power * 10 + (np.int64(data[p]) - 48), np.int64(1_000_000_000))
            p += 1
        exponent += -power if down else power
    if p != end:
        return NOT_A_NUMBER, 0.0
    if mantissa == 0:
        return EXACT, 0.0
    if not whole or mantissa > 9007199254740992 or exponent < -22 or exponent > 22:
        return LONG, 0.0
    value = mantissa * _POWERS[exponent] if exponent >= 0 else mantissa / _POWERS[-exponent]
    return EXACT, (-value if negative else value)


@njit(cache=True, nogil=True)
def _read_decimals(data, starts, ends):  # type: ignore[no-untyped-def]
    """Values, codes (LONG ones are yet to be read), and the places without the blanks around them."""
    values, codes = np.empty(len(starts)), np.empty(len(starts), dtype=np.int8)
    places = np.empty((len(starts), 2), dtype=np.int64)
    for k in range(len(starts)):
        start, end = starts[k], ends[k]
        while start < end and (data[start] == 32 or data[start] == 9):
            start += 1
        while start < end and (data[end - 1] == 32 or data[end - 1] == 9):
            end -= 1
        code, value = read_decimal(data, start, end)
        values[k], codes[k] = value, EMPTY if start == end else code
        places[k, 0] = start
        places[k, 1] = end
    return values, codes, places


@njit(cache=True, nogil=True)
def _spells_nonfinite(data, start, end):  # type: ignore[no-untyped-def]
    """Whether data[start:end] is nan, inf or infinity in any case, signed or not."""
    p = start
    if p < end and (data[p] == 43 or data[p] == 45):
        p += 1
    a = data[p] | 32 if end - p >= 3 else 0
    b = data[p + 1] | 32 if end - p >= 3 else 0
    c = data[p + 2] | 32 if end - p >= 3 else 0
    if a == 110 and b == 97 and c == 110:
        return end - p == 3
    return a == 105 and b == 110 and c == 102 and (end - p == 3 or end - p == 8)
