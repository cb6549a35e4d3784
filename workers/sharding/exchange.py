"""The exchange of a gang over Redis: what a shard posts is published to all others, and Redis does not store it.

The gang's keys and channels are those of :mod:`workers.sharding.gang_keys`. All that is posted before the last shard
has joined is held back until then, as Redis hands a message only to those who listen.

Posting does not wait for an answer: that the gang is still there, a shard learns from the next one's.
"""

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
import redis

from solvers.sharding.exchange import Arrays, ExchangeError
from workers.sharding import frames
from workers.sharding.gang_keys import BROKEN, GONE, HEAD, TTL_SECONDS, RedisLostError, as_exchange_errors, keys
from workers.sharding.redis_pipeline import JOIN, KEEP_ALIVE, STORE, GangPipeline, connect, readable

CHUNK_BYTES = 32 << 20
# of all that a round publishes: what Redis keeps for a shard that does not listen is well below its limit of 8 MB
INLINE_BYTES = 2 << 20
_KEEP_ALIVE_SECONDS, _LINGER_SECONDS = 0.25, 5.0
# a processor that has been put to sleep takes longer to wake than a message to come
_SPIN_SECONDS = 0.01
# kinds of messages, beside BROKEN
_WHOLE, _CHUNKS, _COMPLETE = b"w", b"c", b"h"


