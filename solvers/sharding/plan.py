"""What a training in shards will take, reckoned from counts before anything runs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.kernels import binary
from solvers.kernels.rows import ALIGNMENT
from solvers.sharding import absolute
from solvers.sharding.dealing import balanced
from solvers.sharding.exchange import Way
from solvers.sharding.schedule import PORTIONS, moves, rounds
from solvers.sharding.shard import LARGEST_BATCH

_POOL_ENTRIES, _ENTRY_BYTES = 8, 12
# of each example, what refining passes and certificates make and drop: lists, violations, messages
_PASSING_BYTES = 100
_WIDTH = 128
_BOUNDS_ROUNDS, _BOUNDS_BYTES = 3, 48
# of block steps by sums: examples a batch, rounds it takes to find its roots, and how often an example is in a round
_SUMS_BATCH, _SUMS_ROUNDS, _SUMS_LOOKS, _SUMS_BYTES = 128, 5.0, 3.3, 12
_LIST_ENTRIES = 3


class Rates(NamedTuple):
    """What the prediction takes for granted; the first two depend on the data more than any count tells.

    Attributes
    ----------
    batch : float
        Examples a round, mean over the rounds of an epoch, which adapt to the data.
    message : float
        Bytes that each shard sends of an example in an epoch.
    products : float
        Multiply-adds of weights that a thread does in a second, float32; half as many in float64.
    bandwidth : float
        Bytes a second between a shard and Redis.
    round_trip : float
        Seconds of one round of the exchange without its bytes.
    """

    batch: float = 32.0
    message: float = 100.0
    products: float = 3e9
    bandwidth: float = 1.25e8
    round_trip: float = 1e-3


# Between them lay all sets measured at C = 1. Examples a round: 6 on letter, 13 to 43 on digits, 80 to 135 on few
# texts, 220 to 420 on more; batches of 8, the least, make 4.5, as passes that refine have batches, too. Bytes: 14 on
# usps, 40 to 70 on texts, 170 on 5,000 classes.
LEAST, MOST = Rates(batch=450.0, message=10.0), Rates(batch=4.5, message=400.0)


class Share(NamedTuple):
    """One shard: its classes, the examples of these, and the most bytes that its arrays take at a time."""

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
    way: Way = "scores",
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
    way : str
        What the shards exchange. Weights and bounds can be counted beforehand; of scores the rates are taken for
        granted, of sums the examples a batch and the rounds that their roots take.

    Raises
    ------
    ValueError
        More shards than classes.
    """
    rates = rates or Rates()
    n, k = int(counts.sum()), len(counts)
    owner = balanced(counts, size)
    shares = []
    for rank in range(size):
        own = owner == rank
        n_own = int(own.sum())
        memory = memory_of(n, n_features, nnz, n_own, k, itemsize, way)
        shares.append(Share(n_own, int(counts[own].sum()), memory))
    n_rounds, sent, passes = _traffic(n, n_features, k, size, itemsize, rates, way)
    widest = max(share.classes for share in shares)
    compute = passes * float(nnz) * widest * (itemsize / 4) / (rates.products * threads)
    # parcels go in and out of Redis once; what all shards read goes out once for each, by the one link of its machine
    travel = n_rounds * rates.round_trip + (1 if way == "weights" else size) * sent / rates.bandwidth
    return Forecast(shares, n_rounds, sent, compute + travel)


