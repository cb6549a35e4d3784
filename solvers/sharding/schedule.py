"""The tournament of class blocks in which weights travel: who plays whom, where, and in which round.

S shards hold 2S half-shards of classes. In a round every shard plays the two halves that it hosts: the examples of
either half against the classes of the other. Then all halves but one move a seat, so that a shard sends at most two
and receives as many: the circle method for 1-factorisations (Alber et al. 2017, Algorithm 5, plays whole blocks and
gives a bye where their number is odd). After 2S - 1 rounds each half has met every other once and sits where it sat,
so dual variables never travel.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Seats = tuple[tuple[int, int], ...]
PORTIONS = 10


def rounds(n_shards: int) -> Iterator[Seats]:
    """The seating of each of the 2S - 1 rounds: for every shard the two half-shards that it hosts and plays.

    Raises
    ------
    ValueError
        Fewer than one shard.
    """
    if n_shards < 1:
        raise ValueError(f"{n_shards} shards; at least one is needed")
    circle = list(range(2 * n_shards))
    for _ in range(2 * n_shards - 1):
        yield tuple((circle[seat], circle[-1 - seat]) for seat in range(n_shards))
        circle = [circle[0], circle[-1], *circle[1:-1]]


def pairs(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Rounds of disjoint pairs in which every pair of blocks meets once; where their number is odd, one has a bye."""
    even = n_blocks + n_blocks % 2
    for seats in rounds(max(even // 2, 1)):
        yield [(min(pair), max(pair)) for pair in seats if max(pair) < n_blocks]


def moves(before: Seats, after: Seats) -> list[tuple[int, int, int]]:
    """What travels between two rounds: (half-shard, from shard, to shard)."""
    home = {half: shard for shard, halves in enumerate(before) for half in halves}
    return [(half, home[half], shard) for shard, halves in enumerate(after) for half in halves if home[half] != shard]


def portions(examples: NDArray[np.int32], rng: np.random.Generator, n: int = PORTIONS) -> list[NDArray[np.int32]]:
    """Tenths of an epoch, in random order: the whole tournament is played on each.

    A tournament on whole epochs lets the blocks fight over the features that all of them share.
    """
    return np.array_split(rng.permutation(examples), n)


def interleaved(
    half_of: NDArray[np.int32], y: NDArray[np.int32], examples: NDArray[np.int32], pair: tuple[int, int]
) -> NDArray[np.int32]:
    """The examples of both sides of a match, in the order given: one side after the other converges far slower."""
    sides = half_of[y[examples]]
    both: NDArray[np.int32] = examples[(sides == pair[0]) | (sides == pair[1])]
    return both
