"""The exchange of a gang over Redis: what all shards have posted in a round becomes one entry that all of them read.

A gang has three keys, all with a time to live. ``NAME:gang`` says that it is there; without it nothing is written, so
that nothing is left behind by a shard that comes too late, and whoever finds it gone knows that Redis has lost its
memory. ``NAME:parts`` holds the messages of rounds that are not complete, ``NAME:rounds`` is a stream of those that
are: the script that stores the last message of a round adds its entry.

Posting does not wait for an answer, and the entry is asked for as soon as it is posted for. So a round costs one round
trip, and most of that passes while the shard computes.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from solvers.sharding.exchange import Arrays, ExchangeError
from workers import frames

CHUNK_BYTES = 32 << 20
TTL_SECONDS = 3600.0
_PULSE_SECONDS = 0.25
_CONNECT_SECONDS = 10.0
_READ_BYTES = 1 << 20
_LAST = 1 << 52
_WHOLE, _CHUNKS = b"w", b"c"

_CHECK = """
local broken = redis.call('HGET', KEYS[1], 'broken')
if broken then return redis.error_reply('BROKEN ' .. broken) end
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('GONE') end
"""
# KEYS gang parts rounds, ARGV ttl
_PULSE = (
    _CHECK
    + """
redis.call('PEXPIRE', KEYS[1], ARGV[1])
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
# ARGV field, size; the last reader removes it
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
# ARGV ttl, rank, size, ticket, rounds that this shard has collected, bytes
_POST = (
    _CHECK
    + """
local ttl, rank, size, ticket = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
redis.call('HSET', KEYS[1], 'collected' .. rank, ARGV[5])
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('HSET', KEYS[2], ticket .. ':' .. rank, ARGV[6])
redis.call('PEXPIRE', KEYS[2], ttl)
if redis.call('HINCRBY', KEYS[1], 'posted' .. ticket, 1) < size then return 0 end
local entry, least = {}, nil
for other = 0, size - 1 do
    local field = ticket .. ':' .. other
    entry[2 * other + 1] = other
    entry[2 * other + 2] = redis.call('HGET', KEYS[2], field)
    redis.call('HDEL', KEYS[2], field)
    local collected = tonumber(redis.call('HGET', KEYS[1], 'collected' .. other))
    if not least or collected < least then least = collected end
end
redis.call('HDEL', KEYS[1], 'posted' .. ticket)
redis.call('XADD', KEYS[3], (ticket + 1) .. '-0', unpack(entry))
redis.call('PEXPIRE', KEYS[3], ttl)
for old = tonumber(redis.call('HGET', KEYS[1], 'removed')) + 1, least do
    redis.call('XDEL', KEYS[3], old .. '-0')
end
redis.call('HSET', KEYS[1], 'removed', least)
return 1
"""
)
# ARGV ttl, reason, an entry's id above all others
_BREAK = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[1], 'broken', ARGV[2]) == 0 then return 0 end
redis.call('XADD', KEYS[3], ARGV[3], 'broken', ARGV[2])
redis.call('PEXPIRE', KEYS[3], ARGV[1])
return 1
"""


class RedisLostError(ExchangeError):
    """Redis is away, or has lost what the gang had there; no shard is to blame."""


def open_gang(url: str, name: str, ttl: float = TTL_SECONDS) -> None:
    """Make the keys of a gang, so that shards can exchange under its name; raises RedisLostError."""
    with _client(url) as client:
        gang = _keys(name)[0]
        client.hset(gang, mapping={"removed": 0})
        client.pexpire(gang, int(1000 * ttl))


def require_gang(url: str, name: str) -> None:
    """Raises RedisLostError where Redis is away, or no longer has the gang's keys."""
    with _client(url) as client:
        if not client.exists(_keys(name)[0]):
            raise RedisLostError("Redis has lost the gang's keys, or the gang has ended")


def break_gang(url: str, name: str, reason: str) -> None:
    """Make every shard that waits, or will wait, raise ExchangeError; raises RedisLostError."""
    with _client(url) as client:
        client.eval(_BREAK, 3, *_keys(name), int(1000 * TTL_SECONDS), reason, f"{_LAST}-0")


