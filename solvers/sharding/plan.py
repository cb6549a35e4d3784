"""What a training in shards will take, reckoned from counts before anything runs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvers.numerics.array_types import Ints
from solvers.sharding.partition import balanced

# what a shard sends of an epoch in which it needs nothing of the others but their bounds
BOUNDS_BYTES = 48


class Rates(NamedTuple):
    """Assumptions of the prediction; the first three depend on the data more than counts can show.

    Attributes
    ----------
    batch : float
        Examples a round, mean over the rounds of an epoch, which adapt to the data.
    once : float
        Bytes of an example in an epoch that travel once, however many shards there are: of its list.
    message : float
        Bytes that every shard but one adds for an example in an epoch, where it has very many classes: of candidates
        that it cannot rule out by the classes that it knows.
    certificates : float
        How many an epoch has, on average.
    products : float
        Multiply-adds of weights that a thread does in a second, float32; half as many in float64.
    bandwidth : float
        Bytes a second between a shard and Redis.
    round_trip : float
        Seconds of one round of the exchange without its bytes.
    """

    batch: float = 32.0
    once: float = 200.0
    message: float = 100.0
    certificates: float = 0.25
    products: float = 3e9
    bandwidth: float = 1.25e8
    round_trip: float = 1e-3


# Between them lay all sets measured at C = 1. Examples a round: 6 on letter, 13 to 43 on digits, 80 to 135 on few
# texts, 220 to 420 on more; batches of 8, the least, make 4.5, as inner passes have batches, too. Bytes sent once: 20
# on usps, 90 to 490 on texts, 760 on 750 classes of 4 examples each; added by a shard: 3 to 60 on texts, 240 to 350
# with so few examples a class.
LEAST, MOST = Rates(batch=450.0, once=10.0, message=2.0), Rates(batch=4.5, once=1000.0, message=600.0)


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


def forecast_independent(
    sizes: Ints,
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
        Examples that each part trains on; the shares are of their sums.
    entries : float
        Multiply-adds of a part for each of its examples in an epoch.
    size : int
        Number of shards.
    memory : callable
        The bytes of a shard with so many parts.
    threads : int
        Of each shard.
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
    return Forecast(shares, 1, BOUNDS_BYTES * size, seconds)
