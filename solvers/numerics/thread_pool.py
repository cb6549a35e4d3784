"""A few threads that share out the pieces of one phase; who does which piece never shows in the result.

Pieces are calls of compiled functions, of a millisecond or so, or belong to a loop within one compiled function, of a
microsecond: see :mod:`solvers.numerics.parallel_for`.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np

from solvers.numerics import parallel_for
from solvers.numerics.array_types import Ints

# some milliseconds without anything to do
PATIENCE = 100_000


class ThreadPool:
    """The calling thread and ``size - 1`` others; pieces are calls that release the interpreter's lock."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._executor = ThreadPoolExecutor(size - 1, "thread-pool") if size > 1 else None
        self._work_queue = np.zeros(parallel_for.QUEUE_LENGTH, np.int64)
        self._helpers: list[Future[int]] = []

    def __enter__(self) -> "ThreadPool":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._dismiss()
        if self._executor is not None:
            self._executor.shutdown()

    @property
    def work_queue(self) -> Ints:
        """For compiled code that shares out its loops: for some milliseconds, the other threads look out for them."""
        if self._executor is not None:
            self._helpers = [helper for helper in self._helpers if not helper.done()]
            for _ in range(self.size - 1 - len(self._helpers)):
                self._helpers.append(self._executor.submit(parallel_for.serve, self._work_queue, PATIENCE))
        return self._work_queue

    def run(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Do all pieces and return when the last is done; raises what a piece has raised."""
        if self._executor is None:
            for piece in pieces:
                piece()
        else:
            self.start(pieces).finish()

    def start(self, pieces: Iterable[Callable[[], None]]) -> "Phase":
        """Let the others begin on ``pieces``; the caller joins in with :meth:`Phase.finish`."""
        pending = deque(pieces)
        if self._helpers:
            self._dismiss()
        if self._executor is None:
            return Phase(pending, [])
        return Phase(pending, [self._executor.submit(_drain, pending) for _ in range(min(self.size - 1, len(pending)))])

    def _dismiss(self) -> None:
        """Have the others look out for loops no more."""
        self._work_queue[parallel_for.LEAVE] = 1
        for helper in self._helpers:
            helper.result()
        self._work_queue[parallel_for.LEAVE] = 0
        self._helpers = []


class Phase:
    """Pieces under way."""

    def __init__(self, pending: "deque[Callable[[], None]]", others: "list[Future[None]]") -> None:
        self._pending = pending
        self._others = others

    def finish(self) -> None:
        """Help with what is left and return when the last piece is done; raises what a piece has raised."""
        _drain(self._pending)
        for other in self._others:
            other.result()


def pieces(length: int, n: int) -> list[tuple[int, int]]:
    """Up to n ranges as long as each other, none of them empty."""
    if n == 1 and length > 0:
        return [(0, length)]
    stops = np.linspace(0, length, min(n, length) + 1).astype(int).tolist()
    return list(itertools.pairwise(stops))


def _drain(pending: "deque[Callable[[], None]]") -> None:
    while True:
        try:
            piece = pending.popleft()
        except IndexError:
            return
        piece()
