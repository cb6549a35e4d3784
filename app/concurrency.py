"""Work that is done within a request, and takes much memory or time: little of it goes on in a process at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import TooMany

_COME_AGAIN_SECONDS = 2.0
_comparisons = threading.Semaphore(2)


@contextmanager
def comparing() -> Iterator[None]:
    """One of two turns, until the block ends; raises TooMany if both are taken, as waiting would block threads."""
    if not _comparisons.acquire(blocking=False):
        raise TooMany("Too many comparisons are running; retry in a few seconds.", _COME_AGAIN_SECONDS)
    try:
        yield
    finally:
        _comparisons.release()
