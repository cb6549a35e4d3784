"""One batch of examples: the buffers of its scores, candidates and inner products, and the kernels that fill them."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.coefficients import Coefficients
from solvers.kernels.rows import Rows, above, score


class Shard(NamedTuple):
    """What a shard owns: ``own`` lists its classes in rising order, ``local[c]`` is the column of class c or -1."""

    own: NDArray[np.int32]
    local: NDArray[np.int32]
    W: NDArray[Any]


class Batch(NamedTuple):
    """Examples of one batch; all scores are of the weights that stood when the batch was scored.

    ``held`` has the scores of the classes in the examples' lists, those of example e from ``first[e]``; ``classes[e]``
    and ``scores[e]`` the ``counts[e]`` candidates beside them. ``dense[j]`` is the column of a frequent feature j; the
    others have postings, entries ``post[j]`` to ``post[j] + posts[j]`` of ``at`` and ``value``. ``gram[e]`` holds the
    inner products of example e with the examples of the batch before, then with those of this one up to e.
    """

    examples: NDArray[np.int32]
    f_y: NDArray[Any]
    first: NDArray[np.int64]
    held: NDArray[Any]
    counts: NDArray[np.int32]
    classes: NDArray[np.int32]
    scores: NDArray[Any]
    gram: NDArray[np.float64]
    dense: NDArray[np.float64]
    post: NDArray[np.int64]
    posts: NDArray[np.int32]
    at: NDArray[np.int32]
    value: NDArray[np.float64]


def empty_batch(size: int, width: int, n_features: int, n_frequent: int, dtype: np.dtype[Any]) -> Batch:
    """A batch without examples, for up to ``size`` of them and ``width`` candidates of each."""
    return Batch(
        np.empty(0, np.int32),
        np.empty(size, dtype),
        np.zeros(size + 1, np.int64),
        np.empty(0, dtype),
        np.zeros(size, np.int32),
        np.empty((size, width), np.int32),
        np.empty((size, width), dtype),
        np.empty((size, 2 * size)),
        np.zeros((n_frequent, size)),
        np.zeros(n_features, np.int64),
        np.zeros(n_features, np.int32),
        np.empty(0, np.int32),
        np.empty(0),
    )


def with_examples(batch: Batch, rows: Rows, pool: Coefficients, examples: NDArray[np.int32]) -> Batch:
    """The same buffers for other examples, with room for their lists and their postings."""
    n = len(examples)
    np.cumsum(np.maximum(pool.length[examples] - 1, 0), out=batch.first[1 : n + 1])
    held, cells = int(batch.first[n]), int((rows.indptr[examples + 1] - rows.indptr[examples]).sum())
    batch = batch._replace(examples=examples)
    if held > len(batch.held):
        batch = batch._replace(held=np.empty(2 * held, batch.held.dtype))
    if cells > len(batch.at):
        batch = batch._replace(at=np.empty(2 * cells, np.int32), value=np.empty(2 * cells))
    return batch


@njit(cache=True, nogil=True)
def index(rows: Rows, batch: Batch) -> None:
    """Fill the dense columns and the postings; both are all zero before, and after :func:`forget`."""
    used, frequent = 0, batch.dense.shape[0]
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[p]
            if j < frequent:
                batch.dense[j, e] = rows.data[p]
            else:
                batch.posts[j] += 1
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[p]
            if batch.posts[j] > 0:
                batch.post[j] = used
                used += batch.posts[j]
                batch.posts[j] = -1
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[p]
            if j >= frequent:
                if batch.posts[j] < 0:
                    batch.posts[j] = 0
                to = batch.post[j] + batch.posts[j]
                batch.at[to], batch.value[to] = e, rows.data[p]
                batch.posts[j] += 1


@njit(cache=True, nogil=True)
def forget(rows: Rows, batch: Batch) -> None:
    """Empty the dense columns and the postings."""
    batch.dense[:] = 0.0
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            batch.posts[rows.indices[p]] = 0


@njit(cache=True, nogil=True)
def prepare(
    rows: Rows,
    y: NDArray[np.int32],
    shard: Shard,
    pool: Coefficients,
    seen: NDArray[np.float64],
    before: Batch,
    batch: Batch,
    begin: int,
    end: int,
    full: bool,
) -> None:
    """Scores of the shard's classes, its candidates and the inner products, for examples begin to end of the batch.

    The candidates beside the held classes are the violators f_c > f_y - 1 by the f_y last seen, by rising class; of
    more than there is room for, those of the highest scores, so that all shards choose what one alone would choose.
    """
    W, width = shard.W, batch.classes.shape[1]
    k, past = shard.own.shape[0], before.examples.shape[0]
    f, found = np.empty(W.shape[1], W.dtype), np.empty(k, np.int32)
    for e in range(begin, end):
        i = batch.examples[e]
        _inner_products(rows, i, before, batch.gram[e], past)
        _inner_products(rows, i, batch, batch.gram[e, past:], e)
        own = shard.local[y[i]]
        start = pool.start[i] + 1
        batch.counts[e] = 0
        if full:
            score(rows, i, W, f)
            if own >= 0:
                batch.f_y[e], f[own] = f[own], -np.inf
            for t in range(batch.first[e + 1] - batch.first[e]):
                c = shard.local[pool.classes[start + t]]
                if c >= 0:
                    batch.held[batch.first[e] + t], f[c] = f[c], -np.inf
            n = above(f, k, seen[i] - 1.0, found, 0)
            if n > width:
                n = highest(f, found, n, width)
            for t in range(n):
                batch.classes[e, t], batch.scores[e, t] = shard.own[found[t]], f[found[t]]
            batch.counts[e] = n
        else:
            if own >= 0:
                batch.f_y[e] = score_of(rows, i, W, own)
            for t in range(batch.first[e + 1] - batch.first[e]):
                c = shard.local[pool.classes[start + t]]
                if c >= 0:
                    batch.held[batch.first[e] + t] = score_of(rows, i, W, c)


@njit(cache=True, nogil=True)
def highest(f: NDArray[Any], found: NDArray[np.int32], n: int, width: int) -> int:
    """Keep, in their order, the width of the first n found with the highest f; of equal ones the first."""
    values = np.empty(n, f.dtype)
    for t in range(n):
        values[t] = f[found[t]]
    cut = np.partition(values, n - width)[n - width]
    ties = width
    for t in range(n):
        ties -= values[t] > cut
    kept = 0
    for t in range(n):
        if values[t] > cut or (values[t] == cut and ties > 0):
            ties -= values[t] == cut
            found[kept] = found[t]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def score_of(rows: Rows, i: int, W: NDArray[Any], c: int) -> float:
    """The score of example i for the class in column c."""
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += np.float64(rows.data[p]) * np.float64(W[rows.indices[p], c])
    return total


@njit(cache=True, nogil=True)
def _inner_products(rows: Rows, i: int, other: Batch, out: NDArray[np.float64], n: int) -> None:
    """out[e] = x_i . x_e for the first n examples of the other batch, from its dense columns and its postings."""
    frequent = other.dense.shape[0]
    for e in range(n):
        out[e] = 0.0
    p, end = rows.indptr[i], rows.indptr[i + 1]
    while p < end and rows.indices[p] < frequent:
        column, x = other.dense[rows.indices[p]], np.float64(rows.data[p])
        for e in range(n):
            out[e] += x * column[e]
        p += 1
    while p < end:
        j, x = rows.indices[p], np.float64(rows.data[p])
        begin = other.post[j]
        for t in range(begin, begin + other.posts[j]):
            e = other.at[t]
            if e >= n:
                break
            out[e] += x * other.value[t]
        p += 1
