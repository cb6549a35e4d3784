"""What a shard publishes of a batch, and how the messages of all shards become the batch that all of them see."""

from collections.abc import Sequence

import numpy as np
from numba import njit

from solvers.linear.sharded.batches.batch import Batch, highest
from solvers.linear.sharded.task import Shard
from solvers.numerics.array_types import Array, Bytes, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.sharding.exchange import Arrays


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


def unpack(parts: Sequence[Arrays], batch: Batch, y: Ints32, owner: Ints32, pool: Coefficients, width: int) -> None:
    """Fill the batch from all shards' parts; ``owner[c]`` is the rank of the shard that owns class c."""
    counts, classes, scores, own = (np.concatenate([part[t] for part in parts]) for t in range(1, 5))
    starts, own_starts = (np.cumsum([0, *(len(part[t]) for part in parts[:-1])]) for t in (2, 4))
    counts, classes = counts.reshape(len(parts), -1), classes.astype(np.int32)
    _unpack(batch, y, owner, pool, counts, starts, classes, scores, own_starts, own, width)


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
) -> None:
    """Scores of true and listed classes; candidates of all shards, by rising class, and of too many the highest."""
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
            n = highest(f, found, n, width)
        for t in range(n):
            batch.classes[e, t], batch.scores[e, t] = c[found[t]], f[found[t]]
        batch.counts[e] = n
