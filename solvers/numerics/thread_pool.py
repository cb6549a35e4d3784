"""A few threads that share out the pieces of one phase; who does which piece never shows in the result.

Pieces are calls of kernels, of a millisecond or so, or belong to a loop within one kernel, of a microsecond: see
:mod:`solvers.numerics.parallel_for`.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from solvers.numerics import parallel_for

# some milliseconds without anything to do
PATIENCE = 100_000


class Crew:
    """The calling thread and ``size - 1`` others; pieces are calls of kernels that release the interpreter's lock."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size - 1, "crew") if size > 1 else None
        self._board = np.zeros(parallel_for.BOARD, np.int64)
        self._serving: list[Future[int]] = []

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._dismiss()
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def board(self) -> NDArray[np.int64]:
        """To be given to a kernel that shares out its loops: for some milliseconds, the others look out for them."""
        if self._pool is not None:
            self._serving = [helper for helper in self._serving if not helper.done()]
            for _ in range(self.size - 1 - len(self._serving)):
                self._serving.append(self._pool.submit(parallel_for.serve, self._board, PATIENCE))
        return self._board

    def _dismiss(self) -> None:
        """Have the others look out for loops no more."""
        self._board[parallel_for.LEAVE] = 1
        for helper in self._serving:
            helper.result()
        self._board[parallel_for.LEAVE] = 0
        self._serving = []

    def start(self, pieces: Iterable[Callable[[], None]]) -> "Phase":
        """Let the others begin on ``pieces``; the caller joins in with :meth:`Phase.finish`."""
        queue = deque(pieces)
        if self._serving:
            self._dismiss()
        if self._pool is None:
            return Phase(queue, [])
        return Phase(queue, [self._pool.submit(_drain, queue) for _ in range(min(self.size - 1, len(queue)))])

    def run(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Do all pieces and return when the last is done."""
        if self._pool is not None:
            self.start(pieces).finish()
            return
        for piece in pieces:
            piece()


class Phase:
    """Pieces under way."""

    def __init__(self, queue: "deque[Callable[[], None]]", others: "list[Future[None]]") -> None:
        self._queue = queue
        self._others = others

    def finish(self) -> None:
        """Help with what is left and return when the last piece is done; raises what a piece has raised."""
        _drain(self._queue)
        for other in self._others:
            other.result()


def pieces(length: int, n: int) -> list[tuple[int, int]]:
    """Up to n ranges as long as each other, none of them empty."""
    if n == 1 and length > 0:
        return [(0, length)]
    stops = np.linspace(0, length, min(n, length) + 1).astype(int).tolist()
    return list(itertools.pairwise(stops))


def _drain(queue: "deque[Callable[[], None]]") -> None:
    while True:
        try:
            piece = queue.popleft()
        except IndexError:
            return
        piece()