def forecast_apart(
    sizes: NDArray[np.int64],
    entries: float,
    size: int,
    memory: Callable[[int], int],
    threads: int = 1,
    rates: Rates | None = None,
    what: str = "classes",
) -> Forecast:
    """Predict a training in shards of parts that need nothing of each other.

    Parameters
    ----------
    sizes : int64 array, shape (n_parts,)
        Examples that each part trains on; the shares tell their sums.
    entries : float
        Multiply-adds of a part for each of its examples in an epoch.
    size : int
        Number of shards.
    memory : callable
        The bytes of a shard with so many parts.
    threads : int
        Of each shard.
    rates : Rates, optional
    what : str
        What the parts are.

    Raises
    ------
    ValueError
        More shards than parts.
    """
    rates, owner = rates or Rates(), balanced(sizes, size, what)
    counts, examples = np.bincount(owner, minlength=size), np.bincount(owner, sizes, size)
    shares = [Share(int(c), int(n), memory(int(c))) for c, n in zip(counts, examples, strict=True)]
    seconds = float(examples.max()) * entries / (rates.products * threads) + rates.round_trip
    return Forecast(shares, 1, _BOUNDS_BYTES * size, seconds)


def _traffic(
    n: int, n_features: int, k: int, size: int, itemsize: int, rates: Rates, way: Way
) -> tuple[int, int, float]:
    """Rounds and bytes of an epoch, and how often it reads the weights of every entry."""
    if way == "bounds":
        return 1, _BOUNDS_BYTES * size, 1.0
    if way == "scores":
        return int(np.ceil(n / rates.batch)) + _BOUNDS_ROUNDS, int(n * size * rates.message), 1.0
    if way == "sums":
        batches = np.ceil(n / _SUMS_BATCH)
        return int(batches * _SUMS_ROUNDS) + _BOUNDS_ROUNDS, int(n * size * (1 + _SUMS_BYTES * _SUMS_LOOKS)), 3.0
    schedule = list(rounds(size))
    journeys = sum(len(moves(schedule[t], schedule[(t + 1) % len(schedule)])) for t in range(len(schedule)))
    half = n_features * -(-k // (2 * size * (ALIGNMENT // itemsize))) * ALIGNMENT
    # of every example the length of its list in each shard and whether it has moved; the entries once
    lists = n * (5 * size + _ENTRY_BYTES * _LIST_ENTRIES)
    return PORTIONS * ((len(schedule) if size > 1 else 0) + 2) + _BOUNDS_ROUNDS, PORTIONS * journeys * half + lists, 1.0


def memory_of(n: int, n_features: int, nnz: int, n_own: int, k: int, itemsize: int, way: Way) -> int:
    """The bytes of the arrays of a shard that has ``n_own`` of ``k`` classes; all else as :func:`forecast` has it."""
    lanes = ALIGNMENT // itemsize
    weights = n_features * -(-n_own // lanes) * ALIGNMENT
    # the matrix as it was given, in float64, and as it is laid out
    rows = nnz * 12 + 8 * n + nnz * (4 + itemsize) + 16 * n
    # labels, weights, bounds, f_y, rests, gains and orders of examples
    examples = n * (4 + 8 + 8 + 8 + 1 + 4 + 8)
    pool = (_POOL_ENTRIES * n + LARGEST_BATCH * (_WIDTH + 1)) * _ENTRY_BYTES + 16 * n
    if way == "scores":
        # two batches, and half of each again for those that go in two messages
        batches = 3 * LARGEST_BATCH * min(_WIDTH, k) * (4 + itemsize)
        return int(weights + rows + examples + pool + batches + _PASSING_BYTES * n)
    if way == "weights":
        # at home, the halves that play, and those that arrive
        return int(3 * weights + rows + examples + 2 * pool)
    if way == "bounds":
        width = binary.block_width(n_own, np.dtype(f"f{itemsize}"))
        blocks = -(-n_own // width)
        # weights and dual variables; of each example and block its gain, its rest and, in a certificate, its gap
        return int(rows + examples + blocks * ((n_features + n) * width * itemsize + n * (4 + 1 + 8)))
    padded = -(-n_own // lanes) * ALIGNMENT
    batches = absolute.LARGEST_BATCH * (2 * (padded + 2 * n_own * itemsize) + 8 * n_own)
    return int(weights + rows + examples + n * n_own * itemsize + batches)
