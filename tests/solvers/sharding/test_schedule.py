"""The tournament: every pair once, nobody twice in a round, and back in the first seats at the end."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.sharding.schedule import interleaved, moves, pairs, portions, rounds

shards = st.integers(1, 40)


@settings(deadline=None, derandomize=True)
@given(st.integers(2, 60))
def test_every_pair_of_blocks_meets_once_and_no_block_plays_twice_in_a_round(n):
    met = []
    for matches in pairs(n):
        players = [block for match in matches for block in match]
        assert len(players) == len(set(players)) == n - n % 2
        met += matches
    assert sorted(met) == list(combinations(range(n), 2))


@settings(deadline=None, derandomize=True)
@given(shards)
def test_every_shard_is_busy_in_every_round(n):
    for seats in rounds(n):
        assert sorted(half for halves in seats for half in halves) == list(range(2 * n))


@settings(deadline=None, derandomize=True)
@given(shards)
def test_each_shard_sends_and_receives_at_most_one_half_a_side_and_all_return_to_their_seats(n):
    seatings = list(rounds(n))
    place = {half: shard for shard, halves in enumerate(seatings[0]) for half in halves}
    for before, after in zip(seatings, [*seatings[1:], seatings[0]], strict=True):
        travel = moves(before, after)
        for shard in range(n):
            sent, received = (sum(m[way] == shard for m in travel) for way in (1, 2))
            assert sent == received <= 2
        for half, origin, target in travel:
            assert place[half] == origin
            place[half] = target
    assert place == {half: shard for shard, halves in enumerate(seatings[0]) for half in halves}


def test_no_shards_are_refused():
    with pytest.raises(ValueError, match="0 shards"):
        next(rounds(0))


def test_portions_hold_every_example_once():
    parts = portions(np.arange(103, dtype=np.int32), np.random.default_rng(0))
    assert len(parts) == 10
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))


def test_a_match_mixes_the_examples_of_both_sides_and_takes_no_other():
    y = np.array([0, 1, 2, 3, 0, 3, 1], np.int32)
    half_of = np.array([0, 1, 2, 0], np.int32)
    order = np.array([6, 5, 4, 3, 2, 1, 0], np.int32)
    assert interleaved(half_of, y, order, (0, 2)).tolist() == [5, 4, 3, 2, 0]
    assert interleaved(half_of, y, order, (1, 1)).tolist() == [6, 1]
