"""What a training in shards will take, reckoned from counts before anything runs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.kernels.rows import ALIGNMENT
from solvers.sharding.shard import LARGEST_BATCH, deal

_POOL_ENTRIES, _ENTRY_BYTES = 8, 12
_WIDTH = 128
_BOUNDS_ROUNDS, _BOUNDS_BYTES = 3, 48


class Rates(NamedTuple):
    """What the prediction takes for granted; the first two depend on the data more than any count tells.

    Attributes
    ----------
    batch : float
        Examples a round, mean over the batches of an epoch, which adapt to the data: 6 to 20 where examples are few
        or alike, hundreds where they are not.
    message : float
        Bytes that all shards together send of an example in an epoch: 0.4 to 2.4 kB on synthetic text.
    products : float
        Multiply-adds of weights that a thread does in a second, float32; half as many in float64.
    bandwidth : float
        Bytes a second between a shard and Redis.
    round_trip : float
        Seconds of one round of the exchange without its bytes.
    """

    batch: float = 32.0
    message: float = 1000.0
    products: float = 3e9
    bandwidth: float = 1.25e8
    round_trip: float = 1e-3


class Share(NamedTuple):
    """One shard: its classes, the examples of these, and the bytes of all its arrays."""

    classes: int
    examples: int
    memory_bytes: int


class Forecast(NamedTuple):
    """A plan: the shares by rank, exact but for the memory; estimates of rounds, of bytes that all shards send, and of
    the seconds of one epoch over all examples.
    """

    shares: list[Share]
    rounds: int
    bytes: int
    seconds: float


def forecast(
    counts: NDArray[np.int64],
    n_features: int,
    nnz: int,
    size: int,
    itemsize: int,
    threads: int = 1,
    rates: Rates | None = None,
    *,
    dense_duals: int = 0,
    exchanges_scores: bool = True,
) -> Forecast:
    """Predict a training in shards.

    Parameters
    ----------
    counts : int64 array, shape (n_classes,)
        Training examples of each class.
    n_features : int
        Features that some training example has.
    nnz : int
        Entries of the training examples.
    size : int
        Number of shards.
    itemsize : int
        Bytes of a weight: 4 or 8.
    threads : int
        Of each shard.
    rates : Rates, optional
    dense_duals : int
        Arrays that a method keeps with an entry for every example and class; 0: sparse lists, alike in all shards.
    exchanges_scores : bool
        Otherwise the shards train apart, and tell their bounds once an epoch.

    Raises
    ------
    ValueError
        More shards than classes.
    """
    rates = rates or Rates()
    n, k = int(counts.sum()), len(counts)
    owner = deal(np.repeat(np.arange(k, dtype=np.int32), counts), k, size)
    shares = []
    for rank in range(size):
        own = owner == rank
        n_own = int(own.sum())
        memory = _memory(n, n_features, nnz, n_own, k, itemsize, dense_duals, exchanges_scores)
        shares.append(Share(n_own, int(counts[own].sum()), memory))
    rounds, sent = 1, _BOUNDS_BYTES * size
    if exchanges_scores:
        rounds, sent = int(np.ceil(n / rates.batch)) + _BOUNDS_ROUNDS, int(n * rates.message)
    widest = max(share.classes for share in shares)
    compute = float(nnz) * widest * (itemsize / 4) / (rates.products * threads)
    travel = rounds * rates.round_trip + 2.0 * sent / rates.bandwidth
    return Forecast(shares, rounds, sent, compute + travel)


def _memory(
    n: int, n_features: int, nnz: int, n_own: int, k: int, itemsize: int, dense_duals: int, exchanges_scores: bool
) -> int:
    lanes = ALIGNMENT // itemsize
    weights = n_features * -(-n_own // lanes) * ALIGNMENT
    # the matrix as it was given, in float64, and as it is laid out
    rows = nnz * 12 + 8 * n + nnz * (4 + itemsize) + 16 * n
    width = min(_WIDTH, k)
    duals = dense_duals * n * -(-n_own // lanes) * ALIGNMENT
    pool = 0 if dense_duals else (_POOL_ENTRIES * n + LARGEST_BATCH * (_WIDTH + 1)) * _ENTRY_BYTES + 16 * n
    # labels, weights, bounds, f_y, rests, gains and orders of examples
    examples = n * (4 + 8 + 8 + 8 + 1 + 4 + 8)
    batches = 2 * LARGEST_BATCH * width * (4 + itemsize) if exchanges_scores else 0
    return int(weights + rows + duals + pool + examples + batches)
