"""The exchange over a real Redis: the same as in one process, and what happens when a peer or Redis is lost."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from exchanging import NAME, check_order_of_sums, check_swapped, gangs, swapped

from solvers.sharding.exchange import gather
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang_keys import (
    RedisLostError,
    await_gang,
    break_gang,
    close_gang,
    open_gang,
    report_compiling,
    was_compiling,
)


@pytest.fixture
def gang(redis_url):
    with gangs(redis_url, RedisExchange) as run:
        yield run


def barriers(exchange):
    """Some rounds more than it may take to notice that a gang is over."""
    for _ in range(10):
        exchange.barrier()


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
    check_order_of_sums(gang)


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


def test_a_redis_that_stands_still_is_blamed_and_no_peer(gang, redis_server):
    def work(exchange):
        if exchange.rank == 0:
            with redis_server.frozen():
                exchange.barrier()

    error, _ = gang(2, work, timeout=0.6)
    assert isinstance(error, RedisLostError)
    assert "has not answered for 0.6 s" in str(error)


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
        barriers(exchange)

    errors = gang(3, work, timeout=600.0)
    assert [str(error) for error in errors] == ["shard 2 is lost"] * 3
    assert not any(isinstance(error, RedisLostError) for error in errors)


@pytest.mark.parametrize("how", ["flush", "kill", "restart", "close"])
def test_whoever_loses_redis_notices_within_seconds(gang, redis_server, redis_url, how):
    def work(exchange):
        exchange.barrier()
        if exchange.rank == 0:
            return barriers(exchange)
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
        return barriers(exchange)

    started = time.monotonic()
    errors = gang(2, work, timeout=600.0)
    assert time.monotonic() - started < 10
    assert [type(error) for error in errors] == [RedisLostError] * 2
    if how != "kill":
        with redis_server.client() as client:
            assert client.keys() == []


def test_nothing_is_written_where_no_gang_is_open(redis_server, redis_url):
    with pytest.raises(RedisLostError):
        RedisExchange(redis_url, NAME, 0, 2)
    open_gang(redis_url, NAME)
    exchanges = [RedisExchange(redis_url, NAME, rank, 2, chunk_bytes=100) for rank in range(2)]
    close_gang(redis_url, NAME)
    for exchange in exchanges:
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


@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_swapped_messages_reach_their_addressees_alone_and_are_gone_then(gang, redis_server, chunk):
    check_swapped(gang(3, swapped, chunk_bytes=chunk))
    with redis_server.client() as client:
        assert not [field for field in client.hkeys(f"{NAME}:parts") if b">" in field]


class Late(RedisExchange):
    """The last shard comes late."""

    def __init__(self, url: str, name: str, rank: int, size: int, **options: Any) -> None:
        if rank == size - 1:
            time.sleep(0.5)
        super().__init__(url, name, rank, size, **options)


def test_what_is_posted_before_the_last_shard_has_come_reaches_it(gang):
    def work(exchange):
        return [part.tolist() for (part,) in gather(exchange, [np.array([exchange.rank])])]

    assert gang(3, work, end=Late) == [[[0], [1], [2]]] * 3


def test_what_is_posted_last_arrives_though_its_sender_leaves_at_once(gang, redis_url):
    # longer than what Redis reads of a connection at a time, and not in chunks
    mine = np.arange(12_000, dtype=np.int32)

    def work(exchange):
        if exchange.rank == 1:
            while 0 not in exchange._rounds[0]:
                assert exchange._receive(30.0)
        parts = gather(exchange, [mine])
        exchange.close()
        return [part.tolist() for (part,) in parts]

    for _ in range(10):
        close_gang(redis_url, NAME)
        assert gang(2, work) == [[mine.tolist()] * 2] * 2


def test_gangs_of_one_name_in_two_databases_do_not_hear_each_other(redis_url):
    urls = [f"{redis_url}?db={number}" for number in range(2)]
    for url in urls:
        open_gang(url, NAME)
    ends = [[RedisExchange(url, NAME, rank, 2, timeout=30.0) for rank in range(2)] for url in urls]

    def answer(number: int, rank: int) -> list[Any]:
        end = ends[number][rank]
        found = [part[0].tolist() for part in end.collect(end.post([np.array([number, rank])]))]
        end.close()
        return found

    # at once: what is posted before word has come that all are there leaves when its sender collects
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(answer, number, rank) for number in range(2) for rank in range(2)]
        found = [answer.result() for answer in answers]
    assert found == [[[number, 0], [number, 1]] for number in range(2) for _ in range(2)]


def test_a_shard_that_comes_before_the_gang_waits_for_it(redis_url):
    opening = threading.Timer(0.2, open_gang, (redis_url, NAME))
    opening.start()
    await_gang(redis_url, NAME, 600.0, lambda: None)
    opening.join()
    RedisExchange(redis_url, NAME, 0, 1).close()


def test_waiting_for_a_gang_ends_with_the_lease_and_with_patience(redis_url):
    def fenced():
        raise LookupError("the lease is another's")

    with pytest.raises(LookupError):
        await_gang(redis_url, NAME, 600.0, fenced)
    with pytest.raises(RedisLostError):
        await_gang(redis_url, NAME, 0.05, lambda: None)


def test_a_shard_that_compiles_tells_the_coordinator_once(redis_url: str) -> None:
    report_compiling(redis_url, "gang")
    assert not was_compiling(redis_url, "gang")
    open_gang(redis_url, "gang")
    report_compiling(redis_url, "gang")
    assert was_compiling(redis_url, "gang")
    assert not was_compiling(redis_url, "gang")
    close_gang(redis_url, "gang")
