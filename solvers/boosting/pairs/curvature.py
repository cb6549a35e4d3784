"""Second derivatives of the loss of pairs after the weights of learners, from a sample of the pairs.

The loss ``mu_iq`` of a row and a wrong class has second derivatives ``mu_iq z z'``, with z_j = h_j(x_i) for learners
of class q, ``-h_j(x_i)`` for those of the row's own class, 0 for all others. So classes are coupled through their own
rows, and steps that know of one class alone creep.

Learners are grouped by class, each group filled up to a multiple of four by learners that say 0, as products are formed
for four by four of them at once.
"""

import numpy as np
from numba import njit

from solvers.boosting.pairs.pair_sample import PairSample
from solvers.boosting.pairs.pair_weights import SUMS
from solvers.numerics.array_types import Floats32, Ints, Ints32
from solvers.numerics.parallel_for import parallel_for

# learners of a tile, and lanes to which pairs are filled up; pairs of a block, whose tables stay in the cache
FOUR, LANE, BLOCK = 4, 8, 512


@njit(cache=True, nogil=True, forceinline=True, fastmath=SUMS)
def _tile(
    a: Floats32,
    b: Floats32,
    c: Floats32,
    d: Floats32,
    s: Floats32,
    t: Floats32,
    u: Floats32,
    v: Floats32,
    out: Floats32,
) -> None:
    """Products of a, b, c, d with s, t, u, v, added to the first four places of four rows of out."""
    a_s = a_t = a_u = a_v = np.float32(0.0)
    b_s = b_t = b_u = b_v = np.float32(0.0)
    c_s = c_t = c_u = c_v = np.float32(0.0)
    d_s = d_t = d_u = d_v = np.float32(0.0)
    for p in range(len(a)):
        a_s += a[p] * s[p]
        a_t += a[p] * t[p]
        a_u += a[p] * u[p]
        a_v += a[p] * v[p]
        b_s += b[p] * s[p]
        b_t += b[p] * t[p]
        b_u += b[p] * u[p]
        b_v += b[p] * v[p]
        c_s += c[p] * s[p]
        c_t += c[p] * t[p]
        c_u += c[p] * u[p]
        c_v += c[p] * v[p]
        d_s += d[p] * s[p]
        d_t += d[p] * t[p]
        d_u += d[p] * u[p]
        d_v += d[p] * v[p]
    out[0, 0] += a_s
    out[0, 1] += a_t
    out[0, 2] += a_u
    out[0, 3] += a_v
    out[1, 0] += b_s
    out[1, 1] += b_t
    out[1, 2] += b_u
    out[1, 3] += b_v
    out[2, 0] += c_s
    out[2, 1] += c_t
    out[2, 2] += c_u
    out[2, 3] += c_v
    out[3, 0] += d_s
    out[3, 1] += d_t
    out[3, 2] += d_u
    out[3, 3] += d_v


@njit(cache=True, nogil=True)
def _multiply(A: Floats32, B: Floats32, lower: bool, out: Floats32) -> None:
    """Add A B' to out, or only its tiles on the diagonal and below."""
    for j in range(0, len(A), FOUR):
        for m in range(0, j + FOUR if lower else len(B), FOUR):
            _tile(A[j], A[j + 1], A[j + 2], A[j + 3], B[m], B[m + 1], B[m + 2], B[m + 3], out[j : j + FOUR, m:])


@njit(cache=True, nogil=True)
def _weigh(line: Floats32, by: Floats32, sign: np.float32, out: Floats32) -> None:
    for p in range(len(by)):
        out[p] = sign * line[p] * by[p]


@njit(cache=True, nogil=True)
def _pick(line: Floats32, at: Ints32, out: Floats32) -> None:
    for p in range(len(at)):
        out[p] = line[at[p]]


