"""Exchanges between shards, each end in a thread of the test's process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from app.errors import Conflict
from solvers.sharding.exchange import ExchangeError, reduce
from workers.sharding.gang_keys import open_gang

NAME = "job:1:a1:x"
Gang = Callable[..., list[Any]]


@contextmanager
def gangs(redis_url: str, kind: type[Any], **given: Any) -> Iterator[Gang]:
    """``gang(size, work)`` runs work at every end of an exchange; results or errors, by rank.

    ``end`` chooses another kind for one call; other options go to the ends, after ``given``.
    """
    ends: list[Any] = []

    def run(size: int, work: Callable[[Any], Any], end: type[Any] = kind, **options: Any) -> list[Any]:
        open_gang(redis_url, NAME)
        results: list[Any] = [None] * size

        def one(rank: int) -> None:
            try:
                exchange = end(redis_url, NAME, rank, size, **({"timeout": 30.0} | given | options))
                ends.append(exchange)
                results[rank] = work(exchange)
            except (ExchangeError, Conflict) as error:
                results[rank] = error

        threads = [threading.Thread(target=partial(one, rank)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    try:
        yield run
    finally:
        for exchange in ends:
            exchange.close()


def swapped(exchange: Any) -> tuple[Any, Any]:
    """Each shard sends to the next, and rank 0 to itself too; in the second round only rank 1 sends, to rank 2."""
    after = (exchange.rank + 1) % exchange.size
    messages = {after: [np.full((3, 50), exchange.rank, np.float32), np.arange(exchange.rank)]}
    if exchange.rank == 0:
        messages[0] = [np.array([7.0])]
    found = exchange.swap(messages)
    again = exchange.swap({2: [np.ones(1)]} if exchange.rank == 1 else {})
    exchange.barrier()
    return found, again


def check_swapped(results: list[Any]) -> None:
    """What three shards have got by :func:`swapped`."""
    for rank, (found, again) in enumerate(results):
        before = (rank - 1) % 3
        assert set(found) == ({before} if rank else {before, 0})
        matrix, numbers = found[before]
        np.testing.assert_array_equal(matrix, np.full((3, 50), before, np.float32))
        np.testing.assert_array_equal(numbers, np.arange(before))
        assert set(again) == ({1} if rank == 2 else set())
    assert results[0][0][0][0].tolist() == [7.0]


def check_order_of_sums(gang: Gang) -> None:
    """Sums are added in the order of ranks."""
    numbers = [1.0, 1e100, -1e100]
    totals = gang(3, lambda exchange: reduce(exchange, np.array([numbers[exchange.rank]])))
    assert [total.tolist() for total in totals] == [[(1.0 + 1e100) - 1e100]] * 3
