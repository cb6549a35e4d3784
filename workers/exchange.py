"""The exchange of a gang over Redis: what a shard posts is published to all others, and Redis keeps none of it.

The gang's keys and channels are those of :mod:`workers.gang_keys`. All that is posted before the last shard has come is
held back until then, as Redis hands a message to those alone who listen.

Posting does not wait for an answer: that the gang is still there, a shard learns from the next one's.
"""

import contextlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from solvers.sharding.exchange import Arrays, ExchangeError
from workers import frames
from workers.gang_keys import BROKEN, CONNECT_SECONDS, GONE, HEAD, TTL_SECONDS, RedisLostError, keys, translated

CHUNK_BYTES = 32 << 20
# of all that a round publishes: what Redis keeps for a shard that does not listen is well below its limit of 8 MB
INLINE_BYTES = 2 << 20
_PULSE_SECONDS = 0.25
# a processor that has been put to sleep takes longer to wake than a message to come
_AWAKE_SECONDS = 0.01
_READ_BYTES = 1 << 20
# kinds of messages, beside BROKEN
_WHOLE, _CHUNKS, _HERE = b"w", b"c", b"h"

_CHECK = """
local broken = redis.call('HGET', KEYS[1], 'broken')
if broken then return redis.error_reply('BROKEN ' .. broken) end
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('GONE') end
"""
# KEYS gang parts, ARGV ttl
_PULSE = (
    _CHECK
    + """
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
"""
)
# ARGV size, channel of all, what to say there when the last one has come
_JOIN = (
    _CHECK
    + """
if redis.call('HINCRBY', KEYS[1], 'here', 1) == tonumber(ARGV[1]) then
    redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return 1
"""
)
# ARGV ttl, field, bytes
_STORE = (
    _CHECK
    + """
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
"""
)
# ARGV field, readers; the last of them removes it
_FETCH = (
    _CHECK
    + """
local bytes = redis.call('HGET', KEYS[2], ARGV[1])
if redis.call('HINCRBY', KEYS[2], ARGV[1] .. ':read', 1) == tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[2], ARGV[1], ARGV[1] .. ':read')
end
return bytes
"""
)


