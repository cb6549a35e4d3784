"""How much memory there is, and the refusal of what would need more."""

import os
from functools import cache
from pathlib import Path

from solvers.core.problem import ProblemError

# Control groups of version 2 and 1: a container sees there what it may use.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class TooLargeError(ProblemError):
    """The problem needs more memory than the method may use."""


def limit_bytes(megabytes: int | None) -> int:
    """So many megabytes; None: what this machine, or its container, has."""
    return machine_bytes() if megabytes is None else megabytes << 20


@cache
def machine_bytes() -> int:
    """The memory of this machine, or of the container that this process runs in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in map(Path, _GROUPS):
        if path.is_file() and (text := path.read_text().strip()).isdigit():
            found.append(int(text))
    return min(found)


def refuse(what: str, needed: int, megabytes: int | None) -> None:
    """Raise TooLargeError where ``what`` needs more than :func:`limit_bytes`; the message tells both numbers."""
    limit = limit_bytes(megabytes)
    if needed > limit:
        has = "this machine has" if megabytes is None else "memory_mb allows"
        raise TooLargeError(f"{what} needs at least {needed / 2**20:,.0f} MB; {has} {limit / 2**20:,.0f} MB")
