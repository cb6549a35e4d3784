"""The exchange over connections between all pairs: as over Redis, and what happens when a shard or Redis is lost."""

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zmq
from exchanging import NAME, Gang, check_order_of_sums, check_swapped, gangs, swapped

from app.errors import Conflict
from solvers.sharding.exchange import ExchangeError, gather
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang_keys import RedisLostError, break_gang, close_gang, open_gang
from workers.sharding.pair_exchange import PairExchange


@pytest.fixture
def gang(redis_url: str) -> Iterator[Gang]:
    with gangs(redis_url, PairExchange, address="127.0.0.1") as run:
        yield run


def barriers(exchange: PairExchange) -> None:
    """Some rounds more than it may take to notice that a gang is over."""
    for _ in range(100):
        exchange.barrier()
        time.sleep(0.02)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_get_what_all_have_posted_by_rank_round_by_round(gang: Gang, size: int, address: str) -> None:
    def work(exchange: PairExchange) -> int:
        tickets = []
        for t in range(5):
            mine = np.full((t + 1, 100 * exchange.rank), 10 * t + exchange.rank, np.float32)
            tickets.append(exchange.post([mine, np.array([exchange.rank])]))
            mine[:] = -1
        for t, parts in enumerate([exchange.collect(ticket) for ticket in tickets]):
            for rank, (matrix, number) in enumerate(parts):
                assert matrix.shape == (t + 1, 100 * rank)
                assert (matrix == 10 * t + rank).all()
                assert number.tolist() == [rank]
        exchange.barrier()
        return exchange.rounds

    assert gang(size, work, address=address) == [6] * size


def test_sums_are_added_in_the_order_of_ranks(gang: Gang) -> None:
    check_order_of_sums(gang)


def test_long_messages_come_whole_and_nothing_of_them_is_in_redis(gang: Gang, redis_server: Any) -> None:
    def work(exchange: PairExchange) -> int:
        for _ in range(3):
            for rank, (part,) in enumerate(gather(exchange, [np.arange(exchange.rank * 500_000)])):
                np.testing.assert_array_equal(part, np.arange(rank * 500_000))
        return exchange.bytes

    sent = gang(3, work)
    assert [round(count / 12e6, 3) for count in sent] == [0.0, 1.0, 2.0]
    with redis_server.client() as client:
        assert client.keys() == [f"{NAME}:gang".encode()]
        assert client.info("stats")["total_net_input_bytes"] < 1e6


def test_swapped_messages_reach_their_addressees_alone(gang: Gang) -> None:
    check_swapped(gang(3, swapped))


def test_a_silent_peer_is_given_up_after_the_timeout(gang: Gang) -> None:
    def work(exchange: PairExchange) -> None:
        if exchange.rank == 0:
            exchange.barrier()
        else:
            time.sleep(0.8)

    error, _ = gang(2, work, timeout=0.4)
    assert "round 0 was not complete after 0.4 s" in str(error)


def test_a_shard_that_does_not_come_is_given_up_after_the_timeout(redis_url: str) -> None:
    open_gang(redis_url, NAME)
    with pytest.raises(ExchangeError, match="not all shards had connected after"):
        PairExchange(redis_url, NAME, 0, 2, address="127.0.0.1", timeout=0.2)


def test_a_lost_connection_ends_the_exchange_at_once(gang: Gang) -> None:
    def work(exchange: PairExchange) -> None:
        exchange.barrier()
        if exchange.rank == 1:
            exchange._close_sockets(0)  # as if its machine were gone
        else:
            exchange.barrier()

    started = time.monotonic()
    errors = gang(3, work, timeout=600.0)
    assert time.monotonic() - started < 60
    assert [str(errors[rank]) for rank in (0, 2)] == ["the connection to shard 1 was lost"] * 2


