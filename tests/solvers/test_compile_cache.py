"""Compiled code is taken from the cache exactly as long as nothing has changed that it was compiled from."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core.caching import IndexDataCacheFile

import solvers
from solvers.compilation import cache as compile_cache
from solvers.linear.steps import joint

INNER = "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + {}\n"
OUTER = """from numba import njit

from solvers.inner import (  # of another file
    f,
)


@njit(cache=True)
def g(x):
    return f(x)
"""
ASK = "from solvers.outer import g; print(g(1), sum(g.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of its own, with this one's cache and a function that calls another file's."""
    root = tmp_path / "solvers"
    root.mkdir()
    shutil.copy(Path(solvers.__file__).parent / "__init__.py", root)
    shutil.copytree(Path(solvers.__file__).parent / "compilation", root / "compilation")
    (root / "inner.py").write_text(INNER.format(1))
    (root / "outer.py").write_text(OUTER)
    (root / "other.py").write_text("")
    return root


# a function of a file outside of the package
ASK_OTHER = "from outside import h; print(h(1), sum(h.stats.cache_hits.values()))"
# as on a file system that is read-only, for root too
READ_ONLY = """
import builtins, errno, io, os, tempfile
def refuse(*_, **__): raise OSError(errno.EROFS, "Read-only file system")
real = io.open
def opened(file, mode="r", *more, **options):
    return refuse() if set(mode) & set("wax+") else real(file, mode, *more, **options)
tempfile.TemporaryFile = os.makedirs = os.mkdir = os.unlink = os.rmdir = refuse
builtins.open = io.open = opened
"""


def ask(root: Path, script: str = ASK, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    variables = {**inherited, "PYTHONPATH": str(root.parent), **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root.parent, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("folder", [None, "kept"])
def test_a_change_in_a_file_that_is_called_compiles_its_callers_anew_and_no_other_change_does(
    package, tmp_path, folder
):
    place = {} if folder is None else {"NUMBA_CACHE_DIR": str(tmp_path / folder)}
    assert ask(package, **place) == "2 0"
    assert ask(package, **place) == "2 1"
    (package / "other.py").write_text("# another")
    assert ask(package, **place) == "2 1"
    (package / "inner.py").write_text(INNER.format(2))
    assert ask(package, **place) == "3 0"
    base = package / "__pycache__" if folder is None else tmp_path / folder / "solvers"
    assert len(list(base.glob("outer-*"))) == 1, "what the earlier code was compiled to is gone"


@pytest.mark.slow
def test_a_cache_that_is_read_only_is_read_and_left_as_it_is(package: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(
        INNER.format(1).replace("numba", "solvers.compilation").replace("def f", "def h")
    )
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert ask(package, **place) == "2 0"
    assert ask(package, ASK_OTHER, **place) == "2 0"
    files = sorted((tmp_path / "kept").rglob("*"))
    assert ask(package, READ_ONLY + ASK, **place) == "2 1"
    assert ask(package, READ_ONLY + ASK_OTHER, **place) == "2 1"
    (package / "inner.py").write_text(INNER.format(2))
    assert ask(package, READ_ONLY + ASK, **place) == "3 0"
    assert sorted((tmp_path / "kept").rglob("*")) == files
    for script in (ASK, ASK_OTHER):
        assert ask(package, READ_ONLY + script, NUMBA_CACHE_DIR=str(tmp_path / "none")).endswith(" 0")


def test_every_compiled_function_of_the_package_is_kept_so():
    assert isinstance(joint.visit._cache._impl.locator, compile_cache.ImportedFilesLocator)
    root = Path(solvers.__file__).parent
    names = {file.name for file in compile_cache.imported_files(Path(joint.__file__), root)}
    assert {"block_step.py", "class_lists.py", "coefficients.py"} <= names


def test_two_that_save_at_once_leave_each_signature_its_own_code(tmp_path: Path) -> None:
    first, second = (IndexDataCacheFile(str(tmp_path), "function", "stamp") for _ in range(2))
    read, named, written = (threading.Event() for _ in range(3))

    def before(event: threading.Event, wait: threading.Event, save: Callable[..., None]) -> Callable[..., None]:
        def save_later(*args: Any) -> None:
            event.set()
            wait.wait(0.5)  # the holder of the lock waits without effect
            save(*args)

        return save_later

    # both have read the index before either writes it, and the file of the first comes last
    second._save_index = before(read, named, second._save_index)
    first._save_index = before(threading.Event(), read, first._save_index)
    first._save_data = before(named, written, first._save_data)

    def save_second() -> None:
        second.save("int64", "code for int64")
        written.set()

    threads = [
        threading.Thread(target=first.save, args=("int32", "code for int32")),
        threading.Thread(target=save_second),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh = IndexDataCacheFile(str(tmp_path), "function", "stamp")
    assert [fresh.load("int32"), fresh.load("int64")] == ["code for int32", "code for int64"]
