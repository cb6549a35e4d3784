"""CPU affinity: shards on one machine keep to processors of their own.

Two processes that wake each other in every round look to Linux like one that works, so it often leaves both on one
processor while another is idle.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def current() -> str:
    """The machine, and which of its processors this thread may use; equal for processes that share them."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    try:
        machine = _BOOT.read_text().strip()
    except OSError:
        return ""
    return " ".join([machine, *map(str, sorted(os.sched_getaffinity(0)))])


@contextmanager
def separated(affinities: Sequence[str], rank: int) -> Iterator[None]:
    """Meanwhile, this thread and those that it starts use their share of the processors of all shards of one affinity.

    Where these are fewer than the shards, or the system does not report them, nothing changes.

    Parameters
    ----------
    affinities : sequence of str
        What :func:`current` is for every shard, by rank.
    rank : int
        The caller's own.
    """
    together = [other for other, at in enumerate(affinities) if at == affinities[rank]]
    allowed = [int(word) for word in affinities[rank].split()[1:]]
    if len(together) == 1 or len(allowed) < len(together):
        yield
        return
    # which processors a process may use can change at any time
    with suppress(OSError):
        os.sched_setaffinity(0, allowed[together.index(rank) :: len(together)])
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)