def test_who_has_got_all_does_not_mind_that_another_leaves(gang: Gang) -> None:
    def work(exchange: PairExchange) -> list[list[int]]:
        ticket = exchange.post([np.array([exchange.rank])])
        if exchange.rank == 0:
            exchange.collect(ticket)
            exchange.close()
            return []
        time.sleep(0.5)  # the first has left by now
        found = [part[0].tolist() for part in exchange.collect(ticket)]
        with pytest.raises(ExchangeError, match="the connection to shard 0 was lost"):
            exchange.barrier()
        return found

    assert gang(3, work)[1:] == [[[0], [1], [2]]] * 2


def test_a_broken_gang_wakes_all_with_the_reason(gang: Gang, redis_url: str) -> None:
    def work(exchange: PairExchange) -> None:
        if exchange.rank == 2:
            break_gang(redis_url, NAME, "shard 2 is lost")
            time.sleep(0.5)
        barriers(exchange)

    errors = gang(3, work, timeout=600.0)
    assert [str(error) for error in errors] == ["shard 2 is lost"] * 3
    assert not any(isinstance(error, RedisLostError) for error in errors)


@pytest.mark.parametrize("how", ["flush", "kill", "close"])
def test_whoever_loses_redis_notices_within_seconds(gang: Gang, redis_server: Any, redis_url: str, how: str) -> None:
    def work(exchange: PairExchange) -> None:
        exchange.barrier()
        if exchange.rank == 0:
            return barriers(exchange)
        if how == "flush":
            with redis_server.client() as client:
                client.flushall()
        elif how == "close":
            close_gang(redis_url, NAME)
        else:
            redis_server.stop()
        return barriers(exchange)

    errors = gang(2, work, timeout=600.0)
    assert RedisLostError in [type(error) for error in errors]
    assert all(isinstance(error, ExchangeError) for error in errors)


def test_whoever_waits_can_be_called_away(redis_url: str) -> None:
    def check() -> None:
        raise LookupError("called away")

    open_gang(redis_url, NAME)
    with pytest.raises(LookupError):
        PairExchange(redis_url, NAME, 0, 2, address="127.0.0.1", check=check)


def test_a_shard_that_exchanges_over_redis_is_named(gang: Gang, redis_url: str) -> None:
    def work(_exchange: PairExchange) -> None:
        pass

    open_gang(redis_url, NAME)
    other = RedisExchange(redis_url, NAME, 1, 2)
    with pytest.raises(Conflict, match="Shards 1 have no POLYMARGIN_SHARD_ADDRESS"):
        PairExchange(redis_url, NAME, 0, 2, address="127.0.0.1", timeout=30.0)
    other.close()


@pytest.mark.parametrize(("address", "ports"), [("192.0.2.1", (49152, 65535)), ("no.such.name.invalid", (1, 1))])
def test_an_address_that_is_not_this_machines_is_told(redis_url: str, address: str, ports: tuple[int, int]) -> None:
    open_gang(redis_url, NAME)
    with pytest.raises(Conflict, match="cannot listen on POLYMARGIN_SHARD_ADDRESS"):
        PairExchange(redis_url, NAME, 0, 2, address=address, ports=ports)


def test_only_who_has_the_key_from_redis_gets_anything(gang: Gang, redis_server: Any) -> None:
    heard = []

    def work(exchange: PairExchange) -> None:
        if exchange.rank == 0:
            with redis_server.client() as client:
                where = json.loads(client.hget(f"{NAME}:gang", "at1"))
            with zmq.Context() as context:
                strangers = []
                for key in (None, zmq.curve_keypair()[0]):
                    stranger = context.socket(zmq.SUB)
                    stranger.setsockopt(zmq.SUBSCRIBE, b"")
                    stranger.setsockopt(zmq.LINGER, 0)
                    if key is not None:
                        stranger.curve_publickey, stranger.curve_secretkey = zmq.curve_keypair()
                        stranger.curve_serverkey = key
                    stranger.connect(where["at"])
                    strangers.append(stranger)
                for _ in range(20):
                    exchange.barrier()
                    time.sleep(0.02)
                for stranger in strangers:
                    heard.append(stranger.poll(100))
                    stranger.close(0)
        else:
            for _ in range(20):
                exchange.barrier()

    assert gang(2, work) == [None, None]
    assert heard == [0, 0]
