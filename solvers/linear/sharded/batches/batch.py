"""One batch of examples: the scores and candidates that a shard finds for it, all of the current weights.

What a shard publishes of a batch, and how the messages of all shards become the batch that all of them see.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, add_costs, cost_of
from solvers.linear.layouts import class_lists
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.sharded.task import Shard
from solvers.linear.steps import slack_step
from solvers.linear.steps.block_step import root
from solvers.numerics.array_types import Array, Bytes, Floats, Ints, Ints32
from solvers.numerics.best import kth_smallest
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import PARTS, Rows, above, best_of_parts
from solvers.numerics.simd import largest, prefetch
from solvers.sharding.exchange import Arrays

AHEAD = 4


class Batch(NamedTuple):
    """Examples of one batch with their scores.

    ``held`` has the scores of the classes in the examples' lists, those of example e from ``first[e]``; ``classes[e]``
    and ``scores[e]`` the ``counts[e]`` candidates beside them.
    """

    examples: Ints32
    f_y: Array
    first: Ints
    held: Array
    counts: Ints32
    classes: Ints32
    scores: Array


def empty_batch(size: int, width: int, dtype: np.dtype[Any]) -> Batch:
    """A batch without examples, for up to ``size`` of them and ``width`` candidates of each."""
    return Batch(
        np.empty(0, np.int32),
        np.empty(size, dtype),
        np.zeros(size + 1, np.int64),
        np.empty(0, dtype),
        np.zeros(size, np.int32),
        np.empty((size, width), np.int32),
        np.empty((size, width), dtype),
    )


def with_examples(batch: Batch, pool: Coefficients, examples: Ints32) -> Batch:
    """The same buffers for other examples, with room for their lists."""
    n = len(examples)
    np.cumsum(np.maximum(pool.length[examples] - 1, 0), out=batch.first[1 : n + 1])
    held = int(batch.first[n])
    batch = batch._replace(examples=examples)
    return batch if held <= len(batch.held) else batch._replace(held=np.empty(2 * held, batch.held.dtype))


@njit(cache=True, nogil=True)
def prepare(
    largest_loss: bool,
    rows: Rows,
    y: Ints32,
    bounds: Floats,
    shard: Shard,
    lists: Lists | None,
    pool: Coefficients,
    seen: Floats,
    costs: Costs | None,
    batch: Batch,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Scores of the shard's classes and its candidates, for examples begin to end of the batch.

    With ``costs`` of the shard's answers these decide about the candidates: what an answer costs more than 1 is added
    to its score, or its loss multiplied. What is published are the scores alone.

    A candidate is a class whose variable is zero and may become positive. What a shard knows of an example, its own
    classes and the f_y last seen, bounds the root of the block step from below, so that it finds few too many. Of
    more than ``width`` those of the highest scores are kept.
    """
    W, own_classes, local, k = shard.W, shard.own, shard.local, shard.own.shape[0]
    examples, indptr, indices, data, squares = batch.examples, rows.indptr, rows.indices, rows.data, rows.squares
    first, of_own, held, counts = batch.first, batch.f_y, batch.held, batch.counts
    start, listed, values = pool.start, pool.classes, pool.values
    f, found, b = np.zeros(W.shape[1], W.dtype), np.empty(k, np.int32), np.empty(k + PARTS)
    tops, raw = np.empty(PARTS, W.dtype), f
    if costs is not None:
        raw, row, weights, old = np.empty(W.shape[1], W.dtype), np.empty(W.shape[1]), np.empty(k), np.empty(k)
    if lists is not None:
        middle, n_hot, w_start, w_length, w_cells = lists.middle, W.shape[0], lists.start, lists.length, lists.cells
    for e in range(begin, end):
        if e + AHEAD < end:
            i = examples[e + AHEAD]
            _prefetch_example(indptr, indices, data, start, listed, values, i)
            prefetch(seen, i)
            prefetch(bounds, i)
            prefetch(squares, i)
            prefetch(y, i)
        i = examples[e]
        mid = indptr[i + 1]
        if lists is not None:
            mid = middle[i]
        sum_rows(W, indices, data, indptr[i], mid, f)
        if lists is not None:
            class_lists.add_scores(indices, data, mid, indptr[i + 1], n_hot, w_start, w_length, w_cells, f)
        own, C, K, f_y = local[y[i]], bounds[i], squares[i], seen[i]
        if own >= 0:
            of_own[e] = f[own]
            f_y = np.float64(f[own])
            f[own] = -np.inf
        for c in range(k, f.shape[0]):
            f[c] = -np.inf
        if costs is not None:
            raw[:] = f
            row[:] = 0.0
            if costs.slack:
                add_costs(costs, y[i], 0.0, row)
                if own >= 0:
                    row[own] = 0.0
            else:
                add_costs(costs, y[i], 1.0, f)
        at, m, S0 = start[i] + 1, 0, 0.0
        n_held = first[e + 1] - first[e]
        for t in range(n_held):
            S0 -= values[at + t]
        for t in range(n_held):
            c = local[listed[at + t]]
            if c >= 0:
                held[first[e] + t] = raw[c]
                b[m] = (1.0 - f_y + f[c]) / K - values[at + t] + S0
                if costs is not None and costs.slack:
                    found[m], old[m] = c, -values[at + t]
                else:
                    f[c] = -np.inf
                m += 1
        if costs is not None and costs.slack:
            n, _, _ = slack_step.candidates(
                row, f, f_y, C, K, S0, m, k, k, largest_loss, found, b, old, weights
            )  # fmt: skip
            n = slack_step.exceeding(row, f, f_y, C, K, S0, m, n, k, largest_loss, found, b, weights) - m
            for t in range(n):
                c = found[m + t]
                found[t], f[c] = c, row[c] * (1.0 - f_y + raw[c])
            if n > width:
                n = highest(f, found, n, width)
        else:
            n = _candidates(f, k, f_y, C, K, S0, m, width, largest_loss, b, found, tops)
        for t in range(n):
            batch.classes[e, t], batch.scores[e, t] = own_classes[found[t]], raw[found[t]]
        counts[e] = n


