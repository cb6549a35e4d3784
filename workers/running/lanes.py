"""What the forked processes of a worker share: slots for jobs, and the request to return a job to the queue.

Imports have a process of their own, so that they do not wait behind trainings. A worker for N jobs forks N + 1
processes. Each job but an import holds one of N slots, as a lock on a file, which the system releases when the process
dies; so one process is always free for an import.
"""

import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIGHT = ("import",)
_slots: list[Path] = []
# One byte, shared with the processes forked from this one: the main process writes it, the pool reads it.
_flag = mmap.mmap(-1, 1)


def divide(processes: int) -> None:
    """Give this worker's pool so many slots; to be called before its processes are forked."""
    folder = Path(tempfile.mkdtemp(prefix="polymargin-lanes-"))
    _slots[:] = [folder / str(number) for number in range(processes)]
    for slot in _slots:
        slot.touch()


def clear() -> None:
    """Remove the slots at the end of the worker."""
    for slot in _slots:
        slot.unlink(missing_ok=True)
    if _slots:
        _slots[0].parent.rmdir()
    _slots.clear()


class Slot:
    """A slot for a job that is no import, or none where all are taken."""

    def __init__(self, file: int | None, *, is_free: bool) -> None:
        self._file, self.is_free = file, is_free

    def release(self) -> None:
        """Let others have it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def slot() -> Iterator[Slot]:
    """A free slot, without waiting for one; a process without a pool is always free."""
    found = _taken() if _slots else Slot(None, is_free=True)
    try:
        yield found
    finally:
        found.release()


def _taken() -> Slot:
    for path in _slots:
        file = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            continue
        return Slot(file, is_free=True)
    return Slot(None, is_free=False)


def request_drain() -> None:
    """Ask every process of this worker to return its job to the queue."""
    _flag[0] = 1


def withdraw_drain() -> None:
    """Withdraw the request_drain."""
    _flag[0] = 0


def drain_requested() -> bool:
    """Whether the job must be returned to the queue now."""
    return _flag[0] == 1
