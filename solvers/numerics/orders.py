"""Which examples a pass visits, in which order: planned in one call, since a pass may last a few microseconds."""

import numpy as np
from numba import njit

from solvers.numerics.array_types import Bytes, Floats, Floats32, Ints32

SHRINK_AFTER, LONGEST_BREAK = 3, 8


@njit(cache=True, nogil=True)
def active(examples: Ints32, unchanged: Bytes, epoch: int) -> Ints32:
    """Those of the examples that an epoch visits, in the order given.

    Parameters
    ----------
    examples : int32 array
    unchanged : uint8 array, shape (n_samples,)
        How many visits in a row have changed nothing. After three an example is visited every second epoch, after four
        every fourth, after five every eighth.
    """
    found, count = np.empty(examples.shape[0], np.int32), 0
    for i in examples:
        every = 1
        if unchanged[i] >= SHRINK_AFTER:
            every = min(LONGEST_BREAK, 1 << (int(unchanged[i]) - SHRINK_AFTER + 1))
        found[count] = i
        count += (i + epoch) & (every - 1) == 0
    return found[:count]


@njit(cache=True, nogil=True)
def shuffled(order: Ints32, seed: int, epoch: int) -> Ints32:
    """A copy in the random order of an epoch."""
    order = order.copy()
    shuffle(order, mixed(mixed(np.uint64(seed)) + np.uint64(epoch)))
    return order


@njit(cache=True, nogil=True)
def count_unchanged(order: Ints32, gains: Floats32, unchanged: Bytes) -> None:
    """Note of the examples that have been visited whether that has changed anything, as :func:`active` takes it."""
    for i in order:
        unchanged[i] = 0 if gains[i] > 0 else min(unchanged[i], 254) + 1


@njit(cache=True, nogil=True)
def moved(examples: Ints32, gains: Floats32, seed: int, epoch: int, number: int) -> Ints32:
    """Those of the examples whose last visit gained something, shuffled; the three numbers decide the order."""
    found, count = np.empty(examples.shape[0], np.int32), 0
    for i in examples:
        found[count] = i
        count += gains[i] > 0
    order = found[:count].copy()
    shuffle(order, mixed(mixed(mixed(np.uint64(seed)) + np.uint64(epoch)) + np.uint64(number)))
    return order


@njit(cache=True, nogil=True)
def live(
    gains: Floats32, lengths: Ints32, costs: Floats, threshold: float, seed: int, epoch: int, number: int
) -> tuple[Ints32, float]:
    """The examples with dual variables whose last visit gained more than the threshold, shuffled.

    Parameters
    ----------
    gains, lengths, costs : array, shape (n_samples,)
        What the last visit gained; how many coefficients an example has; what a visit costs for each.
    seed, epoch, number : int
        Decide the order.

    Returns
    -------
    order : int32 array
    cost : float
        Costs times coefficients, summed over the order.
    """
    n = gains.shape[0]
    found, count, cost = np.empty(n, np.int32), 0, 0.0
    for i in range(n):
        if gains[i] > threshold and lengths[i] > 0:
            found[count] = i
            count += 1
            cost += costs[i] * lengths[i]
    order = found[:count].copy()
    shuffle(order, mixed(mixed(mixed(np.uint64(seed)) + np.uint64(epoch)) + np.uint64(number)))
    return order, cost


@njit(cache=True, nogil=True)
def shuffle(order: Ints32, word: np.uint64) -> None:
    """Shuffle in place (Fisher and Yates); the same word gives the same order."""
    for last in range(order.shape[0] - 1, 0, -1):
        word += np.uint64(0x9E3779B97F4A7C15)
        draw = mixed(word) >> np.uint64(32)
        other = np.int64((draw * np.uint64(last + 1)) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]


@njit(inline="always")
def mixed(word: np.uint64) -> np.uint64:
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