@njit(inline="always")
def _prefetch_example(
    indptr: Ints, indices: Ints32, data: Array, start: Ints, listed: Ints32, values: Floats, i: int
) -> None:
    """Ask for the row of example i and for its list."""
    for p in range(indptr[i], indptr[i + 1], 16):
        prefetch(indices, p)
        prefetch(data, p)
    prefetch(listed, start[i])
    prefetch(values, start[i])


@njit(inline="always")
def _level(f_y: float, K: float, S0: float, floor: float) -> float:
    """The score below which b does not exceed the floor, a little lower as scores are rounded."""
    return f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y)


@njit(inline="always")
def _candidates(
    f: Array,
    k: int,
    f_y: float,
    C: float,
    K: float,
    S0: float,
    m: int,
    width: int,
    largest_loss: bool,
    b: Floats,
    found: Ints32,
    tops: Array,
) -> int:
    """Candidates among the first k columns, into found; returns how many. f is -inf at what is none.

    The first m of b are those of the listed classes; the others change.
    """
    b_top, n = (1.0 - f_y + np.float64(largest(f))) / K + S0, 0
    floor = max(0.0, min(0.5 * b_top, C))
    if largest_loss:
        floor = max(floor, b_top - C)
    if m > 0:
        floor = max(floor, root(b, m, C, S0, largest_loss))
    if b_top > floor:
        n = above(f, k, _level(f_y, K, S0, floor), found, PARTS)
    if n > PARTS:
        # the root over the best class of every so many lies higher, and leaves far fewer
        best_of_parts(f, tops)
        known = m
        for t in range(PARTS):
            b_c = (1.0 - f_y + np.float64(tops[t])) / K + S0
            if b_c > floor:
                b[known] = b_c
                known += 1
        floor = max(floor, root(b, known, C, S0, largest_loss))
        level = _level(f_y, K, S0, floor)
        if width < PARTS:
            # as many lie no lower as are kept
            least = kth_smallest(tops, PARTS - width)
            level = max(level, np.float64(np.nextafter(least, f.dtype.type(-np.inf))))
        n = above(f, k, level, found, k)
    if n > width:
        n = highest(f, found, n, width)
    if n == 0:
        return 0
    # the root of all that the shard knows lies higher still, and what is below it stays zero in all shards
    for t in range(n):
        b[m + t] = (1.0 - f_y + f[found[t]]) / K + S0
    kept, level = 0, _level(f_y, K, S0, root(b, m + n, C, S0, largest_loss))
    for t in range(n):
        if f[found[t]] > level:
            found[kept] = found[t]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def prepare_listed(rows: Rows, shard: Shard, pool: Coefficients, batch: Batch, begin: int, end: int) -> None:
    """Scores of those of the shard's classes that the lists of examples begin to end name; no candidates."""
    W, local, f_y, held, first = shard.W, shard.local, batch.f_y, batch.held, batch.first
    examples, counts, indptr, indices, data = batch.examples, batch.counts, rows.indptr, rows.indices, rows.data
    start, length, classes, values = pool.start, pool.length, pool.classes, pool.values
    cells, width = W.reshape(-1), np.uint64(W.shape[1])
    columns, places = np.empty(shard.own.shape[0] + 2, np.uint64), np.empty(shard.own.shape[0] + 2, np.int64)
    for e in range(begin, end):
        if e + AHEAD < end:
            _prefetch_example(indptr, indices, data, start, classes, values, examples[e + AHEAD])
        if e + 1 < end:
            i = examples[e + 1]
            for t in range(start[i], start[i] + length[i]):
                c = local[classes[t]]
                if c >= 0:
                    for p in range(indptr[i], indptr[i + 1]):
                        prefetch(cells, np.int64(np.uint64(indices[p]) * width) + c)
        i, n = examples[e], 0
        for t in range(length[i]):
            c = local[classes[start[i] + t]]
            if c >= 0:
                columns[n], places[n] = c, t
                n += 1
        columns[n] = columns[max(n - 1, 0)]
        counts[e] = 0
        for t in range(0, n, 2):
            c_0, c_1 = columns[t], columns[t + 1]
            f_0, f_1 = cells.dtype.type(0), cells.dtype.type(0)
            for p in range(indptr[i], indptr[i + 1]):
                base, x = np.uint64(indices[p]) * width, data[p]
                f_0 += x * cells[base + c_0]
                f_1 += x * cells[base + c_1]
            for s in range(t, min(t + 2, n)):
                f = f_0 if s == t else f_1
                if places[s] == 0:
                    f_y[e] = f
                else:
                    held[first[e] + places[s] - 1] = f


