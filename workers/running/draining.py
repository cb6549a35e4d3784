"""Whether this worker shall end: then its processes give back the jobs that they hold."""

import mmap

# One byte, shared with the processes forked from this one: the main process writes it, the pool reads it.
_flag = mmap.mmap(-1, 1)


def request() -> None:
    """Tell every process of this worker to give its job back."""
    _flag[0] = 1


def withdraw() -> None:
    """Take the request back."""
    _flag[0] = 0


def requested() -> bool:
    """Whether the job shall be given back now."""
    return _flag[0] == 1
