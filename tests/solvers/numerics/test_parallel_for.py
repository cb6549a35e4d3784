"""Loops of compiled code that threads share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from numba import njit

from solvers.numerics import parallel_for as shared_loops
from solvers.numerics.parallel_for import MOST_PIECES, parallel_for
from solvers.numerics.thread_pool import ThreadPool

# of a helper that never gives up
FOREVER = 1 << 40


@njit
def _count(piece, times, spent):
    total = 0.0
    for i in range(spent[piece % len(spent)]):
        total += np.sqrt(i)
    times[piece] += 1 if total >= 0 else 2


@njit(nogil=True)
def _phases(work_queue, sizes, spent):
    """How often a piece has not been done exactly once."""
    wrong = 0
    for n in sizes:
        times = np.zeros(n, np.int64)
        parallel_for(work_queue, _count, n, (times, spent))
        wrong += np.count_nonzero(times != 1)
    return wrong


@njit
def _fail(piece, times):
    if piece == 3:
        raise ValueError("the third")
    times[piece] += 1


@njit(nogil=True)
def _failing(work_queue, times):
    parallel_for(work_queue, _fail, len(times), (times,))


@contextmanager
def helped(size: int) -> Iterator[tuple[np.ndarray, list[int]]]:
    """A work queue that helpers serve, and what each of them has done in the end."""
    work_queue, done = np.zeros(shared_loops.QUEUE_LENGTH, np.int64), []
    helpers = [
        threading.Thread(target=lambda: done.append(shared_loops.serve(work_queue, FOREVER))) for _ in range(size)
    ]
    for helper in helpers:
        helper.start()
    while work_queue[shared_loops.SERVING] < size:
        pass
    try:
        yield work_queue, done
    finally:
        work_queue[shared_loops.LEAVE] = 1
        for helper in helpers:
            helper.join()


@pytest.mark.parametrize("size", [0, 1, 3])
def test_every_piece_of_every_phase_is_done_once(size):
    rng = np.random.default_rng(0)
    sizes, spent = rng.integers(0, 40, 3000), rng.integers(0, 300, 13)
    with helped(size) as (work_queue, done):
        assert _phases(work_queue, sizes, spent) == 0
        assert _phases(work_queue, np.array([MOST_PIECES - 1]), spent) == 0
        # long pieces: there is time to help
        assert _phases(work_queue, np.full(20, 50), np.full(1, 200_000)) == 0
    assert work_queue[shared_loops.SERVING] == 0
    assert len(done) == size
    assert sum(done) > 0 or size == 0


@pytest.mark.parametrize("size", [0, 2])
def test_a_piece_that_fails_is_told_and_the_others_are_done(size):
    with helped(size) as (work_queue, _):
        for _ in range(50):
            times = np.zeros(9, np.int64)
            with pytest.raises(RuntimeError, match="shared loop"):
                _failing(work_queue, times)
            assert times.tolist() == [1, 1, 1, 0, 1, 1, 1, 1, 1]
        assert _phases(work_queue, np.full(5, 7), np.zeros(1, np.int64)) == 0


def test_helpers_without_work_leave_by_themselves():
    work_queue = np.zeros(shared_loops.QUEUE_LENGTH, np.int64)
    assert shared_loops.serve(work_queue, 1000) == 0
    assert work_queue[shared_loops.SERVING] == 0


def test_a_thread_pool_serves_loops_and_calls_by_turns():
    spent = np.full(3, 1000)
    with ThreadPool(3) as thread_pool:
        for _ in range(20):
            assert _phases(thread_pool.work_queue, np.full(50, 9), spent) == 0
            done: list[int] = []
            thread_pool.run(partial(done.append, j) for j in range(10))
            assert sorted(done) == list(range(10))
        work_queue = thread_pool.work_queue
    assert work_queue[shared_loops.SERVING] == 0
    assert work_queue[shared_loops.LEAVE] == 0
