"""The exchange over a real Redis: the same as in one process, and what happens when a peer or Redis is lost."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from solvers.sharding.exchange import ExchangeError, gather, reduce
from workers.exchange import RedisExchange, RedisLostError, break_gang, close_gang, open_gang

NAME = "job:1:a1:x"
Work = Callable[[RedisExchange], Any]


@pytest.fixture
def gang(redis_url):
    """``gang(size, work)`` runs work on every seat of a gang, each in a thread, and returns results or errors."""
    ends: list[RedisExchange] = []

    def run(size: int, work: Work, **options: Any) -> list[Any]:
        open_gang(redis_url, NAME)
        results: list[Any] = [None] * size

        def one(rank: int) -> None:
            try:
                ends.append(RedisExchange(redis_url, NAME, rank, size, **({"timeout": 30.0} | options)))
                results[rank] = work(ends[-1])
            except ExchangeError as error:
                results[rank] = error

        threads = [threading.Thread(target=partial(one, rank)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    yield run
    for end in ends:
        end.close()


def posted_ahead(exchange):
    tickets = []
    for t in range(5):
        mine = np.full((t + 1, exchange.rank), 10 * t + exchange.rank, np.float32)
        tickets.append(exchange.post([mine, np.array([exchange.rank])]))
        mine[:] = -1
    found = [exchange.collect(ticket) for ticket in tickets]
    for t, parts in enumerate(found):
        for rank, (matrix, number) in enumerate(parts):
            assert matrix.dtype == np.float32
            assert matrix.shape == (t + 1, rank)
            assert (matrix == 10 * t + rank).all()
            assert number.tolist() == [rank]
    exchange.barrier()
    return exchange.rounds


@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_get_what_all_have_posted_by_rank_round_by_round(gang, redis_server, size):
    assert gang(size, posted_ahead) == [6] * size
    with redis_server.client() as client:
        assert sorted(client.keys()) <= [b"job:1:a1:x:gang", b"job:1:a1:x:rounds"]
        assert client.xlen("job:1:a1:x:rounds") <= 6


def test_sums_are_added_in_the_order_of_ranks(gang):
    numbers = [1.0, 1e100, -1e100]
    totals = gang(3, lambda exchange: reduce(exchange, np.array([numbers[exchange.rank]])))
    assert [total.tolist() for total in totals] == [[(1.0 + 1e100) - 1e100]] * 3


def test_long_messages_travel_in_chunks_and_leave_nothing(gang, redis_server):
    def work(exchange):
        mine = np.arange(exchange.rank * 1000)
        for _ in range(3):
            for rank, (part,) in enumerate(gather(exchange, [mine])):
                np.testing.assert_array_equal(part, np.arange(rank * 1000))
        return exchange.bytes

    sent = gang(3, work, chunk_bytes=1500)
    assert [round(count / 24000, 1) for count in sent] == [0.0, 1.0, 2.0]
    with redis_server.client() as client:
        assert client.hlen(f"{NAME}:parts") == 0
        for key in client.scan_iter():
            assert 0 < client.ttl(key) <= 3600
    close_gang(f"unix://{redis_server.socket}", NAME)
    with redis_server.client() as client:
        assert client.keys() == []


def test_rounds_that_all_have_read_are_removed(gang, redis_server):
    def work(exchange):
        for _ in range(50):
            exchange.barrier()

    gang(2, work)
    with redis_server.client() as client:
        assert client.xlen(f"{NAME}:rounds") <= 2


def test_a_silent_peer_is_given_up_after_the_timeout(gang):
    started = time.monotonic()
    error, _ = gang(2, lambda exchange: gather(exchange, []) if exchange.rank == 0 else None, timeout=0.4)
    assert "round 0 was not complete after 0.4 s" in str(error)
    assert time.monotonic() - started < 5


def test_whoever_waits_can_be_called_away(gang, redis_url):
    class Called(Exception):
        pass

    def check():
        raise Called

    def work(exchange):
        with pytest.raises(Called):
            exchange.barrier()
        return exchange.waited

    open_gang(redis_url, NAME)
    exchange = RedisExchange(redis_url, NAME, 0, 2, check=check)
    assert 0.1 < work(exchange) < 10
    exchange.close()


def test_a_broken_gang_wakes_all_at_once_with_the_reason_and_takes_nobody_in(gang, redis_url):
    def work(exchange):
        if exchange.rank == 2:
            break_gang(redis_url, NAME, "shard 2 is lost")
            break_gang(redis_url, NAME, "another reason")
        exchange.barrier()

    errors = gang(3, work, timeout=600.0)
    assert [str(error) for error in errors] == ["shard 2 is lost"] * 3
    assert not any(isinstance(error, RedisLostError) for error in errors)


@pytest.mark.parametrize("how", ["flush", "kill", "restart", "close"])
def test_whoever_loses_redis_notices_within_seconds(gang, redis_server, redis_url, how):
    def work(exchange):
        exchange.barrier()
        if exchange.rank == 0:
            return exchange.barrier()
        time.sleep(0.3)
        if how == "flush":
            with redis_server.client() as client:
                client.flushall()
        elif how == "close":
            close_gang(redis_url, NAME)
        else:
            redis_server.stop()
            if how == "restart":
                redis_server.start()
        return exchange.barrier()

    started = time.monotonic()
    errors = gang(2, work, timeout=600.0)
    assert time.monotonic() - started < 10
    assert [type(error) for error in errors] == [RedisLostError] * 2
    if how != "kill":
        with redis_server.client() as client:
            assert client.keys() == []


def test_nothing_is_written_where_no_gang_is_open(redis_server, redis_url):
    exchange = RedisExchange(redis_url, NAME, 0, 1, chunk_bytes=100)
    with pytest.raises(RedisLostError):
        gather(exchange, [np.zeros(100)])
    exchange.close()
    with redis_server.client() as client:
        assert client.keys() == []


def test_without_redis_there_is_no_exchange(redis_server, redis_url):
    redis_server.stop()
    with pytest.raises(RedisLostError):
        open_gang(redis_url, NAME)
    with pytest.raises(RedisLostError):
        RedisExchange(redis_url, NAME, 0, 1)
