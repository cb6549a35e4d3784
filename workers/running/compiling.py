"""Notices that loops are compiled while it happens, so that a job can say what it waits for."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_KIND = "numba:compile"  # of code that is found on the disk there is no such event


@contextmanager
def noticed(notice: Callable[[], None]) -> Iterator[None]:
    """Call ``notice`` whenever this thread begins to compile a function; what it raises leaves the compiled call."""
    listener = _Listener(notice)
    event.register(_KIND, listener)
    try:
        yield
    finally:
        event.unregister(_KIND, listener)


class _Listener(event.Listener):  # type: ignore[misc]
    """Hears of all threads, and of processes that were forked meanwhile."""

    def __init__(self, notice: Callable[[], None]) -> None:
        self._notice, self._here = notice, (os.getpid(), threading.get_ident())

    def on_start(self, event: Any) -> None:
        if (os.getpid(), threading.get_ident()) == self._here:
            self._notice()

    def on_end(self, event: Any) -> None:
        """Ignored: the next step shows that compilation has ended."""
