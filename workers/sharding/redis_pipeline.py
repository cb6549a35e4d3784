"""A connection to Redis that sends commands of a gang without waiting for their answers, and reads those later."""

import math
from collections import deque
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.sharding.gang_keys import CONNECT_SECONDS, GONE, RedisLostError

_READ_BYTES = 1 << 20

_CHECK = """
local broken = redis.call('HGET', KEYS[1], 'broken')
if broken then return redis.error_reply('BROKEN ' .. broken) end
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.error_reply('GONE') end
"""
# KEYS of the gang and of its chunks, ARGV time to live
KEEP_ALIVE = (
    _CHECK
    + """
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
"""
)
# ARGV field, value
ANNOUNCE = (
    _CHECK
    + """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
)
# ARGV size, channel of all, what to say there when the last one has joined
JOIN = (
    _CHECK
    + """
if redis.call('HINCRBY', KEYS[1], 'here', 1) == tonumber(ARGV[1]) then
    redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return 1
"""
)
# ARGV time to live, field, bytes
STORE = (
    _CHECK
    + """
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
"""
)
# ARGV field, readers; the last of them removes it
FETCH = (
    _CHECK
    + """
local bytes = redis.call('HGET', KEYS[2], ARGV[1])
if redis.call('HINCRBY', KEYS[2], ARGV[1] .. ':read', 1) == tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[2], ARGV[1], ARGV[1] .. ':read')
end
return bytes
"""
)


class GangPipeline:
    """Commands to the keys of one gang; every script finds out whether the gang is still there.

    Parameters
    ----------
    url : str
        Of the Redis.
    keys : (str, str)
        Of the gang and of its chunks.
    timeout : float
        Seconds that an answer is waited for.
    """

    def __init__(self, url: str, keys: tuple[str, str], timeout: float) -> None:
        self._keys = keys
        self._connection = connect(url, timeout)
        # for each command that is not answered yet: does a zero mean that the gang is gone?
        self._unanswered = deque[bool]()
        self._scripts = {
            script: self.ask("SCRIPT", "LOAD", script) for script in (KEEP_ALIVE, ANNOUNCE, JOIN, STORE, FETCH)
        }

    @property
    def outstanding(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._unanswered)

    def ask(self, *command: Any) -> Any:
        """Send one command and wait for its answer; no other may be outstanding."""
        self._connection.send_command(*command)
        return self._connection.read_response()

    def send(self, script: str, *arguments: Any) -> None:
        """Run a script; its answer is read later."""
        self._send(script, *arguments)
        self._unanswered.append(True)

    def fetch(self, field: str, readers: int) -> Any:
        """A chunk, which the last of its readers removes; None where it is not there."""
        self.wait_for_answers()
        self._send(FETCH, field, readers)
        return self._connection.read_response()

    def publish(self, channel: str, message: bytes, ttl: int) -> None:
        """Publish a message and keep the gang's key for another ``ttl`` milliseconds; the answers are read later."""
        self._connection.send_packed_command(
            [_packed(b"PEXPIRE", self._keys[0], ttl) + _packed(b"PUBLISH", channel, message)]
        )
        self._unanswered += (True, False)

    def read_answers(self) -> None:
        """Read the answers that have come; raises RedisLostError where the gang is gone."""
        while self._unanswered and readable(self._connection, 0.0):
            self._read_answer()

    def wait_for_answers(self, most: float = math.inf) -> None:
        """Read all answers, until none comes for ``most`` seconds; raises RedisLostError where the gang is gone."""
        while self._unanswered and (most == math.inf or readable(self._connection, most)):
            self._read_answer()

    def disconnect(self) -> None:
        """Close the connection."""
        self._connection.disconnect()

    def _send(self, script: str, *arguments: Any) -> None:
        self._connection.send_command("EVALSHA", self._scripts[script], 2, *self._keys, *arguments)

    def _read_answer(self) -> None:
        zero_means_gone = self._unanswered.popleft()
        if self._connection.read_response() == 0 and zero_means_gone:
            raise RedisLostError(GONE)


def connect(url: str, timeout: float) -> Any:
    """A connection of its own, which is not taken up again where it breaks."""
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


def readable(connection: Any, wait: float) -> bool:
    """Whether something can be read from a connection within so many seconds; raises redis.ConnectionError."""
    if not connection.is_connected:
        raise redis.ConnectionError("the connection was closed")
    return bool(connection.can_read(timeout=wait))


def _packed(*arguments: str | bytes | int) -> bytes:
    """A command as Redis reads it, in one piece."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in arguments]
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(parts)
