"""Copies of datasets' arrays on a machine's own disk: mapped from there, a shared folder is read once a machine."""

import fcntl
import os
import shutil
from pathlib import Path

from app.config import settings
from app.store.corpus import Corpus, open_corpus
from app.store.db import new_id
from app.store.disk_space import writing_to
from app.store.files import Files


def local_copy(store: Files, path: str) -> Files:
    """Files in which the folder ``path`` is at hand: the store itself, or a cache that has a checked copy of it.

    The copies used least recently go when all exceed ``POLYMARGIN_CACHE_BYTES``; mapped copies stay readable.

    Raises
    ------
    OSError, ValueError
        The folder cannot be read, or is damaged.
    """
    root = settings().cache
    if root is None or store.working is not store:
        return store
    cache = Files(root)
    target = cache.path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "a") as lock:
        # one process copies, the others of this machine wait for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            part = f"{path}.{new_id()}.part"
            try:
                with writing_to(target, sum(store.sizes(path).values())):
                    shutil.copytree(store.path(path), cache.path(part))
                cache.check(part)
                os.rename(cache.path(part), target)
            finally:
                cache.delete(part)
        os.utime(target)
        _shrink(root, target)
    return cache


def cached_corpus(store: Files, path: str) -> Corpus:
    """The rows of a dataset's version, mapped from this machine's own disk; raises as :func:`local_copy`."""
    return open_corpus(local_copy(store, path), path)


def _shrink(root: Path, kept: Path) -> None:
    copies = [folder.parent for folder in root.glob("*/*/*/manifest.json") if folder.parent.suffix != ".part"]
    sizes = {folder: sum(file.stat().st_size for file in folder.iterdir()) for folder in copies}
    for folder in sorted(copies, key=lambda folder: folder.stat().st_mtime):
        if sum(sizes.values()) <= settings().cache_bytes:
            return
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)
            del sizes[folder]
