"""Which examples a pass visits, in which order: planned in one call, since a pass may last a few microseconds."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

REST_AFTER, LONGEST_REST = 3, 8


@njit(cache=True, nogil=True)
def awake(examples: NDArray[np.int32], rest: NDArray[np.uint8], epoch: int) -> NDArray[np.int32]:
    """Those of the examples that an epoch visits, in the order given.

    Parameters
    ----------
    examples : int32 array
    rest : uint8 array, shape (n_samples,)
        How many visits in a row have changed nothing. After three an example is visited every second epoch, after four
        every fourth, after five every eighth.
    epoch : int
    """
    found, count = np.empty(examples.shape[0], np.int32), 0
    for i in examples:
        every = 1
        if rest[i] >= REST_AFTER:
            every = min(LONGEST_REST, 1 << (int(rest[i]) - REST_AFTER + 1))
        found[count] = i
        count += (i + epoch) & (every - 1) == 0
    return found[:count]


@njit(cache=True, nogil=True)
def shuffled(order: NDArray[np.int32], seed: int, epoch: int) -> NDArray[np.int32]:
    """A copy in the random order of an epoch."""
    order = order.copy()
    shuffle(order, mixed(mixed(np.uint64(seed)) + np.uint64(epoch)))
    return order


@njit(cache=True, nogil=True)
def live(
    gains: NDArray[np.float32],
    lengths: NDArray[np.int32],
    costs: NDArray[np.float64],
    threshold: float,
    seed: int,
    epoch: int,
    number: int,
) -> tuple[NDArray[np.int32], float]:
    """The examples with dual variables whose last visit gained more than the threshold, shuffled.

    Parameters
    ----------
    gains, lengths, costs : array, shape (n_samples,)
        What the last visit gained; how many coefficients an example has; what a visit costs for each.
    threshold : float
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
def shuffle(order: NDArray[np.int32], word: np.uint64) -> None:
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
