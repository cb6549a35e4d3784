"""The in-process exchange: order of ranks, and what happens when a peer is lost."""

import threading

import numpy as np
import pytest
from gangs import run_shards

from solvers.sharding.exchange import ExchangeError, Hub, gather, reduce


def test_gather_returns_the_arrays_of_all_by_rank_and_copies_them():
    def work(exchange):
        mine = np.full(exchange.rank + 1, exchange.rank)
        ticket = exchange.post([mine, np.array([0.5])])
        mine[:] = -1
        return [part[0].tolist() for part in exchange.collect(ticket)]

    assert run_shards(3, work) == [[[0], [1, 1], [2, 2, 2]]] * 3


def test_rounds_posted_ahead_are_collected_each_for_itself():
    def work(exchange):
        tickets = [exchange.post([np.array([10 * t + exchange.rank])]) for t in range(5)]
        exchange.barrier()
        return [[int(part[0][0]) for part in exchange.collect(ticket)] for ticket in tickets]

    assert run_shards(2, work) == [[[10 * t, 10 * t + 1] for t in range(5)]] * 2


def test_reduce_adds_in_the_order_of_ranks():
    numbers = [1.0, 1e100, -1e100]
    totals = run_shards(3, lambda exchange: reduce(exchange, np.array([numbers[exchange.rank]])))
    assert [total.tolist() for total in totals] == [[(1.0 + 1e100) - 1e100]] * 3


def test_a_peer_that_stays_silent_is_named_within_the_timeout_and_no_thread_stays():
    before = set(threading.enumerate())

    def work(exchange):
        if exchange.rank != 1:
            gather(exchange, [np.zeros(1)])

    with pytest.raises(ExchangeError, match=r"shards \[1\] sent nothing for 0.2 s in round 0"):
        run_shards(3, work, timeout=0.2)
    assert set(threading.enumerate()) == before


def test_a_peer_that_fails_wakes_the_others_at_once_and_its_own_error_is_raised():
    def work(exchange):
        if exchange.rank == 1:
            raise ZeroDivisionError
        exchange.barrier()

    with pytest.raises(ZeroDivisionError):
        run_shards(3, work, timeout=600.0)


def test_a_broken_hub_refuses_whoever_comes_later():
    hub = Hub(2, timeout=600.0)
    hub.abort("shard 1 is lost")
    with pytest.raises(ExchangeError, match="shard 1 is lost"):
        gather(hub.exchange(0), [])