@njit(cache=True, nogil=True)
def _within_class(table: Floats32, scaled: Floats32, left: Floats32, right: Floats32, out: Floats32) -> None:
    size = table.shape[1]
    for begin in range(0, size, BLOCK):
        end = min(begin + BLOCK, size)
        many = end - begin
        full = -(-many // LANE) * LANE
        A, B = left[: len(table) * full].reshape(-1, full), right[: len(table) * full].reshape(-1, full)
        for j in range(len(table)):
            _weigh(table[j, begin:end], scaled[begin:end], np.float32(1.0), A[j])
            for p in range(many):
                B[j, p] = table[j, begin + p]
            for p in range(many, full):
                A[j, p] = B[j, p] = 0.0
        _multiply(A, B, True, out)


@njit(cache=True, nogil=True)
def _between(
    one: Floats32,
    other: Floats32,
    first: int,
    at: Ints32,
    scaled: Floats32,
    left: Floats32,
    right: Floats32,
    out: Floats32,
    transposed: bool,
) -> None:
    """Pairs for which the class of ``one`` is wrong, from its column ``first`` on, and that of ``other`` the row's own.

    ``transposed`` says that the rows of out are learners of the latter.
    """
    for begin in range(0, len(at), BLOCK):
        end = min(begin + BLOCK, len(at))
        many = end - begin
        full = -(-many // LANE) * LANE
        A, B = left[: len(one) * full].reshape(-1, full), right[: len(other) * full].reshape(-1, full)
        for j in range(len(one)):
            _weigh(one[j, first + begin : first + end], scaled[begin:end], np.float32(-1.0), A[j])
            for p in range(many, full):
                A[j, p] = 0.0
        for j in range(len(other)):
            _pick(other[j], at[begin:end], B[j])
            for p in range(many, full):
                B[j, p] = 0.0
        if transposed:
            _multiply(B, A, False, out)
        else:
            _multiply(A, B, False, out)


@njit(cache=True, nogil=True)
def _table(sample: PairSample, q: int) -> Floats32:
    rows, columns = sample.offsets[q + 1] - sample.offsets[q], sample.bases[q + 1] - sample.bases[q]
    return sample.tables[sample.begins[q] : sample.begins[q + 1]].reshape(rows, columns)


@njit(cache=True, nogil=True)
def _pairs(sample: PairSample, wrong: int, own: int) -> tuple[int, slice]:
    """Where the pairs of two classes begin among the columns of the wrong one, and where they are among all."""
    k = len(sample.offsets) - 1
    first = sample.ends[wrong * k + own] - sample.ends[wrong * k]
    many = sample.ends[wrong * k + own + 1] - sample.ends[wrong * k + own]
    return first, slice(sample.bases[wrong] + first, sample.bases[wrong] + first + many)


@njit(cache=True, nogil=True)
def _class(c: int, sample: PairSample, H: Floats32) -> None:
    """Second derivatives after weights of class c and of those classes before it, on either side of the diagonal."""
    columns, scaled, offsets = sample.columns, sample.scaled, sample.offsets
    own = _table(sample, c)
    widest = 0
    for q in range(c + 1):
        widest = max(widest, offsets[q + 1] - offsets[q])
    left, right = np.empty(widest * (BLOCK + LANE), np.float32), np.empty(widest * (BLOCK + LANE), np.float32)
    if len(own) == 0:
        return
    top, bottom = offsets[c], offsets[c + 1]
    _within_class(own, scaled[sample.bases[c] : sample.bases[c + 1]], left, right, H[top:bottom, top:bottom])
    for q in range(c):
        table = _table(sample, q)
        if len(table) == 0:
            continue
        block = H[top:bottom, offsets[q] : offsets[q + 1]]
        first, pairs = _pairs(sample, c, q)
        _between(own, table, first, sample.places[columns[pairs]], scaled[pairs], left, right, block, False)
        first, pairs = _pairs(sample, q, c)
        _between(table, own, first, sample.places[columns[pairs]], scaled[pairs], left, right, block, True)
    for m in range(bottom):
        for j in range(max(top, m + 1), bottom):
            H[m, j] = H[j, m]


@njit(cache=True, nogil=True)
def second_derivatives(work_queue: Ints, sample: PairSample, H: Floats32) -> None:
    """H becomes the matrix of second derivatives after the weights at all positions."""
    H[:] = 0.0
    parallel_for(work_queue, _class, len(sample.offsets) - 1, (sample, H))
