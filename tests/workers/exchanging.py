"""Exchanges between shards, each end in a thread of the test's process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from app.errors import Conflict
from solvers.sharding.exchange import ExchangeError
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