@njit(cache=True, nogil=True)
def highest(f: Array, found: Ints32, n: int, width: int) -> int:
    """Keep, in their order, the width of the first n found with the highest f; of equal ones the first."""
    values = np.empty(n, f.dtype)
    for t in range(n):
        values[t] = f[found[t]]
    cut, ties = kth_smallest(values, n - width), width
    for t in range(n):
        ties -= f[found[t]] > cut
    kept = 0
    for t in range(n):
        value = f[found[t]]
        if value > cut or (value == cut and ties > 0):
            ties -= value == cut
            found[kept] = found[t]
            kept += 1
    return kept


def pack(batch: Batch, y: Ints32, shard: Shard, pool: Coefficients, cross: float) -> Arrays:
    """A shard's part of a batch, in five arrays.

    What its weights say of the batch before; numbers of candidates, in bytes; the candidates' classes, and their
    scores; and, example after example, the scores of its true class and of the classes of its list that the shard owns.
    """
    n = len(batch.examples)
    room = int(batch.counts[:n].sum())
    narrow = np.uint16 if len(shard.local) <= 1 << 16 else np.int32
    classes, scores = np.empty(room, narrow), np.empty(room, batch.scores.dtype)
    own = np.empty(n + int(batch.first[n]), batch.held.dtype)
    n_own = _pack(batch, y, shard, pool, classes, scores, own)
    return [np.array([cross]), batch.counts[:n].astype(np.uint8), classes, scores, own[:n_own]]


