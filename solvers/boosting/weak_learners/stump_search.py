"""The best decision stump of every class in one pass over the binned features.

A weight is a whole number: ``u_ic`` times a scale of its class, rounded. Sums of whole numbers do not depend on their
order, so neither do results on threads, and what rounding can do to a sum is known: half a unit a row. Sixteen classes
make a block, one vector of the processor; a row's weights in a block lie side by side. A bin of a histogram holds such
a vector, and the histogram of a feature is made by one vector addition a row. Rows without an entry for a sparse
feature are never visited: their bin is what the others leave of the total.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.boosting.simd import LANES, add, fill_rest, scan_lanes
from solvers.numerics.parallel_for import MOST_PIECES, parallel_for

LINE = 64
LEAST = 1e-280


@njit(cache=True, nogil=True)
def histograms(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    f: int,
    many: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    stride: int,
    H: NDArray[Any],
) -> None:
    """H = histograms of ``many`` features from f on, ``stride`` numbers apart; either 4 dense ones or a single one."""
    n, n_dense = dense.shape[1], dense.shape[0]
    for q in range(many):
        H[q * stride : q * stride + n_bins[f + q] * LANES] = 0
    if many == 4:
        c0, c1, c2, c3 = dense[f], dense[f + 1], dense[f + 2], dense[f + 3]
        for i in range(n):
            at = np.int64(i) * LANES
            add(H, np.int64(c0[i]) * LANES, U, at)
            add(H, stride + np.int64(c1[i]) * LANES, U, at)
            add(H, 2 * stride + np.int64(c2[i]) * LANES, U, at)
            add(H, 3 * stride + np.int64(c3[i]) * LANES, U, at)
    elif f < n_dense:
        column = dense[f]
        for i in range(n):
            add(H, np.int64(column[i]) * LANES, U, np.int64(i) * LANES)
    else:
        begin, end = indptr[f - n_dense], indptr[f - n_dense + 1]
        for p in range(begin, end):
            add(H, np.int64(codes[p]) * LANES, U, np.int64(rows[p]) * LANES)
        fill_rest(H, n_bins[f], zero[f - n_dense], totals)


@njit(cache=True, nogil=True)
def scratch(size: int, like: NDArray[Any]) -> NDArray[Any]:
    """An array of at least so many numbers of the type of ``like`` that begins at a cache line."""
    raw = np.empty(size + LINE // like.itemsize, like.dtype)
    return raw[(-raw.ctypes.data % LINE) // like.itemsize :]


@njit(cache=True, nogil=True)
def _search_part(
    piece: int,
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    edges: NDArray[np.int64],
    n_parts: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    best: NDArray[Any],
    where: NDArray[Any],
    signed: NDArray[Any],
    pointers: NDArray[np.int64],
    bins: NDArray[np.int32],
    lanes: NDArray[np.int32],
    values: NDArray[np.int64],
) -> None:
    """Stumps of one group of features for one part of the blocks."""
    n_dense, n_blocks = dense.shape[0], U.shape[0]
    group, part = piece // n_parts, piece % n_parts
    begin, end = edges[group], edges[group + 1]
    stride = LANES * n_bins[begin:end].max()
    H = scratch(4 * stride, U)
    for block in range(part * n_blocks // n_parts, (part + 1) * n_blocks // n_parts):
        u, total = U[block], totals[block]
        top, place, value = best[group, block], where[group, block], signed[group, block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(dense, indptr, rows, codes, zero, n_bins, f, many, u, total, stride, H)
            for q in range(many):
                scan_lanes(H, q * stride, n_bins[f + q] - 1, total, first[f + q], top, place, value)
                for j in range(pointers[block, f + q], pointers[block, f + q + 1]):
                    values[j] = 2 * np.int64(H[q * stride + bins[j] * LANES + lanes[j]]) - np.int64(total[lanes[j]])
            f += many


@njit(cache=True, nogil=True)
def search(
    work_queue: NDArray[np.int64],
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    edges: NDArray[np.int64],
    U: NDArray[Any],
    totals: NDArray[Any],
    pointers: NDArray[np.int64],
    bins: NDArray[np.int32],
    lanes: NDArray[np.int32],
    values: NDArray[np.int64],
    learners: NDArray[np.int64],
    signed: NDArray[np.int64],
) -> None:
    """The best stump of every lane, its number and its value; and the values of those that are asked for.

    A stump is +1 on the bins up to b and -1 above; its number is ``first[f] + b``, its value ``2 L - total`` with L the
    sum of u up to b. The best has the largest size of all, and is the first of equals; it is the constant, -1, where
    none beats that. The stumps asked for are numbered by block and feature: those of block B and feature f stand at
    ``pointers[B, f] : pointers[B, f + 1]`` of bins and lanes, and their values are written to ``values``. ``edges`` cut
    the features into groups for threads.
    """
    n_groups, n_blocks = len(edges) - 1, U.shape[0]
    n_parts = max(1, min(n_blocks, (MOST_PIECES - 1) // max(n_groups, 1)))
    shape = (max(n_groups, 1), n_blocks, LANES)
    best, where, value = np.empty(shape, U.dtype), np.empty(shape, U.dtype), np.empty(shape, U.dtype)
    best[:], where[:], value[:] = np.abs(totals), -1, totals
    known = dense, indptr, rows, codes, zero, n_bins, first, edges, n_parts, U, totals
    parallel_for(
        work_queue, _search_part, n_groups * n_parts, (*known, best, where, value, pointers, bins, lanes, values)
    )
    for block in range(n_blocks):
        for lane in range(LANES):
            top = 0
            for group in range(1, n_groups):
                if best[group, block, lane] > best[top, block, lane]:
                    top = group
            learners[block * LANES + lane] = where[top, block, lane]
            signed[block * LANES + lane] = value[top, block, lane]


@njit(cache=True, nogil=True)
def pool(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    begin: int,
    end: int,
    U: NDArray[Any],
    totals: NDArray[Any],
    real: bool,
    H: NDArray[Any],
    values: NDArray[np.float64],
) -> None:
    """Add up over all lanes what stumps of the features [begin, end) are worth to each; values by threshold.

    A stump is worth ``|2 L - total|`` to a lane. Or, ``real``: lanes j and j + 8 hold the weights of the rows for and
    against one output, and a stump is worth minus ``sqrt(L_j L_{j + 8}) + sqrt(R_j R_{j + 8})``, half of what its best
    votes on both sides would leave of the loss.
    """
    stride = len(H) // 4
    n_dense, half = dense.shape[0], LANES // 2
    left = np.empty(LANES)
    for block in range(U.shape[0]):
        total = totals[block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(dense, indptr, rows, codes, zero, n_bins, f, many, U[block], total, stride, H)
            for q in range(many):
                left[:] = 0.0
                for b in range(n_bins[f + q] - 1):
                    h = H[q * stride + b * LANES : q * stride + (b + 1) * LANES]
                    worth = 0.0
                    for c in range(LANES):
                        left[c] += h[c]
                    if real:
                        for c in range(half):
                            worth -= np.sqrt(left[c] * left[c + half])
                            worth -= np.sqrt((total[c] - left[c]) * (total[c + half] - left[c + half]))
                    else:
                        for c in range(LANES):
                            worth += abs(2.0 * left[c] - total[c])
                    values[first[f + q] + b] += worth
            f += many


@njit(cache=True, nogil=True)
def say(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    first: NDArray[np.int64],
    learners: NDArray[np.int64],
    out: NDArray[np.int8],
) -> None:
    """out[j, i] = what stump ``learners[j]`` says of row i."""
    features, bins = np.empty(len(learners), np.int64), np.empty(len(learners), dense.dtype)
    for j in range(len(learners)):
        features[j] = np.searchsorted(first, learners[j], side="right") - 1 if learners[j] >= 0 else -1
        bins[j] = learners[j] - first[features[j]] if learners[j] >= 0 else 0
    sides(dense, indptr, rows, codes, zero, features, bins, out)


@njit(cache=True, nogil=True)
def scale(
    masses: NDArray[np.float64], n: int, top: float, scales: NDArray[np.float64], slack: NDArray[np.float64]
) -> None:
    """Scales so that lanes of these masses make full use of whole numbers up to ``top``.

    ``slack`` becomes what rounding may take from the value of any stump: half a unit in each of the n rows.
    """
    for j in range(len(masses)):
        scales[j] = top / masses[j] if masses[j] > LEAST else 1.0
        slack[j] = min(0.5 * n / scales[j] + 1e-15 * n * masses[j], masses[j])


@njit(cache=True, nogil=True)
def sides(
    dense: NDArray[Any],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    codes: NDArray[Any],
    zero: NDArray[np.int32],
    features: NDArray[np.int64],
    bins: NDArray[Any],
    out: NDArray[np.int8],
) -> None:
    """out[j, i] = +1 where row i is in a bin of features[j] up to bins[j], else -1; +1 everywhere for feature -1.

    With bins of the codes' own type the comparison takes a vector of codes at a time.
    """
    n_dense = dense.shape[0]
    for j in range(len(features)):
        f, b, side = features[j], bins[j], out[j]
        if f < 0:
            side[:] = 1
        elif f < n_dense:
            column = dense[f]
            for i in range(len(side)):
                side[i] = 1 if column[i] <= b else -1
        else:
            side[:] = 1 if zero[f - n_dense] <= b else -1
            for p in range(indptr[f - n_dense], indptr[f - n_dense + 1]):
                side[rows[p]] = 1 if codes[p] <= b else -1
