"""The tournament of class blocks in which weights travel: which blocks meet where, and in which round.

S shards hold 2S half-shards of classes. In a round every shard visits the two halves that it hosts: the examples of
either half on the classes of the other. Then all halves but one move on by one place, so that a shard sends at most two
and receives as many: the circle method for 1-factorisations (Alber et al. 2017, Algorithm 5, pairs whole blocks and
leaves one out where their number is odd). After 2S - 1 rounds each half has met every other once and is where it was,
so dual variables never travel.
"""

from collections.abc import Iterator

import numpy as np

from solvers.numerics.array_types import Ints32

# of a round, for every shard the two half-shards that it hosts
Hosts = tuple[tuple[int, int], ...]
PORTIONS = 10


def rounds(n_shards: int) -> Iterator[Hosts]:
    """The hosts of each of the 2S - 1 rounds.

    Raises
    ------
    ValueError
        Fewer than one shard.
    """
    if n_shards < 1:
        raise ValueError(f"{n_shards} shards; at least one is needed")
    circle = list(range(2 * n_shards))
    for _ in range(2 * n_shards - 1):
        yield tuple((circle[place], circle[-1 - place]) for place in range(n_shards))
        circle = [circle[0], circle[-1], *circle[1:-1]]


def transfers(before: Hosts, after: Hosts) -> list[tuple[int, int, int]]:
    """What travels between two rounds: (half-shard, from shard, to shard)."""
    home = {half: shard for shard, halves in enumerate(before) for half in halves}
    return [(half, home[half], shard) for shard, halves in enumerate(after) for half in halves if home[half] != shard]


def portions(examples: Ints32, rng: np.random.Generator, n: int = PORTIONS) -> list[Ints32]:
    """Tenths of an epoch, in random order: the whole tournament is held on each.

    A tournament on whole epochs converges later: pair after pair would change the features that all of them share.
    """
    return np.array_split(rng.permutation(examples), n)


def interleaved(half_of: Ints32, y: Ints32, examples: Ints32, pair: tuple[int, int]) -> Ints32:
    """The examples of both sides of a pair, in the order given: one side after the other converges far slower."""
    sides = half_of[y[examples]]
    both: Ints32 = examples[(sides == pair[0]) | (sides == pair[1])]
    return both
