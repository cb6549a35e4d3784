"""Runs of a benchmark in processes of their own: memory is not counted with that of others, time is bounded."""

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: object) -> T:
    """What the function returns, from a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def within(seconds: float, function: Callable[..., T], *arguments: object) -> T | None:
    """What the function returns in a process of its own; None where it took more seconds, by the clock on the wall.

    Nothing but the clock is watched: a limit of processor time would make that time's own measure a coarse one.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(function(*arguments)))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else None  # type: ignore[no-any-return]
    finally:
        process.kill()
        process.join()


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10
