import os
import threading

import pytest

from workers.running.cpu_affinity import current, separated

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="takes two processors"
)


def test_shards_of_one_machine_share_out_its_processors_and_give_them_back() -> None:
    allowed, here, used = os.sched_getaffinity(0), current(), []
    for rank in (0, 2):
        with separated([here, f"elsewhere {here}", here], rank):
            used.append(os.sched_getaffinity(0))
        assert os.sched_getaffinity(0) == allowed
    assert used[0] | used[1] == allowed
    assert not used[0] & used[1]


def test_threads_of_a_shard_stay_with_it() -> None:
    inherited = []
    with separated([current(), current()], 1):
        thread = threading.Thread(target=lambda: inherited.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        assert inherited == [os.sched_getaffinity(0)]


def test_a_shard_alone_and_more_shards_than_processors_use_all() -> None:
    allowed, here = os.sched_getaffinity(0), current()
    for affinities in ([here, "another machine 0 1"], [here] * (len(allowed) + 1), [""] * 2):
        with separated(affinities, 0):
            assert os.sched_getaffinity(0) == allowed


def test_processors_are_given_back_after_an_error() -> None:
    allowed = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError, match="lost"), separated([current(), current()], 0):
        raise RuntimeError("a peer is lost")
    assert os.sched_getaffinity(0) == allowed