def unpack(
    parts: Sequence[Arrays], batch: Batch, y: Ints32, owner: Ints32, pool: Coefficients, width: int, costs: Costs | None
) -> None:
    """Fill the batch from all shards' parts; ``owner[c]`` is the rank of the shard that owns class c."""
    counts, classes, scores, own = (np.concatenate([part[t] for part in parts]) for t in range(1, 5))
    starts, own_starts = (np.cumsum([0, *(len(part[t]) for part in parts[:-1])]) for t in (2, 4))
    counts, classes = counts.reshape(len(parts), -1), classes.astype(np.int32)
    _unpack(batch, y, owner, pool, counts, starts, classes, scores, own_starts, own, width, costs)


@njit(cache=True, nogil=True)
def _pack(batch: Batch, y: Ints32, shard: Shard, pool: Coefficients, classes: Ints32, scores: Array, own: Array) -> int:
    n_candidates = n_own = 0
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        for t in range(batch.counts[e]):
            classes[n_candidates], scores[n_candidates] = batch.classes[e, t], batch.scores[e, t]
            n_candidates += 1
        if shard.local[y[i]] >= 0:
            own[n_own] = batch.f_y[e]
            n_own += 1
        for t in range(batch.first[e + 1] - batch.first[e]):
            if shard.local[pool.classes[pool.start[i] + 1 + t]] >= 0:
                own[n_own] = batch.held[batch.first[e] + t]
                n_own += 1
    return n_own


@njit(cache=True, nogil=True)
def _unpack(
    batch: Batch,
    y: Ints32,
    owner: Ints32,
    pool: Coefficients,
    counts: Bytes,
    starts: Ints,
    classes: Ints32,
    scores: Array,
    own_starts: Ints,
    own: Array,
    width: int,
    costs: Costs | None,
) -> None:
    """Scores of true and listed classes; candidates of all shards, by rising class, and of too many the highest.

    With costs the highest are those that violate their margins most.
    """
    room = counts.shape[0] * batch.classes.shape[1]
    c, f, found = np.empty(room, np.int32), np.empty(room, scores.dtype), np.empty(room, np.int32)
    for e in range(batch.examples.shape[0]):
        i = batch.examples[e]
        rank = owner[y[i]]
        batch.f_y[e] = own[own_starts[rank]]
        own_starts[rank] += 1
        for t in range(batch.first[e + 1] - batch.first[e]):
            rank = owner[pool.classes[pool.start[i] + 1 + t]]
            batch.held[batch.first[e] + t] = own[own_starts[rank]]
            own_starts[rank] += 1
        n = 0
        for rank in range(counts.shape[0]):
            at = starts[rank]
            for _ in range(counts[rank, e]):
                p = n
                while p > 0 and c[p - 1] > classes[at]:
                    c[p], f[p] = c[p - 1], f[p - 1]
                    p -= 1
                c[p], f[p] = classes[at], scores[at]
                at += 1
                n += 1
            starts[rank] = at
        for t in range(n):
            found[t] = t
        if n > width:
            keys = f
            if costs is not None:
                keys = np.empty(n, f.dtype)
                for t in range(n):
                    cost = cost_of(costs, y[i], c[t])
                    keys[t] = cost * (1.0 - batch.f_y[e] + f[t]) if costs.slack else cost + f[t]
            n = highest(keys, found, n, width)
        for t in range(n):
            batch.classes[e, t], batch.scores[e, t] = c[found[t]], f[found[t]]
        batch.counts[e] = n
