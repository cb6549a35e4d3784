"""What does a round of an exchange among many shards cost, over one Redis and over connections between all pairs?

All ends of a gang live in one process and take turns: each posts a message, then each collects those of all others. So
nothing waits, and the processor time of Redis, and that of an end, is what a round takes of them wherever the ends are.
Over Redis these are the ends that jobs use; between pairs they are pyzmq's XPUB and SUB sockets over TCP, with the same
frames. The seconds of a round are reckoned from that: each end on a machine of its own, LINK bytes a second to and from
each machine, HOP seconds for a message from one machine to another. Redis does its part one after the other, and each
message takes two hops.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import redis
import zmq

from app.operation.embedded import redis_server
from benchmarks.results import write
from solvers.sharding.exchange import Arrays
from workers.sharding import frames
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang_keys import close_gang, open_gang

SIZES, MESSAGES = (2, 4, 8, 16, 32, 64), (100, 2_000, 50_000)
LINK, HOP = 1.25e9, 2.5e-4
DELIVERIES, REPEATS = 8_000, 3


class Cost(NamedTuple):
    """Seconds of a processor for one round: of Redis, and of one end."""

    redis: float
    end: float


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis.sock"
        command = [redis_server(), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            with redis.Redis(unix_socket_path=str(socket)) as client:
                while not _answers(client):
                    time.sleep(0.02)
                for size in SIZES:
                    for message in MESSAGES:
                        rows.append(_row(size, message, client, f"unix://{socket}"))
                        print(rows[-1], flush=True)
        finally:
            server.terminate()
            server.wait()
    header = [
        "shards", "bytes a message", "Redis: its CPU ms", "Redis: an end's CPU ms", "Redis: round ms",
        "pairs: an end's CPU ms", "pairs: round ms", "times as long over Redis",
    ]  # fmt: skip
    note = (
        f"Medians of {REPEATS} runs; processor time of Redis and of one end for a round, and the round reckoned from "
        f"it for ends on machines of their own: {LINK:.3g} bytes a second to and from each, {1e3 * HOP} ms a hop."
    )
    write("Class shards: a round over one Redis, and over connections between all pairs", header, rows, note)


def _row(size: int, message: int, client: redis.Redis, url: str) -> list[object]:
    n_rounds = max(5, DELIVERIES // (size * (size - 1)))
    arrays: Arrays = [np.zeros(message, np.uint8)]
    over_redis = _median([_over_redis(size, arrays, n_rounds, client, url) for _ in range(REPEATS)])
    pairs = _median([_over_pairs(size, arrays, n_rounds) for _ in range(REPEATS)])
    sent = len(frames.pack(arrays)) * (size - 1)
    # what leaves Redis goes over its own link, and what an end sends to its peers over that of the end
    by_redis = 2 * HOP + over_redis.redis + size * sent / LINK + over_redis.end
    by_pairs = HOP + sent / LINK + pairs.end
    costs = [over_redis.redis, over_redis.end, by_redis, pairs.end, by_pairs]
    return [size, message, *(f"{1e3 * cost:.3g}" for cost in costs), f"{by_redis / by_pairs:.2f}"]


def _over_redis(size: int, arrays: Arrays, n_rounds: int, client: redis.Redis, url: str) -> Cost:
    open_gang(url, "rounds")
    ends = [RedisExchange(url, "rounds", rank, size) for rank in range(size)]
    try:
        with ThreadPoolExecutor(size) as pool:  # what is posted before all have joined is held back by its end
            list(pool.map(RedisExchange.barrier, ends))

        def turn() -> None:
            tickets = [end.post(arrays) for end in ends]
            for end, ticket in zip(ends, tickets, strict=True):
                end.collect(ticket)

        return _cost(turn, n_rounds, size, lambda: _spent(client))
    finally:
        for end in ends:
            end.close()
        close_gang(url, "rounds")


def _over_pairs(size: int, arrays: Arrays, n_rounds: int) -> Cost:
    with zmq.Context() as context:
        outgoing = [context.socket(zmq.XPUB) for _ in range(size)]
        for socket in outgoing:
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # each subscription is reported, also a repeated one
        addresses = [f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}" for socket in outgoing]
        incoming = []
        for rank in range(size):
            socket = context.socket(zmq.SUB)
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            for other, address in enumerate(addresses):
                if other != rank:
                    socket.connect(address)
            incoming.append(socket)
        for socket in (*outgoing, *incoming):
            socket.setsockopt(zmq.LINGER, 0)
        for socket in outgoing:
            for _ in range(size - 1):
                socket.recv()  # that one more has subscribed: only then are messages sent to it

        def turn() -> None:
            for socket in outgoing:
                socket.send(frames.pack(arrays))
            for socket in incoming:
                for _ in range(size - 1):
                    frames.unpack(socket.recv())

        found = _cost(turn, n_rounds, size, lambda: 0.0)
        for socket in (*outgoing, *incoming):
            socket.close()
        return found


def _cost(turn: Callable[[], None], n_rounds: int, size: int, spent: Callable[[], float]) -> Cost:
    turn()
    elsewhere, here = spent(), time.process_time()
    for _ in range(n_rounds):
        turn()
    return Cost((spent() - elsewhere) / n_rounds, (time.process_time() - here) / (n_rounds * size))


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def _spent(client: redis.Redis) -> float:
    """Seconds of a processor that Redis has taken since its start."""
    found = client.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


if __name__ == "__main__":
    main()
