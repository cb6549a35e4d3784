"""Runs of a benchmark in processes of their own: memory is not counted with that of others, time is bounded."""

import multiprocessing
import resource
import sys
import time
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
    """What the function returns in a process of its own; None where that took more processor seconds. Linux only.

    The process is watched from here: a limit set in it would make its own measure of processor time a coarse one.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(function(*arguments)))
    process.start()
    theirs.close()
    assert process.pid is not None
    # how Linux numbers the clock of a process
    clock = (~process.pid << 3) | 2
    try:
        while not ours.poll(0.05):
            if time.clock_gettime(clock) > seconds:
                return None
        return ours.recv()  # type: ignore[no-any-return]
    finally:
        process.kill()
        process.join()


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10
