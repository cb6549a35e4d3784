"""Files that the service fetches itself, from addresses that its administrator allows."""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable
from urllib.parse import unquote, urljoin, urlsplit

from app import outbound
from app.config import BUCKETS, settings
from app.errors import InvalidInput, Item, TooLarge, TooMany, Unavailable
from app.outbound import RefusedError
from app.store.buckets import Bucket, StorageAway
from app.store.failures import explained
from app.store.google_buckets import GoogleBucket
from app.version import VERSION

_AT_ONCE, _MOST_REDIRECTS = 1 << 20, 3
# for each part of an answer, and for a whole file
_SECONDS, _MOST_SECONDS = 30.0, 3600.0
# each takes one of the threads that answer requests
_fetches = threading.BoundedSemaphore(4)


def require_allowed(address: str) -> None:
    """Raise InvalidInput unless the settings allow the address."""
    try:
        _require_allowed(address)
    except RefusedError as error:
        raise _refused(error) from None


def fetch(address: str, write: Callable[[bytes], None]) -> None:
    """Read a file and pass it to ``write`` in blocks.

    Parameters
    ----------
    address : str
        ``https://...``, ``s3://bucket/key`` or ``gs://bucket/key``, as POLYMARGIN_SOURCES allows. Redirects are
        followed to addresses that are allowed as well.

    Raises
    ------
    InvalidInput
        The address is not allowed, or has no file.
    TooLarge
        The file is larger than an upload may be.
    TooMany
        Too many files are fetched at the same time.
    Unavailable
        The other side does not answer.
    """
    if not _fetches.acquire(blocking=False):
        raise TooMany("Too many files are being fetched; retry later.", 10)
    try:
        _fetch(address, _Bounded(write))
    except RefusedError as error:
        raise _refused(error) from None
    except FileNotFoundError:
        raise InvalidInput("the address has no file", [Item("there is no such object", "/address")]) from None
    except StorageAway:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise explained(error) or Unavailable(f"The address does not answer: {type(error).__name__}.") from error
    finally:
        _fetches.release()


def object_of(address: str) -> tuple[Bucket | GoogleBucket, str]:
    """The bucket and the key of ``s3://bucket/key`` or ``gs://bucket/key``."""
    parts = urlsplit(address)
    key = unquote(parts.path).lstrip("/")
    if parts.scheme == "gs":
        return GoogleBucket(parts.netloc), key
    return Bucket(f"s3://{parts.netloc}", settings().files_endpoint or None), key


class _Bounded:
    """Passes blocks on within the limits of size and time."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write, self._n, self._until = write, 0, time.monotonic() + _MOST_SECONDS

    def __call__(self, block: bytes) -> None:
        most = settings().max_upload_bytes
        self._n += len(block)
        if self._n > most:
            raise TooLarge(f"The file has more than {most} bytes, which is the maximum.")
        if time.monotonic() > self._until:
            raise TimeoutError
        self._write(block)


def _fetch(address: str, write: Callable[[bytes], None]) -> None:
    for _ in range(_MOST_REDIRECTS + 1):
        _require_allowed(address)
        if address.startswith(BUCKETS):
            bucket, key = object_of(address)
            for block in bucket.blocks(key, _AT_ONCE):
                write(block)
            return
        moved = _fetch_by_http(address, write)
        if moved is None:
            return
        address = urljoin(address, moved)
    raise RefusedError(f"there are more than {_MOST_REDIRECTS} redirects")


def _fetch_by_http(address: str, write: Callable[[bytes], None]) -> str | None:
    """Read the file, or return the address to which the server redirects."""
    parts = urlsplit(address)
    connection = outbound.connection(
        parts, private=settings().sources_private, setting="POLYMARGIN_SOURCES_PRIVATE", seconds=_SECONDS
    )
    with contextlib.ExitStack() as closing:
        closing.callback(connection.close)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"User-Agent": f"polymargin/{VERSION}", "Accept-Encoding": "identity"})
        answer = closing.enter_context(connection.getresponse())
        if answer.status in (301, 302, 303, 307, 308):
            return answer.headers.get("Location", "")
        if answer.status >= 500 or answer.status == 429:
            raise Unavailable(f"The address answered with status {answer.status}: retry later.")
        if answer.status != 200:
            raise RefusedError(f"it answered with status {answer.status}")
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise RefusedError("it answered with a Content-Encoding that was not asked for")
        announced, n = answer.length, 0
        # what is there is taken at once: a source that sends byte by byte meets the limit of time, too
        while block := answer.read1(_AT_ONCE):
            write(block)
            n += len(block)
        if announced is not None and n < announced:
            raise Unavailable("The address sent less than it announced: retry later.")
    return None


def _require_allowed(address: str) -> None:
    """Raise RefusedError unless an address begins with one that the settings name."""
    outbound.parts_of(address, ("https", "http", "s3", "gs"), "https://host/path, s3://bucket/key or gs://bucket/key")
    outbound.require_within(address, settings().sources, "POLYMARGIN_SOURCES")


def _refused(error: RefusedError) -> InvalidInput:
    return InvalidInput("the address cannot be read", [Item(str(error), "/address")])
