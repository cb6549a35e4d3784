"""How much memory there is, and the refusal of what would need more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from solvers.core.problem import ProblemError

# Control groups of version 2 and 1: a container sees there what it may use.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_allowed: list[int] = []


class TooLargeError(ProblemError):
    """The problem needs more memory than the method may use."""


def limit_bytes(megabytes: int | None) -> int:
    """So many megabytes, None: all, but no more than this process may use, or this machine or its container has."""
    return min([machine_bytes(), *_allowed[-1:], *([] if megabytes is None else [megabytes << 20])])


@contextmanager
def allowing(n_bytes: int) -> Iterator[None]:
    """Meanwhile no problem of this process may need more than so many bytes, whatever its parameters say."""
    _allowed.append(n_bytes)
    try:
        yield
    finally:
        _allowed.pop()


@cache
def machine_bytes() -> int:
    """The memory of this machine, or of the container that this process runs in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _GROUPS):
        if path.is_file() and (text := path.read_text().strip()).isdigit():
            found.append(int(text))
    return min(found)


def refuse(what: str, needed: int, megabytes: int | None) -> None:
    """Raise TooLargeError where ``what`` needs more than :func:`limit_bytes`; the message has both numbers."""
    limit = limit_bytes(megabytes)
    if needed > limit:
        by_parameter = megabytes is not None and limit == megabytes << 20
        has = "memory_mb allows" if by_parameter else "a job may use" if limit in _allowed[-1:] else "this machine has"
        raise TooLargeError(f"{what} needs at least {needed / 2**20:,.0f} MB; {has} {limit / 2**20:,.0f} MB")
