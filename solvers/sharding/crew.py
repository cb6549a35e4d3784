"""A few threads that share out the pieces of one phase; who does which piece never shows in the result."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType


class Crew:
    """The calling thread and ``size - 1`` others; pieces are calls of kernels that release the interpreter's lock."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size - 1, "crew") if size > 1 else None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, pieces: Iterable[Callable[[], None]]) -> "Phase":
        """Let the others begin on ``pieces``; the caller joins in with :meth:`Phase.finish`."""
        queue = deque(pieces)
        if self._pool is None:
            return Phase(queue, [])
        return Phase(queue, [self._pool.submit(_drain, queue) for _ in range(min(self.size - 1, len(queue)))])

    def run(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Do all pieces and return when the last is done."""
        self.start(pieces).finish()


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


def _drain(queue: "deque[Callable[[], None]]") -> None:
    while True:
        try:
            piece = queue.popleft()
        except IndexError:
            return
        piece()
