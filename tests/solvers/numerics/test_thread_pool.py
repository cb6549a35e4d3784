"""Threads that share out calls."""

import threading

import pytest

from solvers.numerics.thread_pool import ThreadPool


@pytest.mark.parametrize("size", [1, 3])
def test_a_thread_pool_does_every_piece_once_and_passes_on_what_a_piece_raises(size):
    done = []
    with ThreadPool(size) as thread_pool:
        thread_pool.run([lambda i=i: done.append(i) for i in range(50)])
        assert sorted(done) == list(range(50))
        with pytest.raises(ZeroDivisionError):
            thread_pool.run([lambda: 1 // 0] * 5)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("thread-pool")]
