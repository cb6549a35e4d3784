"""Sums of rows of a matrix, as many as a row of sparse features names: the scores of all classes.

Long rows go by eight at a time, from their beginnings to their ends, as the processor fetches ahead of what is read in
turn. Short ones are summed in registers, 512 bytes of each at a time. Either way a sum adds its rows in their order,
each product rounded with its addition where the processor has such an instruction: the same bits.
"""

from typing import Any

import numpy as np
from numba import njit

from solvers.numerics.array_types import Array
from solvers.numerics.simd import prefetch, sum_narrow_rows

# bytes of a row, from which on it is long; those at its beginning that are asked for ahead; those of a cache line
LONG, AHEAD, LINE = 1536, 256, 64


@njit(cache=True, nogil=True, forceinline=True, fastmath={"contract"})
def _add_one(f: Array, a: Array, x: Any) -> None:
    for c in range(len(f)):
        f[c] = f[c] + x * a[c]


@njit(cache=True, nogil=True, forceinline=True, fastmath={"contract"})
def _add_four(f: Array, a: Array, b: Array, c: Array, d: Array, x: Array) -> None:
    p, q, r, s = x[0], x[1], x[2], x[3]
    for i in range(len(f)):
        f[i] = (((f[i] + p * a[i]) + q * b[i]) + r * c[i]) + s * d[i]


@njit(cache=True, nogil=True, forceinline=True, fastmath={"contract"})
def _add_eight(
    f: Array, a: Array, b: Array, c: Array, d: Array, j: Array, k: Array, m: Array, n: Array, x: Array
) -> None:
    p, q, r, s, t, u, v, w = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    for i in range(len(f)):
        total = (((f[i] + p * a[i]) + q * b[i]) + r * c[i]) + s * d[i]
        f[i] = (((total + t * j[i]) + u * k[i]) + v * m[i]) + w * n[i]


@njit(cache=True, nogil=True)
def _sum_long_rows(W: Array, indices: Array, data: Array, begin: int, end: int, f: Array) -> None:
    f[:] = 0
    cells, width = W.reshape(-1), W.shape[1]
    p = begin
    while p + 8 <= end:
        for later in range(p + 8, min(p + 16, end)):
            # where a row begins nothing foretells
            for c in range(0, AHEAD // W.itemsize, LINE // W.itemsize):
                prefetch(cells, np.int64(indices[later]) * width + c)
        i = indices[p : p + 8]
        _add_eight(f, W[i[0]], W[i[1]], W[i[2]], W[i[3]], W[i[4]], W[i[5]], W[i[6]], W[i[7]], data[p : p + 8])
        p += 8
    if p + 4 <= end:
        i = indices[p : p + 4]
        _add_four(f, W[i[0]], W[i[1]], W[i[2]], W[i[3]], data[p : p + 4])
        p += 4
    while p < end:
        _add_one(f, W[indices[p]], data[p])
        p += 1


@njit(cache=True, nogil=True, forceinline=True)
def sum_rows(W: Array, indices: Array, data: Array, begin: int, end: int, f: Array) -> None:
    """f = sum of data[p] W[indices[p]] over begin <= p < end.

    Parameters
    ----------
    W : array of floats, shape (n, width)
        C-contiguous, rows of whole cache lines.
    indices : int array
    data : array
        Floats as those of W.
    f : array, shape (width,)
        Floats as those of W.
    """
    if W.shape[1] * W.itemsize < LONG:
        sum_narrow_rows(W, indices, data, begin, end, f)
    else:
        _sum_long_rows(W, indices, data, begin, end, f)
