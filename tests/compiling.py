"""Compiled code without the memory that compiling it takes.

What LLVM takes to compile a function, some 3 MB, a process never gives back: one that compiles all functions grows by a
gigabyte. So each is compiled by a child process, which keeps the code on the disk, where its parent finds it, and so do
other processes of the tests that would have compiled it at the same time.
"""

import fcntl
import gc
import os
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from solvers.compilation import linked_code  # which says how functions are compiled

_compile = Dispatcher.compile


def compile_in_children() -> None:
    """From now on this process compiles what is kept on the disk in children of its own."""
    Dispatcher.compile = _compile_in_child


def _compile_in_child(self: Any, signature: Any) -> Any:
    if isinstance(self._cache, FunctionCache):
        # the lock keeps other threads out of the compiler while the process is copied
        with global_compiler_lock:
            if not linked_code.is_compiling() and not _is_kept(self, signature):
                with _alone(self):
                    if not _is_kept(self, signature):
                        self.typingctx.refresh()
                        self.targetctx.refresh()
                        _run_in_child(self, signature)
    # finds the code on the disk; what could not be compiled fails once more, here where it is seen
    return _compile(self, signature)


@contextmanager
def _alone(dispatcher: Any) -> Iterator[None]:
    """No other process compiles the function meanwhile; one that has waited finds it on the disk."""
    dispatcher._cache._impl.locator.ensure_cache_path()
    with Path(dispatcher._cache.cache_path, f".{dispatcher.py_func.__name__}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_kept(dispatcher: Any, signature: Any) -> bool:
    cache = dispatcher._cache
    return cache._index_key(signature, dispatcher.targetctx.codegen()) in cache._cache_file._load_index()


def _run_in_child(dispatcher: Any, signature: Any) -> None:
    with warnings.catch_warnings():
        # later versions of Python warn of threads, none of which the compiler needs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        # what the parent's objects and the tracing of its memory cost, the child need not pay
        tracemalloc.stop()
        gc.disable()
        Dispatcher.compile = _compile
        _compile(dispatcher, signature)
    finally:
        os._exit(0)
