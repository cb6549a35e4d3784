"""Work that is done within a request, and takes much memory or time: little of it goes on in a process at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import TooMany

_COME_AGAIN_SECONDS = 2.0


class Turns:
    """``with Turns(2).acquire():`` raises TooMany if two calls are running; waiting would block threads."""

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """One of the turns, until the block ends."""
        if not self._free.acquire(blocking=False):
            raise TooMany("Too many comparisons are running; retry in a few seconds.", _COME_AGAIN_SECONDS)
        try:
            yield
        finally:
            self._free.release()


comparing = Turns(2)
