"""Draining a worker: before it ends, its processes return their jobs to the queue."""

import mmap

# One byte, shared with the processes forked from this one: the main process writes it, the pool reads it.
_flag = mmap.mmap(-1, 1)


def request() -> None:
    """Ask every process of this worker to return its job to the queue."""
    _flag[0] = 1


def withdraw() -> None:
    """Withdraw the request."""
    _flag[0] = 0


def requested() -> bool:
    """Whether the job must be returned to the queue now."""
    return _flag[0] == 1
