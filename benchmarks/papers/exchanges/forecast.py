"""What a training by the paper's exchanges will take, counted before anything runs."""

import numpy as np

from benchmarks.papers.exchanges import Kind
from benchmarks.papers.exchanges.schedule import PORTIONS, rounds, transfers
from benchmarks.papers.exchanges.tournament import WEIGHTS_HELD
from solvers.linear.sharded import linear_shards
from solvers.numerics.array_types import Ints
from solvers.numerics.rows import ALIGNMENT
from solvers.sharding.partition import balanced
from solvers.sharding.plan import Forecast, Rates, Share

# of lists, entries of an example and bytes of each; of the mean, bytes of each feature; rounds of a certificate
_LIST_ENTRIES, _ENTRY_BYTES, _MEAN_BYTES, _BOUNDS_ROUNDS = 3, 12, 8, 3
_POOL_ENTRIES = 8


def forecast(
    counts: Ints, n_features: int, nnz: int, size: int, itemsize: int, threads: int, rates: Rates, kind: Kind
) -> Forecast:
    """As :func:`solvers.linear.sharded.linear_shards.forecast`, for all kinds."""
    if kind not in ("weights", "mean"):
        return linear_shards.forecast(counts, n_features, nnz, size, itemsize, threads, rates, kind=kind)
    n, k, owner = int(counts.sum()), len(counts), balanced(counts, size)
    shares = []
    for rank in range(size):
        n_own = int((owner == rank).sum())
        memory = _memory_bytes(n, n_features, nnz, n_own, size, itemsize, kind)
        shares.append(Share(n_own, int(counts[owner == rank].sum()), memory))
    widest = max(share.classes for share in shares)
    if kind == "mean":
        n_rounds, sent, passes, copies = PORTIONS * 2, size * (PORTIONS * _MEAN_BYTES * n_features + n), 2.0, size
    else:
        schedule = list(rounds(size))
        travelling = sum(len(transfers(schedule[t], schedule[(t + 1) % len(schedule)])) for t in range(len(schedule)))
        half = n_features * -(-k // (2 * size * (ALIGNMENT // itemsize))) * ALIGNMENT
        # of every example the length of its list in each shard and whether it has moved; the entries once
        lists = n * (5 * size + _ENTRY_BYTES * _LIST_ENTRIES)
        n_rounds = PORTIONS * ((len(schedule) if size > 1 else 0) + 2)
        sent, passes, copies = PORTIONS * travelling * half + lists, 1.0, 1
    n_rounds += _BOUNDS_ROUNDS
    compute = passes * float(nnz) * widest * (itemsize / 4) / (rates.products * threads)
    return Forecast(shares, n_rounds, sent, compute + n_rounds * rates.round_trip + copies * sent / rates.bandwidth)


def _memory_bytes(n: int, n_features: int, nnz: int, n_own: int, size: int, itemsize: int, kind: Kind) -> int:
    cells = ALIGNMENT // itemsize
    weights = n_features * -(-n_own // cells) * ALIGNMENT
    held = nnz * 12 + 8 * n + nnz * (4 + itemsize) + 16 * n + n * 45
    if kind == "weights":
        return WEIGHTS_HELD * weights + held + 2 * (_POOL_ENTRIES * n * _ENTRY_BYTES + 16 * n)
    # what all shards send of the mean is held at a time
    return int(np.sum([weights, held, n * n_own * itemsize, size * _MEAN_BYTES * n_features]))