class RedisExchange:
    """One shard's end of the exchange within a gang that :func:`open_gang` has opened.

    Parameters
    ----------
    url : str
        Of the Redis.
    name : str
        Of the gang.
    rank, size : int
    timeout : float
        Seconds that a shard waits for its peers in one round before it gives up.
    check : callable, optional
        Called several times a second while this end waits; what it raises leaves :meth:`collect`.
    chunk_bytes : int
        No value in Redis, and no answer of it, is larger than this by more than a few bytes.
    ttl : float
        Seconds after which Redis forgets a gang of which nothing is heard.

    Attributes
    ----------
    rounds, bytes : int
        Rounds collected, and bytes posted by this shard.
    waited : float
        Seconds spent in :meth:`collect`.

    Raises
    ------
    RedisLostError
        Redis is away, or the gang is not open.
    ExchangeError
        The gang is broken.
    """

    def __init__(
        self,
        url: str,
        name: str,
        rank: int,
        size: int,
        *,
        timeout: float = 600.0,
        check: Callable[[], None] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        ttl: float = TTL_SECONDS,
    ) -> None:
        self.rank, self.size, self.name = rank, size, name
        self.rounds, self.bytes, self.waited = 0, 0, 0.0
        self._keys = keys(name)
        self._timeout, self._check, self._ttl, self._chunk = timeout, check, int(1000 * ttl), chunk_bytes
        self._inline = max(1, min(chunk_bytes, INLINE_BYTES) // size)
        self._next, self._unanswered = 0, deque[bool]()
        self._rounds: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._held: list[bytes] | None = []
        with translated():
            self._writer, self._reader = _connect(url, timeout), _connect(url, timeout)
            self._scripts = {}
            for script in (_PULSE, _JOIN, _STORE, _FETCH):
                self._scripts[script] = self._now("SCRIPT", "LOAD", script)
            self._channel = self._join()

    def _join(self) -> str:
        """Listen to the others, then tell that one more is here; the channel of the gang."""
        token = self._now("HGET", self._keys[0], "token")
        if token is None:
            raise RedisLostError(GONE)
        channel = f"{self._keys[0]}:{token.decode()}"
        others = [f"{channel}:{rank}" for rank in range(self.size) if rank != self.rank]
        self._reader.send_command("SUBSCRIBE", channel, *others)
        for _ in range(self.size):
            self._reader.read_response()
        self._run(_JOIN, self.size, channel, HEAD.pack(_HERE, 0, 0))
        while self._unanswered:
            self._answer()
        return channel

    def post(self, arrays: Arrays) -> int:
        """Send contiguous arrays to every shard; they are copied. Returns the ticket of this round."""
        frame = frames.pack(arrays)
        ticket, self._next = self._next, self._next + 1
        self.bytes += len(frame)
        message = own = HEAD.pack(_WHOLE, self.rank, ticket) + frame
        with translated():
            self._drain()
            if len(frame) > self._inline and self.size > 1:
                stops = range(0, len(frame), self._chunk)
                for i, at in enumerate(stops):
                    self._run(_STORE, self._ttl, self._field(ticket, self.rank, i), frame[at : at + self._chunk])
                message = HEAD.pack(_CHUNKS, self.rank, ticket) + str(len(stops)).encode()
            self._rounds[ticket][self.rank] = own
            while self._held is not None and self._hear(0.0):
                pass
            if self._held is None:
                self._publish(message)
            else:
                self._held.append(message)
        return ticket

    def collect(self, ticket: int) -> list[Arrays]:
        """What all shards have posted in that round, by rank; once a round. Raises ExchangeError."""
        started = time.monotonic()
        try:
            with translated():
                self._await(ticket, started)
                messages = self._rounds.pop(ticket)
                parts: list[Arrays] = [
                    frames.unpack(self._whole(ticket, rank, messages[rank])) for rank in range(self.size)
                ]
        except frames.FrameError as error:
            raise ExchangeError(f"a message of round {ticket} cannot be read: {error}") from error
        finally:
            self.waited += time.monotonic() - started
        self.rounds += 1
        return parts

    def swap(self, parcels: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """Send contiguous arrays to some shards, each its own, and take what others have sent; raises ExchangeError.

        A parcel goes by chunks that its addressee alone fetches; that it is there, the round tells all.
        """
        ticket = self._next
        counts: list[tuple[int, int]] = []
        found: dict[int, Arrays] = {}
        with translated():
            for to, arrays in parcels.items():
                frame = frames.pack(arrays)
                self.bytes += len(frame)
                stops = range(0, len(frame), self._chunk)
                for i, at in enumerate(stops):
                    field = self._parcel(ticket, self.rank, to, i)
                    self._run(_STORE, self._ttl, field, frame[at : at + self._chunk])
                counts.append((to, len(stops)))
        told = self.collect(self.post([np.array(counts, np.int64).reshape(-1, 2)]))
        began = time.monotonic()
        try:
            with translated():
                for rank, (goals,) in enumerate(told):
                    for n in goals[goals[:, 0] == self.rank, 1]:
                        fields = [self._parcel(ticket, rank, self.rank, i) for i in range(n)]
                        found[rank] = frames.unpack(self._fetch(ticket, fields, 1))
        except frames.FrameError as error:
            raise ExchangeError(f"a parcel of round {ticket} cannot be read: {error}") from error
        finally:
            self.waited += time.monotonic() - began
        return found

    def barrier(self) -> None:
        """Wait until every shard is here. Raises ExchangeError."""
        self.collect(self.post([]))

    def close(self) -> None:
        """Leave Redis; the gang's keys stay."""
        for connection in (self._writer, self._reader):
            with contextlib.suppress(redis.RedisError, OSError):
                connection.disconnect()

    def _await(self, ticket: int, started: float) -> None:
        pulse, deadline = started + _PULSE_SECONDS, started + self._timeout
        awake = started + _AWAKE_SECONDS
        while len(self._rounds[ticket]) < self.size:
            if time.monotonic() < awake:
                if not self._hear(0.0):
                    os.sched_yield()
                continue
            if self._hear(max(0.0, min(pulse, deadline) - time.monotonic())):
                continue
            self._drain()
            now = time.monotonic()
            if now >= deadline:
                if self._unanswered:
                    raise RedisLostError(f"Redis has not answered for {self._timeout:g} s")
                raise ExchangeError(f"round {ticket} was not complete after {self._timeout:g} s")
            if now >= pulse:
                pulse = now + _PULSE_SECONDS
                if self._check is not None:
                    self._check()
                self._run(_PULSE, self._ttl)

    def _hear(self, wait: float) -> bool:
        """Take one message, if one comes within so many seconds."""
        if not _readable(self._reader, wait):
            return False
        message = self._reader.read_response()[2]
        kind, rank, ticket = HEAD.unpack_from(message)
        if kind == BROKEN:
            raise ExchangeError(message[HEAD.size :].decode(errors="replace"))
        if kind != _HERE:
            self._rounds[ticket][rank] = message
        elif self._held is not None:
            held, self._held = self._held, None
            for late in held:
                self._publish(late)
        return True

    def _whole(self, ticket: int, rank: int, message: bytes) -> bytes | memoryview:
        content = memoryview(message)[HEAD.size :]
        if message[:1] == _WHOLE:
            return content
        return self._fetch(ticket, [self._field(ticket, rank, i) for i in range(int(bytes(content)))], self.size - 1)

    def _fetch(self, ticket: int, fields: list[str], readers: int) -> bytes:
        """The chunks of one message, which the last of its readers removes."""
        chunks = []
        for field in fields:
            while self._unanswered:
                self._answer()
            self._send(_FETCH, field, readers)
            chunk = self._writer.read_response()
            if chunk is None:
                raise RedisLostError(f"Redis has lost a message of round {ticket}")
            chunks.append(chunk)
        return b"".join(chunks)

    @staticmethod
    def _field(ticket: int, rank: int, chunk: int) -> str:
        return f"{ticket}:{rank}:{chunk}"

    @staticmethod
    def _parcel(ticket: int, rank: int, to: int, chunk: int) -> str:
        return f"{ticket}:{rank}>{to}:{chunk}"

    def _publish(self, message: bytes) -> None:
        """Send, and ask whether the gang is there; the answers are read later."""
        if self.size == 1:
            return
        self._writer.send_packed_command(
            [
                _packed(b"PEXPIRE", self._keys[0], self._ttl)
                + _packed(b"PUBLISH", f"{self._channel}:{self.rank}", message)
            ]
        )
        self._unanswered += (True, False)

    def _run(self, script: str, *arguments: Any) -> None:
        """Send; the answer is read later."""
        self._send(script, *arguments)
        self._unanswered.append(True)

    def _send(self, script: str, *arguments: Any) -> None:
        self._writer.send_command("EVALSHA", self._scripts[script], 2, *self._keys, *arguments)

    def _now(self, *command: Any) -> Any:
        self._writer.send_command(*command)
        return self._writer.read_response()

    def _drain(self) -> None:
        while self._unanswered and _readable(self._writer, 0.0):
            self._answer()

    def _answer(self) -> None:
        asks = self._unanswered.popleft()
        if self._writer.read_response() == 0 and asks:
            raise RedisLostError(GONE)


def _packed(*arguments: str | bytes | int) -> bytes:
    """A command as Redis reads it, in one piece."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in arguments]
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(parts)


def _connect(url: str, timeout: float) -> Any:
    pool = redis.ConnectionPool.from_url(
        url,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_read_size=_READ_BYTES,
        retry=Retry(NoBackoff(), 0),
    )
    connection: Any = pool.make_connection()
    connection.connect()
    return connection


def _readable(connection: Any, wait: float) -> bool:
    if not connection.is_connected:
        raise redis.ConnectionError("the connection was closed")
    return bool(connection.can_read(timeout=wait))
