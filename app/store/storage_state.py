"""Whether object storage takes, gives, lists and removes objects, and what it says where it does not."""

import threading
import time

from app.config import settings
from app.store.buckets import StorageAway
from app.store.files import files

# an answer holds for the first time, and a fault for the second, because someone may repair it at any moment
_AGAIN_SECONDS, _JOINED_SECONDS, _SLOW_SECONDS = 30.0, 1.0, 10.0


def storage_fault() -> str | None:
    """Why an object cannot be written, read, listed or removed; None if it can, or if files are in the data folder."""
    if not settings().files:
        return None
    try:
        files().now()  # of an object that it writes and removes
        files().names("incoming")
    except StorageAway as error:
        return error.detail
    return None


class StorageState:
    """What :func:`storage_fault` said last; a thread asks again, so that a request waits a second at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked_at = 0.0
        self._fault: str | None = "The object storage has not answered yet."

    def fault(self) -> str | None:
        """Why objects cannot be written, read, listed or removed; None if they can, or if there is no storage."""
        if not settings().files:
            return None
        with self._lock:
            thread, now = self._thread, time.monotonic()
            if thread is None or (not thread.is_alive() and now - self._asked_at > self._keeps):
                thread = self._thread = threading.Thread(target=self._ask, name="storage-state", daemon=True)
                self._asked_at = now
                thread.start()
        if self._fault is not None:
            thread.join(_JOINED_SECONDS)
        waited = time.monotonic() - self._asked_at
        if thread.is_alive() and waited > _SLOW_SECONDS:
            return f"The object storage has not answered for {waited:.0f} s."
        return self._fault

    @property
    def _keeps(self) -> float:
        return _JOINED_SECONDS if self._fault is not None else _AGAIN_SECONDS

    def _ask(self) -> None:
        self._fault = storage_fault()


STATE = StorageState()
