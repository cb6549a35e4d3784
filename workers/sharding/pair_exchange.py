"""The exchange of a gang over connections between all pairs of its shards.

Redis has where each shard is reached and the key that others need for it, says when all are there, and that the gang
is broken or gone; what shards post never goes there. Each sends by one socket to which all others have subscribed, over
TCP, encrypted; only those who can read the gang's keys in Redis can read it. A connection that is lost is not made
again, and ends the attempt, so that no message can be missed unnoticed.
"""

import contextlib
import json
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from app.errors import Conflict
from solvers.sharding.exchange import Arrays, ExchangeError
from workers.sharding import frames
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang_keys import HEAD, TTL_SECONDS, as_exchange_errors
from workers.sharding.redis_pipeline import ANNOUNCE, KEEP_ALIVE

# what a message begins with: it is for all, or for one
_ALL, _ONE = b"\0\0\0", b"\1%c%c"
_SWAPPED = b"s"
# Redis is asked so often while nothing comes
_POLL_SECONDS, _KEEP_ALIVE_SECONDS = 0.02, 0.25
_HEARTBEAT_MS, _SILENCE_MS, _LINGER_MS = 5_000, 30_000, 5_000
_PORT_TRIES = 1_000


class PairExchange(RedisExchange):
    """One shard's end, which waits until all others are there.

    Parameters
    ----------
    url, name, rank, size, timeout, check, ttl
        As for :class:`workers.sharding.exchange.RedisExchange`.
    address : str
        Of this machine, as the others reach it: a name or an IP address.
    ports : (int, int)
        The first and the last that may be used; one is taken that is free.

    Raises
    ------
    RedisLostError
        Redis is away, or the gang is not open.
    ExchangeError
        The gang is broken, or another shard did not come in time.
    Conflict
        Another shard exchanges over Redis, or the address is not this machine's.
    """

    def __init__(
        self,
        url: str,
        name: str,
        rank: int,
        size: int,
        *,
        address: str,
        ports: tuple[int, int] = (49152, 65535),
        timeout: float = 600.0,
        check: Callable[[], None] | None = None,
        ttl: float = TTL_SECONDS,
    ) -> None:
        self._context = zmq.Context()
        self._outgoing, self._incoming = self._context.socket(zmq.XPUB), self._context.socket(zmq.SUB)
        self._ranks: dict[str, int] = {}
        self._heard, self._awaited = [0] * size, -1
        self._lost, self._suspects = set[int](), set[int]()
        self._swapped: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self._kept_alive = time.monotonic()
        try:
            self._where = self._bind(address, ports)
            self._monitor = self._incoming.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            super().__init__(url, name, rank, size, timeout=timeout, check=check, ttl=ttl)
            self._inline = sys.maxsize
            with as_exchange_errors():
                self._meet()
        except BaseException:
            self._close_sockets(0)
            raise

    def _bind(self, address: str, ports: tuple[int, int]) -> str:
        """Listen; what others need to know for it."""
        for end in (self._incoming, self._outgoing):
            end.setsockopt(zmq.SNDHWM, 0)
            end.setsockopt(zmq.RCVHWM, 0)
            end.setsockopt(zmq.IPV6, 1)
            end.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
            end.setsockopt(zmq.HEARTBEAT_TIMEOUT, _SILENCE_MS)
            public, end.curve_secretkey = zmq.curve_keypair()
            end.curve_publickey = public
        self._outgoing.curve_server = True
        self._outgoing.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._incoming.setsockopt(zmq.RECONNECT_IVL, -1)
        try:
            host = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0]
            interface = f"tcp://[{host}]" if ":" in str(host) else f"tcp://{host}"
            port = self._outgoing.bind_to_random_port(interface, ports[0], ports[1] + 1, _PORT_TRIES)
        except (OSError, zmq.ZMQError) as error:
            raise Conflict(
                f"A shard cannot listen on POLYMARGIN_SHARD_ADDRESS {address!r:.80}, ports {ports[0]} to "
                f"{ports[1]}: {error}"
            ) from error
        return json.dumps({"at": f"{interface}:{port}", "key": public.decode()})

    def _join(self) -> str:
        self._pipeline.send(ANNOUNCE, f"at{self.rank}", self._where)
        self._pipeline.wait_for_answers()
        return super()._join()

    def _meet(self) -> None:
        """Wait for all others, connect to them, and wait until they have."""
        self._until(lambda: self._unsent is None)
        self._pipeline.wait_for_answers()
        found = self._pipeline.ask("HMGET", self._keys[0], *(f"at{rank}" for rank in range(self.size)))
        without = [str(rank) for rank, where in enumerate(found) if where is None]
        if without:
            raise Conflict(
                f"Shards {', '.join(without)} have no POLYMARGIN_SHARD_ADDRESS, but others do: set it for all "
                "shards or for none."
            )
        self._incoming.setsockopt(zmq.SUBSCRIBE, _ONE % divmod(self.rank, 256))
        self._incoming.setsockopt(zmq.SUBSCRIBE, _ALL)
        for rank, where in enumerate(map(json.loads, found)):
            if rank != self.rank:
                self._incoming.curve_serverkey = where["key"].encode()
                self._incoming.connect(where["at"])
                self._ranks[where["at"]] = rank
        subscribed = 0

        def all_have_subscribed() -> bool:
            nonlocal subscribed
            with contextlib.suppress(zmq.Again):
                while True:
                    subscribed += self._outgoing.recv(zmq.NOBLOCK) == b"\1" + _ALL
            return subscribed == self.size - 1

        self._until(all_have_subscribed)

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        while not done():
            if super()._receive(_POLL_SECONDS):
                continue
            if time.monotonic() >= deadline:
                raise ExchangeError(f"not all shards had connected after {self._timeout:g} s")
            self._keep_alive()
            self._pipeline.read_answers()
            if self._check is not None:
                self._check()

    def swap(self, messages: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """As :meth:`RedisExchange.swap`; a message goes to its addressee alone."""
        ticket = self._next
        for to, arrays in messages.items():
            message = HEAD.pack(_SWAPPED, self.rank, ticket) + frames.pack(arrays)
            self.bytes += len(message) - HEAD.size
            if to == self.rank:
                self._swapped[ticket][to] = message
            else:
                self._outgoing.send(_ONE % divmod(to, 256) + message)
        # what a shard sends to one comes there before what it sends to all after it
        self.barrier()
        found = self._swapped.pop(ticket, {})
        try:
            return {rank: frames.unpack(memoryview(found[rank])[HEAD.size :]) for rank in sorted(found)}
        except frames.FrameError as error:
            raise ExchangeError(f"a message of round {ticket} cannot be read: {error}") from error

    def close(self) -> None:
        """Leave, once what was posted has gone to those who are there; the gang's keys stay."""
        super().close()
        self._close_sockets(_LINGER_MS)

    def _close_sockets(self, linger: int) -> None:
        if not self._context.closed:
            self._incoming.disable_monitor()
            self._incoming.close(0)  # of it only subscriptions could be left, for those who have gone
            self._context.destroy(linger)

    def _await(self, ticket: int, started: float) -> None:
        self._awaited = ticket
        super()._await(ticket, started)

    def _receive(self, wait: float) -> bool:
        """Take one message, if one comes within so many seconds, or somewhat less."""
        try:
            message = self._incoming.recv(zmq.NOBLOCK)
        except zmq.Again:
            return self._take_note(wait)
        self._hear(message[len(_ALL) :])
        return True

    def _hear(self, message: bytes) -> None:
        kind, rank, ticket = HEAD.unpack_from(message)
        if kind == _SWAPPED:
            self._swapped[ticket][rank] = message
            return
        if ticket != self._heard[rank]:
            raise ExchangeError(f"messages of shard {rank} were lost")
        self._heard[rank] += 1
        self._rounds[ticket][rank] = message

    def _take_note(self, wait: float) -> bool:
        """Nothing has come: is the gang broken, or a connection lost over which the awaited round was to come?"""
        for rank in self._lost:
            if self._heard[rank] <= self._awaited:
                raise ExchangeError(f"the connection to shard {rank} was lost")
        # what came before the loss may be there to be received since: that is looked at once more first
        self._lost |= self._suspects
        while self._monitor.poll(0):
            event: Any = recv_monitor_message(self._monitor)
            self._suspects.update(rank for at, rank in self._ranks.items() if at.encode() == event["endpoint"])
        if super()._receive(0.0):
            return True
        if wait > 0.0:
            self._incoming.poll(int(1000 * min(wait, _POLL_SECONDS)) or 1)
        return False

    def _publish(self, message: bytes) -> None:
        if self.size > 1:
            self._outgoing.send(_ALL + message)
        self._keep_alive()

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if now >= self._kept_alive + _KEEP_ALIVE_SECONDS:
            self._kept_alive = now
            self._pipeline.send(KEEP_ALIVE, self._ttl)
