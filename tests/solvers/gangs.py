"""Shards of one training as threads of the test's process."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from solvers.sharding.exchange import Exchange, Hub
from solvers.sharding.shardable import shardable


def run_shards(size: int, work: Callable[[Exchange], Any], timeout: float = 600.0) -> list[Any]:
    """Run ``work`` once a shard, each in a thread of its own, and return what they return, by rank.

    The first failure ends all of them: its peers are woken with ExchangeError, and it is raised here after every
    thread has ended.
    """
    hub = Hub(size, timeout)
    results: list[Any] = [None] * size
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(hub.exchange(rank))
        except BaseException as error:
            failures.append(error)
            hub.abort(f"shard {rank} has failed: {type(error).__name__}")

    threads = [threading.Thread(target=run, args=(rank,), name=f"shard-{rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def in_shards(solver, problem, size, states=None, stop=None, keep=lambda step: True):
    """By rank, the steps of each shard that are kept, with copies of their states, up to ``stop`` of them."""

    def work(exchange):
        found = []
        for step in shardable(solver).sharded(problem, exchange, states[exchange.rank] if states else None):
            if keep(step):
                found.append((step, {name: np.array(array) for name, array in step.state.items()}))
            if len(found) == stop:
                break
        return found

    return run_shards(size, work)


def model_of(solver, problem, shards, at=-1):
    """The model of the steps of all shards at a place, by their files."""
    parts = [shardable(solver).part(problem, steps[at][1]) for steps in shards]
    arrays = {name: array for rank, part in enumerate(parts) for name, array in part.files(rank).items()}
    owner = shardable(solver).partition(problem, len(shards))
    return shardable(solver).assembled(problem, owner, arrays, [part.report() for part in parts])
