"""The two keys of a gang in Redis: opening the gang creates them, ending it removes them.

``NAME:gang`` exists as long as the gang; if it is missing, Redis has lost its data. ``NAME:parts`` holds
the chunks of messages too long to be published, and nothing is written there without the other, so that nothing is left
behind by a shard that comes too late. Both have a time to live. Channels are named after the gang and a token that it
was given when it was opened.
"""

import contextlib
import struct
import time
import uuid
from collections.abc import Callable, Iterator

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from solvers.sharding.exchange import ExchangeError

TTL_SECONDS = 3600.0
CONNECT_SECONDS = 10.0
GONE = "Redis has lost the gang's keys, or the gang has ended"
_POLL_SECONDS = 0.02
# of a message on a gang's channels: its kind, its shard, its round
HEAD = struct.Struct("<cxHxxxxQ")
BROKEN = b"b"

# ARGV reason, head of the message
_BREAK = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[1], 'broken', ARGV[1]) == 0 then return 0 end
redis.call('PUBLISH', KEYS[1] .. ':' .. redis.call('HGET', KEYS[1], 'token'), ARGV[2] .. ARGV[1])
return 1
"""


class RedisLostError(ExchangeError):
    "Redis cannot be reached: {type(error).__name__}"


def open_gang(url: str, name: str, ttl: float = TTL_SECONDS) -> None:
    """Make the keys of a gang, so that shards can exchange under its name; raises RedisLostError."""
    with _client(url) as client:
        gang = keys(name)[0]
        client.hset(gang, "token", uuid.uuid4().hex)
        client.pexpire(gang, int(1000 * ttl))


def require_gang(url: str, name: str) -> None:
    """Raises RedisLostError where Redis is away, or no longer has the gang's keys."""
    with _client(url) as client:
        if not client.exists(keys(name)[0]):
            raise RedisLostError(GONE)


def await_gang(url: str, name: str, timeout: float, check: Callable[[], None]) -> None:
    """Wait until a gang is open; ``check`` is called meanwhile, and may raise. Raises RedisLostError."""
    deadline = time.monotonic() + timeout
    with _client(url) as client:
        while not client.exists(keys(name)[0]):
            if time.monotonic() >= deadline:
                raise RedisLostError(GONE)
            check()
            time.sleep(_POLL_SECONDS)


def report_compiling(url: str, name: str) -> None:
    """Report to the coordinator of a gang that a shard compiles its loops; raises RedisLostError."""
    with _client(url) as client:
        gang = keys(name)[0]
        if client.exists(gang):
            client.hset(gang, "compiling", 1)


def was_compiling(url: str, name: str) -> bool:
    """Whether a shard has reported compilation since the last call; raises RedisLostError."""
    with _client(url) as client:
        return bool(client.hdel(keys(name)[0], "compiling"))


def break_gang(url: str, name: str, reason: str) -> None:
    """Make every shard that waits, or will wait, raise ExchangeError; raises RedisLostError."""
    with _client(url) as client:
        client.eval(_BREAK, 2, *keys(name), reason, HEAD.pack(BROKEN, 0, 0))


def close_gang(url: str, *names: str) -> None:
    """Remove all keys of gangs; a shard that is still there raises ExchangeError. Raises RedisLostError."""
    with _client(url) as client:
        client.delete(*(key for name in names for key in keys(name)))


def keys(name: str) -> tuple[str, str]:
    """The keys of a gang, and of its chunks."""
    return f"{name}:gang", f"{name}:parts"


@contextlib.contextmanager
def as_exchange_errors() -> Iterator[None]:
    """Errors of Redis as those of an exchange."""
    try:
        yield
    except redis.ResponseError as error:
        word, _, reason = str(error).partition(" ")
        if word == "BROKEN":
            raise ExchangeError(reason) from None
        if word in {"GONE", "NOSCRIPT", "LOADING"}:
            raise RedisLostError(GONE) from None
        raise ExchangeError(f"Redis refuses a message: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise RedisLostError(f"Redis cannot be reached: {type(error).__name__}") from error


@contextlib.contextmanager
def _client(url: str) -> Iterator[redis.Redis]:
    retry = Retry(NoBackoff(), 0)
    with (
        as_exchange_errors(),
        redis.Redis.from_url(
            url, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS, retry=retry
        ) as client,
    ):
        yield client
