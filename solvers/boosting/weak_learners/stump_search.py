"""The best decision stump of every class in one pass over the binned features.

A weight is a whole number: ``u_ic`` times a scale of its class, rounded. Sums of whole numbers do not depend on their
order, so neither do results on threads, and what rounding can do to a sum is known: half a unit a row. Sixteen classes
make a block, one vector of the processor; a row's weights in a block lie side by side. A bin of a histogram holds such
a vector, and the histogram of a feature is made by one vector addition a row. Rows without an entry for a sparse
feature are never visited: their bin is what the others leave of the total.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.boosting.simd import LANES, add_vector, scan_bins
from solvers.boosting.weak_learners.bin_codes import BinArrays, bin_of
from solvers.numerics.array_types import Array, Floats, Ints, Ints8, Ints32
from solvers.numerics.parallel_for import MOST_PIECES, parallel_for

LINE = 64


class Best(NamedTuple):
    """The best stump of every class that a search has found so far; each begins with the constant.

    Attributes
    ----------
    size, where, value : int arrays, shape (n_searches, n_blocks, 16)
        Size of the value, number of the stump, and the value.
    """

    size: Array
    where: Array
    value: Array


class Queries(NamedTuple):
    """Stumps whose values are asked for, by block of classes and by feature.

    Attributes
    ----------
    pointers : int64 array, shape (n_blocks, n_features + 1)
        The stumps of block B and feature f are at ``pointers[B, f] : pointers[B, f + 1]``.
    bins, lanes : int32 arrays, shape (n,)
        The last bin on which a stump says +1, and the class within the block.
    values : int64 array, shape (n,)
        Where the answers go.
    """

    pointers: Ints
    bins: Ints32
    lanes: Ints32
    values: Ints


@njit(cache=True, nogil=True)
def start(totals: Array, n_searches: int) -> Best:
    """Nothing found yet by any of the searches, in channels with these totals."""
    shape = (n_searches, totals.shape[0], totals.shape[1])
    best = Best(np.empty(shape, totals.dtype), np.empty(shape, totals.dtype), np.empty(shape, totals.dtype))
    # element by element: slices that arrays are assigned to take seconds to compile
    for j in range(n_searches):
        for block in range(totals.shape[0]):
            for lane in range(totals.shape[1]):
                best.size[j, block, lane] = abs(totals[block, lane])
                best.where[j, block, lane] = -1
                best.value[j, block, lane] = totals[block, lane]
    return best


@njit(cache=True, nogil=True)
def unite(best: Best, learners: Ints, values: Ints) -> None:
    """Number and value of the best stump that any search has found, by class; the first of equals."""
    size, where, value = best.size, best.where, best.value
    for block in range(size.shape[1]):
        for lane in range(LANES):
            top = 0
            for j in range(1, len(size)):
                if size[j, block, lane] > size[top, block, lane]:
                    top = j
            learners[block * LANES + lane] = where[top, block, lane]
            values[block * LANES + lane] = value[top, block, lane]


@njit(cache=True, nogil=True)
def histograms(bins: BinArrays, f: int, many: int, U: Array, total: Array, stride: int, H: Array) -> None:
    """H = histograms of ``many`` features from f on, ``stride`` numbers apart; either 4 dense ones or a single one.

    A single one may use the place of the second for its own ends.
    """
    n, n_dense = bins.dense.shape[1], bins.dense.shape[0]
    for q in range(many):
        H[q * stride : q * stride + bins.n_bins[f + q] * LANES] = 0
    if many == 4:
        c0, c1, c2, c3 = bins.dense[f], bins.dense[f + 1], bins.dense[f + 2], bins.dense[f + 3]
        for i in range(n):
            at = np.int64(i) * LANES
            add_vector(H, np.int64(c0[i]) * LANES, U, at)
            add_vector(H, stride + np.int64(c1[i]) * LANES, U, at)
            add_vector(H, 2 * stride + np.int64(c2[i]) * LANES, U, at)
            add_vector(H, 3 * stride + np.int64(c3[i]) * LANES, U, at)
    elif f < n_dense:
        column = bins.dense[f]
        for i in range(n):
            add_vector(H, np.int64(column[i]) * LANES, U, np.int64(i) * LANES)
    else:
        rows, codes = bins.rows, bins.codes
        for p in range(bins.indptr[f - n_dense], bins.indptr[f - n_dense + 1]):
            add_vector(H, np.int64(codes[p]) * LANES, U, np.int64(rows[p]) * LANES)
        # the rows without an entry are in the bin of zero: what the others lack of the total
        held = H[stride : stride + LANES]
        for lane in range(LANES):
            held[lane] = 0
        for b in range(bins.n_bins[f]):
            add_vector(H, stride, H, np.int64(b) * LANES)
        zero = np.int64(bins.zero[f - n_dense]) * LANES
        for lane in range(LANES):
            H[zero + lane] += total[lane] - held[lane]


@njit(cache=True, nogil=True)
def scratch(size: int, like: Array) -> Array:
    """An array of at least so many numbers of the type of ``like`` that begins at a cache line."""
    raw = np.empty(size + LINE // like.itemsize, like.dtype)
    return raw[(-raw.ctypes.data % LINE) // like.itemsize :]


@njit(cache=True, nogil=True)
def _search_part(
    piece: int, bins: BinArrays, edges: Ints, n_parts: int, U: Array, totals: Array, best: Best, queries: Queries
) -> None:
    """Stumps of one group of features for one part of the blocks."""
    n_dense, n_blocks = bins.dense.shape[0], U.shape[0]
    group, part = piece // n_parts, piece % n_parts
    begin, end = edges[group], edges[group + 1]
    # fields are read once: in an inner loop each reading would count the references to the array
    pointers, last, lanes, values = queries.pointers, queries.bins, queries.lanes, queries.values
    n_bins, first = bins.n_bins, bins.first
    most = 0
    for f in range(begin, end):
        most = max(most, n_bins[f])
    stride = LANES * most
    H = scratch(4 * stride, U)
    for block in range(part * n_blocks // n_parts, (part + 1) * n_blocks // n_parts):
        total = totals[block]
        size, where, value = best.size[group, block], best.where[group, block], best.value[group, block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(bins, f, many, U[block], total, stride, H)
            for q in range(many):
                scan_bins(H, q * stride, n_bins[f + q] - 1, total, first[f + q], size, where, value)
                for j in range(pointers[block, f + q], pointers[block, f + q + 1]):
                    left = np.int64(H[q * stride + last[j] * LANES + lanes[j]])
                    values[j] = 2 * left - np.int64(total[lanes[j]])
            f += many


@njit(cache=True, nogil=True)
def search(
    work_queue: Ints,
    bins: BinArrays,
    edges: Ints,
    U: Array,
    totals: Array,
    queries: Queries,
    learners: Ints,
    values: Ints,
) -> None:
    """The best stump of every class, its number and its value (Lin et al. 2012, equation 4); and what is asked for.

    A stump is +1 on the bins up to b and -1 above; its number is ``first[f] + b``, its value ``2 L - total`` with L the
    sum of u up to b. The best has the largest size of all, and is the first of equals; it is the constant, -1, where
    none beats that. ``edges`` cut the features into groups for threads.
    """
    n_groups, n_blocks = len(edges) - 1, U.shape[0]
    n_parts = max(1, min(n_blocks, (MOST_PIECES - 1) // max(n_groups, 1)))
    best = start(totals, max(n_groups, 1))
    parallel_for(work_queue, _search_part, n_groups * n_parts, (bins, edges, n_parts, U, totals, best, queries))
    unite(best, learners, values)


@njit(cache=True, nogil=True)
def add_values(
    bins: BinArrays, begin: int, end: int, U: Array, totals: Array, real: bool, H: Array, values: Floats
) -> None:
    """Add up over all lanes what stumps of the features [begin, end) are worth to each; values by threshold.

    A stump is worth ``|2 L - total|`` to a lane. Or, ``real``: lanes j and j + 8 hold the weights of the rows for and
    against one output, and a stump is worth minus ``sqrt(L_j L_{j + 8}) + sqrt(R_j R_{j + 8})``, half of what its best
    votes on both sides would leave of the loss (Schapire and Singer 1999, section 4.1).
    """
    stride, n_dense = len(H) // 4, bins.dense.shape[0]
    left, first, n_bins = np.empty(LANES), bins.first, bins.n_bins
    for block in range(U.shape[0]):
        total = totals[block]
        f = begin
        while f < end:
            many = 4 if f + 4 <= min(end, n_dense) else 1
            histograms(bins, f, many, U[block], total, stride, H)
            for q in range(many):
                left[:] = 0.0
                for b in range(n_bins[f + q] - 1):
                    h = H[q * stride + b * LANES : q * stride + (b + 1) * LANES]
                    values[first[f + q] + b] += _worth(h, total, real, left)
            f += many


@njit(cache=True, nogil=True, forceinline=True)
def _worth(h: Array, total: Array, real: bool, left: Floats) -> float:
    """Add the next bin to the sums on the left, and say what a cut behind it is worth to all lanes."""
    worth, half = 0.0, LANES // 2
    for c in range(LANES):
        left[c] += h[c]
    if real:
        for c in range(half):
            worth -= np.sqrt(left[c] * left[c + half])
            worth -= np.sqrt((total[c] - left[c]) * (total[c + half] - left[c + half]))
    else:
        for c in range(LANES):
            worth += abs(2.0 * left[c] - total[c])
    return worth


@njit(cache=True, nogil=True)
def predict(bins: BinArrays, learners: Ints, out: Ints8) -> None:
    """out[j, i] = what stump ``learners[j]`` says of row i."""
    first = bins.first
    for j in range(len(learners)):
        f = bin_of(learners[j] + 1, first, 0, len(first)) - 1 if learners[j] >= 0 else -1
        predict_one(bins, f, learners[j] - first[f] if f >= 0 else 0, out[j])


@njit(cache=True, nogil=True)
def predict_one(bins: BinArrays, f: int, b: int, out: Ints8) -> None:
    """out[i] = +1 where row i is in a bin of feature f up to b, else -1; +1 everywhere for feature -1."""
    n_dense = bins.dense.shape[0]
    if f < 0:
        out[:] = 1
    elif f < n_dense:
        # with a bin of the codes' own type the comparison takes a vector of codes at a time
        column, last = bins.dense[f], bins.dense.dtype.type(b)
        for i in range(len(out)):
            out[i] = 1 if column[i] <= last else -1
    else:
        rows, codes = bins.rows, bins.codes
        out[:] = 1 if bins.zero[f - n_dense] <= b else -1
        for p in range(bins.indptr[f - n_dense], bins.indptr[f - n_dense + 1]):
            out[rows[p]] = 1 if codes[p] <= b else -1
