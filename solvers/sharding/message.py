"""What a shard publishes of a batch, and how the messages of all shards become the batch that all of them see."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.coefficients import Coefficients
from solvers.sharding.batch import Batch, Shard, highest
from solvers.sharding.exchange import Arrays


def pack(batch: Batch, y: NDArray[np.int32], shard: Shard, pool: Coefficients) -> Arrays:
    """A shard's part of a batch, in five arrays.

    Scores of the true classes that it owns, in the order of the examples; numbers of candidates; their classes and
    scores; scores of the held classes that it owns, in the order of the lists.
    """
    n = len(batch.examples)
    mine = shard.local[y[batch.examples]] >= 0
    inside = np.arange(batch.classes.shape[1]) < batch.counts[:n, None]
    held = batch.held[: batch.first[n]][shard.local[held_classes(batch, pool)] >= 0]
    return [batch.f_y[:n][mine], batch.counts[:n], batch.classes[:n][inside], batch.scores[:n][inside], held]


def unpack(
    parts: Sequence[Arrays],
    batch: Batch,
    y: NDArray[np.int32],
    owner: NDArray[np.int32],
    pool: Coefficients,
) -> None:
    """Fill the batch from all shards' parts; ``owner[c]`` is the rank of the shard that owns class c."""
    n = len(batch.examples)
    of_y, of_held = owner[y[batch.examples]], owner[held_classes(batch, pool)]
    for rank, (own, _, _, _, held) in enumerate(parts):
        batch.f_y[:n][of_y == rank] = own
        batch.held[: batch.first[n]][of_held == rank] = held
    counts = np.stack([part[1] for part in parts])
    ends = np.cumsum(np.cumsum(counts, axis=1)[:, -1])
    classes, scores = np.concatenate([part[2] for part in parts]), np.concatenate([part[3] for part in parts])
    _merge(batch, counts, ends - counts.sum(axis=1), classes, scores)


def held_classes(batch: Batch, pool: Coefficients) -> NDArray[np.int32]:
    """Classes in the lists of the batch's examples but for their own, end to end."""
    n = len(batch.examples)
    first = batch.first[: n + 1]
    shift = np.repeat(pool.start[batch.examples] + 1 - first[:-1], np.diff(first))
    classes: NDArray[np.int32] = pool.classes[shift + np.arange(first[-1])]
    return classes


@njit(cache=True, nogil=True)
def _merge(
    batch: Batch, counts: NDArray[np.int32], starts: NDArray[np.int64], classes: NDArray[np.int32], scores: Any
) -> None:
    """The candidates of all shards, by rising class; of too many the highest, of equally high ones the first."""
    width = batch.classes.shape[1]
    at = starts.copy()
    room = counts.shape[0] * width
    c, f, found = np.empty(room, np.int32), np.empty(room, scores.dtype), np.empty(room, np.int32)
    for e in range(batch.examples.shape[0]):
        n = 0
        for rank in range(counts.shape[0]):
            for _ in range(counts[rank, e]):
                p = n
                while p > 0 and c[p - 1] > classes[at[rank]]:
                    c[p], f[p] = c[p - 1], f[p - 1]
                    p -= 1
                c[p], f[p] = classes[at[rank]], scores[at[rank]]
                at[rank] += 1
                n += 1
        for t in range(n):
            found[t] = t
        if n > width:
            n = highest(f, found, n, width)
        for t in range(n):
            batch.classes[e, t], batch.scores[e, t] = c[found[t]], f[found[t]]
        batch.counts[e] = n
