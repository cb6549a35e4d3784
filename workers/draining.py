"""Whether this worker shall give back what it holds: it was told to end, or its main process is gone."""

import mmap
import os
import threading
import time

# One byte, shared with the processes forked from this one: the main process writes it, the pool reads it.
_told = mmap.mmap(-1, 1)
_parent: int | None = None
_busy = threading.Lock()
_POLL_SECONDS = 0.5


def request() -> None:
    """Tell every process of this worker to give its job back."""
    _told[0] = 1


def requested() -> bool:
    """Whether the job shall be given back now."""
    return _told[0] == 1 or _orphaned()


def busy() -> threading.Lock:
    """Held while a job runs: an orphaned process ends as soon as it is free."""
    return _busy


def watch_parent() -> None:
    """In a pool process: end with the main process, after the job was given back."""
    global _parent
    _parent = os.getppid()
    threading.Thread(target=_end_when_orphaned, name="orphan-watch", daemon=True).start()


def _orphaned() -> bool:
    return _parent is not None and os.getppid() != _parent


def _end_when_orphaned() -> None:
    while not _orphaned():
        time.sleep(_POLL_SECONDS)
    with _busy:
        os._exit(1)