def close_gang(url: str, *names: str) -> None:
    """Remove all keys of gangs; a shard that is still there raises ExchangeError. Raises RedisLostError."""
    with _client(url) as client:
        client.delete(*(key for name in names for key in _keys(name)))


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
        Redis is away.
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
        self._keys = _keys(name)
        self._timeout, self._check, self._ttl = timeout, check, int(1000 * ttl)
        self._chunk, self._inline = chunk_bytes, max(1, chunk_bytes // size)
        self._next, self._unanswered, self._asked = 0, 0, False
        self._entries: dict[int, list[bytes]] = {}
        self._read, self._collected = 0, 0
        with _translated():
            self._writer, self._reader = _connect(url, timeout), _connect(url, timeout)
            self._scripts = {}
            for script in (_PULSE, _STORE, _FETCH, _POST):
                self._writer.send_command("SCRIPT", "LOAD", script)
                self._scripts[script] = self._writer.read_response()

    def post(self, arrays: Arrays) -> int:
        """Send contiguous arrays to every shard; they are copied. Returns the ticket of this round."""
        frame = frames.pack(arrays)
        ticket, self._next = self._next, self._next + 1
        self.bytes += len(frame)
        with _translated():
            message = _WHOLE + frame
            if len(message) > self._inline:
                stops = range(0, len(frame), self._chunk)
                for i, at in enumerate(stops):
                    self._run(_STORE, self._ttl, self._field(ticket, self.rank, i), frame[at : at + self._chunk])
                message = _CHUNKS + str(len(stops)).encode()
            self._run(_POST, self._ttl, self.rank, self.size, ticket, self._collected, message)
            self._ask()
        return ticket

    def collect(self, ticket: int) -> list[Arrays]:
        """What all shards have posted in that round, by rank; once a round. Raises ExchangeError."""
        started = time.monotonic()
        try:
            with _translated():
                self._await(ticket, started)
                frames_ = [self._whole(ticket, rank, part) for rank, part in enumerate(self._entries.pop(ticket))]
            parts: list[Arrays] = [frames.unpack(frame) for frame in frames_]
        except frames.FrameError as error:
            raise ExchangeError(f"a message of round {ticket} cannot be read: {error}") from error
        finally:
            self.waited += time.monotonic() - started
        self.rounds += 1
        self._collected = min(self._entries, default=self._read)
        return parts

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
        while ticket not in self._entries:
            self._drain()
            if _readable(self._reader, max(0.0, min(pulse, deadline) - time.monotonic())):
                self._take(self._reader.read_response())
                self._ask()
                continue
            now = time.monotonic()
            if now >= deadline:
                raise ExchangeError(f"round {ticket} was not complete after {self._timeout:g} s")
            if now >= pulse:
                pulse = now + _PULSE_SECONDS
                if self._check is not None:
                    self._check()
                self._run(_PULSE, self._ttl)

    def _take(self, reply: Any) -> None:
        self._asked = False
        ((_, entries),) = reply
        for id, fields in entries:
            if fields[0] == b"broken":
                raise ExchangeError(fields[1].decode(errors="replace"))
            self._read = int(id.split(b"-")[0])
            self._entries[self._read - 1] = fields[1::2]

    def _ask(self) -> None:
        """Have the next entry sent, if one is to come."""
        if not self._asked and self._read < self._next:
            self._reader.send_command("XREAD", "COUNT", 1, "BLOCK", 0, "STREAMS", self._keys[2], f"{self._read}-0")
            self._asked = True

    def _whole(self, ticket: int, rank: int, part: bytes) -> bytes:
        if part[:1] == _WHOLE:
            return part[1:]
        chunks = []
        for i in range(int(part[1:])):
            while self._unanswered:
                self._answer()
            self._send(_FETCH, self._field(ticket, rank, i), self.size)
            chunk = self._writer.read_response()
            if chunk is None:
                raise RedisLostError(f"Redis has lost a message of round {ticket}")
            chunks.append(chunk)
        return b"".join(chunks)

    @staticmethod
    def _field(ticket: int, rank: int, chunk: int) -> str:
        return f"{ticket}:{rank}:{chunk}"

    def _run(self, script: str, *arguments: Any) -> None:
        """Send; the answer is read later."""
        self._send(script, *arguments)
        self._unanswered += 1
        self._drain()

    def _send(self, script: str, *arguments: Any) -> None:
        self._writer.send_command("EVALSHA", self._scripts[script], 3, *self._keys, *arguments)

    def _drain(self) -> None:
        while self._unanswered and _readable(self._writer, 0.0):
            self._answer()

    def _answer(self) -> None:
        self._unanswered -= 1
        self._writer.read_response()


def _keys(name: str) -> tuple[str, str, str]:
    return f"{name}:gang", f"{name}:parts", f"{name}:rounds"


@contextlib.contextmanager
def _client(url: str) -> Iterator[redis.Redis]:
    retry = Retry(NoBackoff(), 0)
    with (
        _translated(),
        redis.Redis.from_url(
            url, socket_timeout=_CONNECT_SECONDS, socket_connect_timeout=_CONNECT_SECONDS, retry=retry
        ) as client,
    ):
        yield client


def _connect(url: str, timeout: float) -> Any:
    pool = redis.ConnectionPool.from_url(
        url,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=_CONNECT_SECONDS,
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


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except redis.ResponseError as error:
        word, _, reason = str(error).partition(" ")
        if word == "BROKEN":
            raise ExchangeError(reason) from None
        if word in {"GONE", "NOSCRIPT", "LOADING"}:
            raise RedisLostError("Redis has lost the gang's keys, or the gang has ended") from None
        raise ExchangeError(f"Redis refuses a message: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise RedisLostError(f"Redis is away: {type(error).__name__}") from error
