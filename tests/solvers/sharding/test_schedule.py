"""The tournament: every pair once, nobody twice in a round, and back at the first hosts at the end."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.sharding.schedule import interleaved, portions, rounds, transfers

shards = st.integers(1, 40)


@settings(deadline=None, derandomize=True)
@given(shards)
def test_every_pair_of_half_shards_meets_once(n):
    met = sorted((min(pair), max(pair)) for hosts in rounds(n) for pair in hosts)
    assert met == list(combinations(range(2 * n), 2))


@settings(deadline=None, derandomize=True)
@given(shards)
def test_every_shard_is_busy_in_every_round(n):
    for hosts in rounds(n):
        assert sorted(half for halves in hosts for half in halves) == list(range(2 * n))


@settings(deadline=None, derandomize=True)
@given(shards)
def test_each_shard_sends_and_receives_at_most_one_half_a_side_and_all_return_to_their_hosts(n):
    hostings = list(rounds(n))
    place = {half: shard for shard, halves in enumerate(hostings[0]) for half in halves}
    for before, after in zip(hostings, [*hostings[1:], hostings[0]], strict=True):
        travel = transfers(before, after)
        for shard in range(n):
            sent, received = (sum(transfer[end] == shard for transfer in travel) for end in (1, 2))
            assert sent == received <= 2
        for half, origin, target in travel:
            assert place[half] == origin
            place[half] = target
    assert place == {half: shard for shard, halves in enumerate(hostings[0]) for half in halves}


def test_no_shards_are_refused():
    with pytest.raises(ValueError, match="0 shards"):
        next(rounds(0))


def test_portions_hold_every_example_once():
    parts = portions(np.arange(103, dtype=np.int32), np.random.default_rng(0))
    assert len(parts) == 10
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))


def test_a_pair_mixes_the_examples_of_both_sides_and_takes_no_other():
    y = np.array([0, 1, 2, 3, 0, 3, 1], np.int32)
    half_of = np.array([0, 1, 2, 0], np.int32)
    order = np.array([6, 5, 4, 3, 2, 1, 0], np.int32)
    assert interleaved(half_of, y, order, (0, 2)).tolist() == [5, 4, 3, 2, 0]
    assert interleaved(half_of, y, order, (1, 1)).tolist() == [6, 1]
