"""Runs of a benchmark in processes of their own: memory is not counted with that of others, time is bounded."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: object) -> T:
    """What the function returns, from a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def within(seconds: float, function: Callable[..., T], *arguments: object) -> T | None:
    """What the function returns in a process of its own; None where that took more processor seconds. Linux only.

    It is a copy of this process: where this one has run threads of a library's own (clarabel's), the copy waits for
    them forever. The process is watched from here: a limit set in it would make its own measure of processor time a
    coarse one.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(function(*arguments)))
    process.start()
    theirs.close()
    assert process.pid is not None
    try:
        while not ours.poll(0.05):
            if cpu_seconds(process.pid) > seconds:
                return None
        return ours.recv()  # type: ignore[no-any-return]
    finally:
        process.kill()
        process.join()


def cpu_seconds(pid: int) -> float:
    """The processor time that a process, all its threads together, has taken so far. Linux only."""
    return time.clock_gettime((~pid << 3) | 2)  # how Linux numbers the clock of a process


def children(pid: int) -> list[int]:
    """The processes that a process has started. Linux only."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10