class RedisExchange:
    """One shard's end of the exchange within a gang that :func:`open_gang` has opened.

    Parameters
    ----------
    url : str
        Of the Redis.
    name : str
        Of the gang.
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
        self._next = 0
        self._rounds: dict[int, dict[int, bytes]] = defaultdict(dict)
        # what is posted before the last shard has joined; None afterwards
        self._unsent: list[bytes] | None = []
        with as_exchange_errors():
            self._pipeline, self._reader = GangPipeline(url, self._keys, timeout), connect(url, timeout)
            self._channel = self._join()

    def _join(self) -> str:
        """Subscribe to the others' channels, then say that one more has joined; the channel of the gang."""
        token = self._pipeline.ask("HGET", self._keys[0], "token")
        if token is None:
            raise RedisLostError(GONE)
        channel = f"{self._keys[0]}:{token.decode()}"
        others = [f"{channel}:{rank}" for rank in range(self.size) if rank != self.rank]
        self._reader.send_command("SUBSCRIBE", channel, *others)
        for _ in range(self.size):
            self._reader.read_response()
        self._pipeline.send(JOIN, self.size, channel, HEAD.pack(_COMPLETE, 0, 0))
        self._pipeline.wait_for_answers()
        return channel

    def post(self, arrays: Arrays) -> int:
        """Send contiguous arrays to every shard; they are copied. Returns the ticket of this round."""
        frame = frames.pack(arrays)
        ticket, self._next = self._next, self._next + 1
        self.bytes += len(frame)
        message = own = HEAD.pack(_WHOLE, self.rank, ticket) + frame
        with as_exchange_errors():
            self._pipeline.read_answers()
            if len(frame) > self._inline and self.size > 1:
                n_chunks = self._store(frame, f"{ticket}:{self.rank}")
                message = HEAD.pack(_CHUNKS, self.rank, ticket) + str(n_chunks).encode()
            self._rounds[ticket][self.rank] = own
            while self._unsent is not None and self._receive(0.0):
                pass
            if self._unsent is None:
                self._publish(message)
            else:
                self._unsent.append(message)
        return ticket

    def collect(self, ticket: int) -> list[Arrays]:
        """What all shards have posted in that round, by rank; once a round. Raises ExchangeError."""
        started = time.monotonic()
        try:
            with as_exchange_errors():
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

    def swap(self, messages: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """Send contiguous arrays to some shards, each its own, and take what others have sent; raises ExchangeError.

        A message goes by chunks that its addressee alone fetches; how many there are, the round says to all.
        """
        ticket = self._next
        counts: list[tuple[int, int]] = []
        found: dict[int, Arrays] = {}
        with as_exchange_errors():
            for to, arrays in messages.items():
                frame = frames.pack(arrays)
                self.bytes += len(frame)
                counts.append((to, self._store(frame, f"{ticket}:{self.rank}>{to}")))
        addressed = self.collect(self.post([np.array(counts, np.int64).reshape(-1, 2)]))
        began = time.monotonic()
        try:
            with as_exchange_errors():
                for rank, (sent,) in enumerate(addressed):
                    for n in sent[sent[:, 0] == self.rank, 1]:
                        found[rank] = frames.unpack(self._fetch(ticket, f"{ticket}:{rank}>{self.rank}", n, 1))
        except frames.FrameError as error:
            raise ExchangeError(f"a message of round {ticket} cannot be read: {error}") from error
        finally:
            self.waited += time.monotonic() - began
        return found

    def barrier(self) -> None:
        """Wait until every shard is here. Raises ExchangeError."""
        self.collect(self.post([]))

    def close(self) -> None:
        """Leave Redis, once it has taken what was posted; the gang's keys stay."""
        # of a longer message than it reads at a time it drops the rest where nobody is left to answer to
        with contextlib.suppress(redis.RedisError, OSError, ExchangeError):
            self._pipeline.wait_for_answers(_LINGER_SECONDS)
        for connection in (self._pipeline, self._reader):
            with contextlib.suppress(redis.RedisError, OSError):
                connection.disconnect()

    def _await(self, ticket: int, started: float) -> None:
        keep_alive, deadline = started + _KEEP_ALIVE_SECONDS, started + self._timeout
        sleep = started + _SPIN_SECONDS
        while len(self._rounds[ticket]) < self.size:
            if time.monotonic() < sleep:
                if not self._receive(0.0):
                    os.sched_yield()
                continue
            if self._receive(max(0.0, min(keep_alive, deadline) - time.monotonic())):
                continue
            self._pipeline.read_answers()
            now = time.monotonic()
            if now >= deadline:
                if self._pipeline.outstanding:
                    raise RedisLostError(f"Redis has not answered for {self._timeout:g} s")
                raise ExchangeError(f"round {ticket} was not complete after {self._timeout:g} s")
            if now >= keep_alive:
                keep_alive = now + _KEEP_ALIVE_SECONDS
                if self._check is not None:
                    self._check()
                self._pipeline.send(KEEP_ALIVE, self._ttl)

    def _receive(self, wait: float) -> bool:
        if not readable(self._reader, wait):
            return False
        message = self._reader.read_response()[2]
        kind, rank, ticket = HEAD.unpack_from(message)
        if kind == BROKEN:
            raise ExchangeError(message[HEAD.size :].decode(errors="replace"))
        if kind != _COMPLETE:
            self._rounds[ticket][rank] = message
        elif self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            for late in unsent:
                self._publish(late)
        return True

    def _whole(self, ticket: int, rank: int, message: bytes) -> bytes | memoryview:
        content = memoryview(message)[HEAD.size :]
        if message[:1] == _WHOLE:
            return content
        return self._fetch(ticket, f"{ticket}:{rank}", int(bytes(content)), self.size - 1)

    def _store(self, frame: bytes, name: str) -> int:
        """Store a long message in chunks; how many."""
        stops = range(0, len(frame), self._chunk)
        for i, at in enumerate(stops):
            self._pipeline.send(STORE, self._ttl, f"{name}:{i}", frame[at : at + self._chunk])
        return len(stops)

    def _fetch(self, ticket: int, name: str, n_chunks: int, readers: int) -> bytes:
        """The chunks of one message, which the last of its readers removes."""
        chunks = []
        for i in range(n_chunks):
            chunk = self._pipeline.fetch(f"{name}:{i}", readers)
            if chunk is None:
                raise RedisLostError(f"Redis has lost a message of round {ticket}")
            chunks.append(chunk)
        return b"".join(chunks)

    def _publish(self, message: bytes) -> None:
        if self.size > 1:
            self._pipeline.publish(f"{self._channel}:{self.rank}", message, self._ttl)
