"""Where compiled code is kept: beside its source, under a digest of every file that it may have been compiled from.

Compiled functions inline those of other files. Numba knows a compiled function by the contents of its own file alone,
so that after a change elsewhere the old code would still be run, and a type that is gone would break the reading of the
index. Here the digest is of the file and of all files of this package that it imports, directly or not, and of the one
that says how functions are compiled (``linked_code.py``): whatever may be in the compiled code is in the digest, and a
change of any other file leaves the compiled code in use.

Several processes compile at a time, and numba lets two of them give one file to two signatures of a function: the index
then names one and the file has the other, which is called with arrays of other types. Here one saves at a time.

Where nothing can be written, as in a container whose files are read-only, what was saved before is read, and a process
keeps to itself what it compiles. Numba alone refuses to import the function.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import (
    CacheImpl,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    _CacheLocator,
)

_PACKAGE = __name__.rpartition(".compilation.")[0]
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT)
_IMPORTS = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.MULTILINE)


@cache
def imported_files(path: Path, root: Path) -> frozenset[Path]:
    """The files of the package in the folder ``root`` that a file of it imports, without those that these import."""
    found: set[Path] = set()
    for package, names, module in _IMPORTS.findall(path.read_text(encoding="utf-8")):
        members = [name.split()[0] for name in re.sub(r"[()]|#[^\n]*", "", names).split(",") if name.split()]
        for dotted in (module, package, *(f"{package}.{member}" for member in members)):
            if dotted == _PACKAGE or dotted.startswith(
                f"{_PACKAGE}."
            ):  # a process that trains looks at hundreds of others
                place = root.joinpath(*dotted.removeprefix(_PACKAGE).split("."))
                found.update((place.with_suffix(".py"), place / "__init__.py"))
    return frozenset(file for file in found if file.is_file())


@cache
def digest(path: Path, root: Path) -> str:
    """SHA-256 over a file, all files of its package that it imports, and the one that says how they are compiled."""
    closure, new = {path, root / "compilation" / "linked_code.py"}, {path}
    while new:
        new = {file for each in new for file in imported_files(each, root)} - closure
        closure |= new
    total = hashlib.sha256()
    for file in sorted(closure):
        total.update(f"{file.relative_to(root).as_posix()}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


class ImportedFilesLocator(_CacheLocator):  # type: ignore[misc]
    """Numba's place for the compiled functions of one file of this package; for all other files it has none."""

    root = Path(__file__).resolve().parents[1]

    def __init__(self, function: Any, file: str) -> None:
        path = Path(file).resolve()
        self._line = function.__code__.co_firstlineno
        self._digest = digest(path, self.root)
        if config.CACHE_DIR:
            base = Path(config.CACHE_DIR, *path.relative_to(self.root.parent).parent.parts)
        else:
            base = path.parent / "__pycache__"
            if not os.access(base if base.exists() else path.parent, os.W_OK):
                base = Path(UserWideCacheLocator(function, file).get_cache_path())
        self._folder = base / f"{path.stem}-{self._digest[:16]}"

    @classmethod
    def from_function(cls, function: Any, file: str) -> "ImportedFilesLocator | None":
        """The place for a function of a file; None where numba's own rules hold."""
        path = Path(file).resolve()
        if cls.root not in path.parents or not path.is_file():
            return None
        self = cls(function, file)
        self.ensure_cache_path()
        return self

    def ensure_cache_path(self) -> None:
        """Make the folder where that is possible; what the file's earlier contents were compiled to goes."""
        if not self._folder.is_dir():
            for old in self._folder.parent.glob(f"{self._folder.name[:-17]}-" + "?" * 16):
                if old != self._folder:  # which another process may have made since
                    shutil.rmtree(old, ignore_errors=True)
        with _perhaps_read_only():
            super().ensure_cache_path()

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)


class ReadOnlyLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """Numba's place for functions of other files below NUMBA_CACHE_DIR, if nothing can be written there."""

    def ensure_cache_path(self) -> None:
        """Nothing is made."""


@contextlib.contextmanager
def _perhaps_read_only() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise


def install() -> None:
    """Let numba keep this package's compiled functions so, and let one process at a time save to a folder."""
    if ImportedFilesLocator not in CacheImpl._locator_classes:
        CacheImpl._locator_classes[:] = [ImportedFilesLocator, *CacheImpl._locator_classes, ReadOnlyLocator]
        IndexDataCacheFile.save = _save_alone


_save = IndexDataCacheFile.save


def _save_alone(self: Any, key: Any, data: Any) -> None:
    """Name a file in the index and write it under a lock; a process that reads meanwhile compiles for itself."""
    with _perhaps_read_only(), Path(self._cache_path, ".saving").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _save(self, key, data)
