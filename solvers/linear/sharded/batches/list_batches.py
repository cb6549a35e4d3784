"""What a batch does where weights of rare features are lists: scores of listed classes, updates, and taking them back.

The sums are those of dense rows, with a missing entry for a zero, so that they have the same bits. One thread puts
updates into the lists, as all lists lie in one pool.
"""

import numpy as np
from numba import njit

from solvers.linear.layouts.class_lists import Lists, lacking, place, score_placed, update
from solvers.linear.sharded.batches.batch import Batch
from solvers.linear.sharded.batches.updates import BatchUpdates
from solvers.linear.sharded.task import Shard
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows


@njit(cache=True, nogil=True)
def prepare_listed(
    rows: Rows, shard: Shard, lists: Lists, pool: Coefficients, batch: Batch, begin: int, end: int
) -> None:
    """As :func:`solvers.linear.sharded.batches.batch.prepare_listed`."""
    local, f_y, held, first, n_hot = shard.local, batch.f_y, batch.held, batch.first, shard.W.shape[0]
    indptr, indices, data, middle = rows.indptr, rows.indices, rows.data, lists.middle
    cells, width, bits = shard.W.reshape(-1), np.uint64(shard.W.shape[1]), lists.counters[0].bits
    room = shard.own.shape[0] + 1
    columns, places, f = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, shard.W.dtype)
    slots = np.empty(1, np.int64)
    for e in range(begin, end):
        i, n = batch.examples[e], 0
        for t in range(pool.length[i]):
            c = local[pool.classes[pool.start[i] + t]]
            if c >= 0:
                columns[n], places[n], f[n] = c, t, 0
                n += 1
        batch.counts[e] = 0
        if n == 0:
            continue
        mid, high = middle[i], indptr[i + 1]
        for p in range(indptr[i], mid):
            base, x = np.uint64(indices[p]) * width, data[p]
            for t in range(n):
                f[t] += x * cells[base + np.uint64(columns[t])]
        slots = _with_room(slots, n * (high - mid))
        place(indices, mid, high, n_hot, lists.start, lists.length, lists.cells, bits, columns, n, slots)
        score_placed(data, mid, high, lists.cells, slots, n, f)
        for t in range(n):
            if places[t] == 0:
                f_y[e] = f[t]
            else:
                held[first[e] + places[t] - 1] = f[t]


@njit(cache=True, nogil=True)
def apply(rows: Rows, shard: Shard, lists: Lists, batch: Batch, updates: BatchUpdates, begin: int) -> int:
    """As :func:`solvers.linear.sharded.batches.updates.apply`, of all columns, from example ``begin`` of the batch on.

    Returns where the pool had no more room.
    """
    indptr, indices, data, middle, n_hot = rows.indptr, rows.indices, rows.data, lists.middle, shard.W.shape[0]
    cells, width, counters = shard.W.reshape(-1), np.uint64(shard.W.shape[1]), lists.counters[0]
    room = shard.own.shape[0] + 1
    columns, places = np.empty(room, np.int32), np.empty(room, np.int64)
    steps, sums, slots = np.empty(room), np.empty(room), np.empty(1, np.int64)
    for e in range(begin, batch.examples.shape[0]):
        i, n = batch.examples[e], _own_steps(shard, updates, e, columns, steps, places)
        if n == 0:
            continue
        mid, high = middle[i], indptr[i + 1]
        need = lacking(indices, mid, high, n_hot, lists.length, n)
        if counters.end + need > counters.limit:
            counters.lacking = need
            return e
        sums[:n] = 0.0
        for p in range(indptr[i], mid):
            base, x = np.uint64(indices[p]) * width, data[p]
            for t in range(n):
                at = base + np.uint64(columns[t])
                before = cells[at]
                sums[t] += x * before
                cells[at] = before + steps[t] * x
        slots = _with_room(slots, n * (high - mid))
        place(indices, mid, high, n_hot, lists.start, lists.length, lists.cells, counters.bits, columns, n, slots)
        score_placed(data, mid, high, lists.cells, slots, n, sums)
        update(indices, data, mid, high, n_hot, lists, columns, steps, n, slots)
        for t in range(n):
            updates.found[places[t]] = sums[t]
    return int(batch.examples.shape[0])


@njit(cache=True, nogil=True)
def undo_part(rows: Rows, shard: Shard, lists: Lists, batch: Batch, updates: BatchUpdates, part: float) -> None:
    """As :func:`solvers.linear.sharded.batches.updates.undo_part`, of all columns; all entries are there."""
    indptr, indices, data, middle, n_hot = rows.indptr, rows.indices, rows.data, lists.middle, shard.W.shape[0]
    cells, width, bits = shard.W.reshape(-1), np.uint64(shard.W.shape[1]), lists.counters[0].bits
    room = shard.own.shape[0] + 1
    columns, places = np.empty(room, np.int32), np.empty(room, np.int64)
    steps, slots = np.empty(room), np.empty(1, np.int64)
    for e in range(batch.examples.shape[0]):
        i, n = batch.examples[e], _own_steps(shard, updates, e, columns, steps, places)
        if n == 0:
            continue
        mid, high = middle[i], indptr[i + 1]
        for t in range(n):
            steps[t] *= -part
        for p in range(indptr[i], mid):
            base, x = np.uint64(indices[p]) * width, data[p]
            for t in range(n):
                cells[base + np.uint64(columns[t])] += steps[t] * x
        slots = _with_room(slots, n * (high - mid))
        place(indices, mid, high, n_hot, lists.start, lists.length, lists.cells, bits, columns, n, slots)
        update(indices, data, mid, high, n_hot, lists, columns, steps, n, slots)


@njit(cache=True, nogil=True)
def _own_steps(shard: Shard, updates: BatchUpdates, e: int, columns: Ints32, steps: Floats, places: Ints) -> int:
    """The updates of example e that concern the shard, by rising column; returns how many."""
    n = 0
    for at in range(updates.first[e], updates.first[e + 1]):
        c = shard.local[updates.classes[at]]
        if c >= 0:
            t = n
            while t > 0 and columns[t - 1] > c:
                columns[t], steps[t], places[t] = columns[t - 1], steps[t - 1], places[t - 1]
                t -= 1
            columns[t], steps[t], places[t] = c, updates.values[at], at
            n += 1
    return n


@njit(cache=True, nogil=True)
def _with_room(slots: Array, n: int) -> Array:
    return slots if n <= slots.shape[0] else np.empty(2 * n, np.int64)
