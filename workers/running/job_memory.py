"""How much memory a job may take: estimates are held against it, and the system refuses what goes far beyond it."""

import contextlib
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from app.config import settings
from solvers.core.memory import allowing, machine_bytes

# of the machine, by default; the rest is for the system, the database and the API
_SHARE = 0.75
# what an estimate leaves out: copies for a moment, threads, compiled code
_BEYOND_BYTES = 1 << 30
_STATUS = Path("/proc/self/status")
_processes = [1]
# the limits that the process had, once for each job that goes on
_lock, _before = Lock(), list[tuple[int, int]]()


def divide(processes: int) -> None:
    """Jobs run in so many processes of this worker at the same time; to be called before they are forked."""
    _processes[0] = processes


def job_bytes() -> int:
    """What a job may take: ``POLYMARGIN_JOB_MEMORY_BYTES``, or its part of three quarters of the machine."""
    given = settings().job_memory_bytes
    return int(_SHARE * machine_bytes() / _processes[0]) if given is None else given


@contextmanager
def bounded() -> Iterator[None]:
    """Meanwhile estimates above :func:`job_bytes` are refused, and allocations far above it raise MemoryError."""
    with allowing(job_bytes()), _data_limit(job_bytes() + _BEYOND_BYTES):
        yield


@contextmanager
def _data_limit(n_bytes: int) -> Iterator[None]:
    """Meanwhile the process may take so many bytes beyond those it has.

    The limit is the process's: of jobs in several threads the first puts it, and the last takes it back.
    """
    with _lock:
        _before.append(_before[0] if _before else resource.getrlimit(resource.RLIMIT_DATA))
        if len(_before) == 1:
            soft, hard = _before[0]
            # if the system does not report its memory, or has a lower limit of its own, that limit applies
            with contextlib.suppress(OSError, ValueError, StopIteration):
                most = _data_bytes() + n_bytes
                resource.setrlimit(resource.RLIMIT_DATA, (most if soft < 0 else min(soft, most), hard))
    try:
        yield
    finally:
        with _lock:
            limits = _before.pop()
            if not _before:
                resource.setrlimit(resource.RLIMIT_DATA, limits)


def _data_bytes() -> int:
    """The memory of this process that the limit counts."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) << 10
