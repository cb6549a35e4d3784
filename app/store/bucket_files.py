"""Files in object storage that speaks S3, each with a local copy where it is used.

A file is an object of the same path below the prefix, and folders of arrays are complete once their manifest is there:
it is uploaded last, names the SHA-256 of every array, and is what readers ask for first. Paths contain the ids of jobs
and attempts, so no object is ever replaced by another content, but for reports of errors. The database says which
folders exist; listings only find what nobody needs any more.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from app.store import ranges
from app.store.buckets import TRANSFERS, Bucket
from app.store.db import new_id
from app.store.files import MANIFEST, Files, Upload
from app.store.ranges import RangedFolder, RangedRows
from app.store.storage_counts import COUNTS
from solvers.core.artefact_files import file_digest

# Local copies used within this time stay, even above the limit: a process may be about to open them.
_IN_USE_SECONDS = 600.0
_LOCKS = 64


class BucketFiles(Files):
    """Files that are kept in a bucket; ``root`` has what is being written, and copies of what was used last.

    Parameters
    ----------
    root : Path
        A folder on a local disk, which the processes of one machine share.
    bucket : Bucket
    copies_bytes : int
        Copies are removed, those used least recently first, when all together are larger.
    """

    def __init__(self, root: Path, bucket: Bucket, copies_bytes: int) -> None:
        super().__init__(root)
        self.bucket, self._copies_bytes = bucket, copies_bytes

    @property
    def working(self) -> Files:
        return Files(self.root)

    def local(self, relative: str) -> Path:
        target, mark = self.path(relative), self._mark(relative)
        with contextlib.suppress(FileNotFoundError):
            os.utime(mark)  # before the look: what was just used is not removed
            if target.exists():
                return target
        with self._alone(relative):
            if not (mark.exists() and target.exists()):
                self._fetch(relative, target)
                self._note(relative)
        return target

    def publish(self, relative: str) -> None:
        source = self.path(relative)
        if source.is_dir():
            manifest = json.loads((source / MANIFEST).read_bytes())
            self._upload_folder(relative, manifest["arrays"], {})
        else:
            self.bucket.put(relative, source, file_digest(source))
        self._note(relative)

    def save_arrays(
        self,
        relative: str,
        arrays: Mapping[str, np.ndarray],
        manifest: Mapping[str, Any],
        shared: Mapping[str, str] | None = None,
    ) -> str:
        for folder in set((shared or {}).values()):
            self.local(folder)
        sha256 = super().save_arrays(relative, arrays, manifest, shared)
        hashes = json.loads((self.path(relative) / MANIFEST).read_bytes())["arrays"]
        try:
            self._upload_folder(relative, hashes, shared or {})
        except BaseException:
            shutil.rmtree(self.path(relative), ignore_errors=True)
            raise
        self._note(relative)
        return sha256

    def save_bytes(self, relative: str, content: bytes) -> None:
        self.bucket.put_bytes(relative, content)

    def put(self, relative: str, source: Path, sha256: str) -> None:
        self._put(relative, source, sha256)

    def sha256(self, relative: str) -> str | None:
        return self.bucket.sha256(relative)

    def read_bytes(self, relative: str) -> bytes:
        return self.bucket.get_bytes(relative)

    def ranged(self, relative: str) -> RangedFolder | None:
        if self.path(relative).exists():
            return None
        manifest = json.loads(self.bucket.get_bytes(f"{relative}/{MANIFEST}"))
        sizes = {path.removeprefix(f"{relative}/"): size for path, size, _ in self.bucket.listed(relative)}
        large = [name for name in manifest["arrays"] if f"{name}.npy{ranges.SUFFIX}" in sizes]
        if not large:
            return None
        others = [name for name in manifest["arrays"] if name not in large]
        if sum(sizes[f"{name}.npy"] for name in others) > ranges.MOST_BYTES:
            return None

        def read(name: str) -> np.ndarray:
            content = self.bucket.get_bytes(f"{relative}/{name}.npy")
            if hashlib.sha256(content).hexdigest() != manifest["arrays"][name]:
                raise ValueError(f"array {name} of {relative} is damaged")
            array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
            return array

        def open_rows(name: str) -> RangedRows:
            return RangedRows(self.bucket, f"{relative}/{name}.npy", manifest["arrays"][name])

        with ThreadPoolExecutor(TRANSFERS) as pool:
            small, rows = pool.map(read, others), pool.map(open_rows, large)
            return RangedFolder(manifest, dict(zip(others, small, strict=True)), dict(zip(large, rows, strict=True)))

    def manifest(self, relative: str) -> dict[str, Any]:
        with contextlib.suppress(FileNotFoundError):
            return Files.manifest(self.working, relative)
        return super().manifest(relative)

    def send(self, upload: Upload, relative: str) -> None:
        upload.finish()
        self.bucket.put(relative, upload.path, upload.sha256)

    def keep(self, upload: Upload, relative: str) -> None:
        if self.bucket.sha256(relative) != upload.sha256:
            self.send(upload, relative)
        super().keep(upload, relative)
        self._note(relative)

    def exists(self, relative: str) -> bool:
        return self.bucket.exists(f"{relative}/{MANIFEST}") or self.bucket.exists(relative)

    def names(self, folder: str, depth: int = 1) -> list[str]:
        if depth == 1:
            return self.bucket.names(folder)
        below = (path.removeprefix(f"{folder}/").split("/") for path, _, _ in self.bucket.listed(folder))
        return sorted({"/".join(parts[:depth]) for parts in below if len(parts) >= depth})

    @contextlib.contextmanager
    def opened(self, relative: str) -> Iterator[Path]:
        folder = self.path("incoming")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / new_id()
        try:
            self.bucket.get(relative, path)
            yield path
        finally:
            path.unlink(missing_ok=True)

    def sizes(self, relative: str) -> dict[str, int]:
        found = {path: size for path, size, _ in self.bucket.listed(relative)}
        if not found and self.bucket.exists(relative):
            found = {relative: self.local(relative).stat().st_size}
        return found

    def modified(self, relative: str) -> float:
        """When the youngest of its files was written, by the storage's clock; raises FileNotFoundError."""
        times = [written for _, _, written in self.bucket.listed(relative)]
        return max(times) if times else self.bucket.modified(relative)

    def now(self) -> float:
        path = f"incoming/{new_id()}"
        self.bucket.put_bytes(path, b"")
        try:
            return self.bucket.modified(path)
        finally:
            self.bucket.delete(path)

    def delete(self, relative: str) -> None:
        self.bucket.delete(relative)
        self._forget(relative)

    def _upload_folder(self, relative: str, hashes: Mapping[str, str], shared: Mapping[str, str]) -> None:
        """Upload arrays, then their manifest."""

        def upload(name: str) -> None:
            file = f"{relative}/{name}.npy"
            if name in shared:
                self.bucket.copy(f"{shared[name]}/{name}.npy", file)
            else:
                self._put(file, self.path(file), hashes[name])

        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(upload, hashes))
        manifest = f"{relative}/{MANIFEST}"
        self.bucket.put(manifest, self.path(manifest), file_digest(self.path(manifest)))

    def _put(self, relative: str, source: Path, sha256: str) -> None:
        """Upload a file; before a large array, the digests of its blocks."""
        if relative.endswith(".npy") and source.stat().st_size >= ranges.RANGED_BYTES:
            self.bucket.put_bytes(relative + ranges.SUFFIX, ranges.digests(source, sha256))
        self.bucket.put(relative, source, sha256)

    def _fetch(self, relative: str, target: Path) -> None:
        """Download a folder of arrays or a file to its place; raises FileNotFoundError and ValueError."""
        part = target.with_name(f".{target.name}.{new_id()}")
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            try:
                text = self.bucket.get_bytes(f"{relative}/{MANIFEST}")
            except FileNotFoundError:
                self.bucket.get(relative, part)
            else:
                part.mkdir()
                hashes = json.loads(text)["arrays"]
                with ThreadPoolExecutor(TRANSFERS) as pool:
                    list(pool.map(lambda name: self._get_array(relative, name, part, hashes[name]), hashes))
                (part / MANIFEST).write_bytes(text)
                shutil.rmtree(target, ignore_errors=True)
            os.rename(part, target)
        finally:
            Files.delete(self, part.relative_to(self.root).as_posix())

    def _get_array(self, relative: str, name: str, part: Path, sha256: str) -> None:
        self.bucket.get(f"{relative}/{name}.npy", part / f"{name}.npy", sha256)

    def _mark(self, relative: str) -> Path:
        """A file that is there while the local copy may be removed; its time is that of the copy's last use."""
        return self.root / ".copies" / quote(relative, safe="")

    def _note(self, relative: str) -> None:
        mark = self._mark(relative)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        self._shrink()

    def _forget(self, relative: str) -> None:
        prefix = quote(f"{relative}/", safe="")
        for mark in (self._mark(relative), *(self.root / ".copies").glob(f"{prefix}*")):
            mark.unlink(missing_ok=True)
        super().delete(relative)

    @contextlib.contextmanager
    def _alone(self, relative: str, *, wait: bool = True) -> Iterator[None]:
        """One thread of this machine fetches or removes a copy at a time; raises BlockingIOError if not to ``wait``."""
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / str(zlib.crc32(relative.encode()) % _LOCKS), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield

    def copies_bytes(self) -> int:
        return sum(self._copies().values())

    def _copies(self) -> dict[Path, int]:
        """The marks of all copies, and the sizes of these in bytes."""
        marks = [mark for mark in (self.root / ".copies").glob("*") if not mark.name.startswith(".")]
        return {mark: _size(self.path(unquote(mark.name))) for mark in marks}

    def _shrink(self) -> None:
        """Remove the copies used least recently while all are larger than allowed."""
        sizes = self._copies()
        total = sum(sizes.values())
        if total <= self._copies_bytes:
            return
        now = super().now()
        for mark in sorted(sizes, key=_time):
            if total <= self._copies_bytes or now - _time(mark) < _IN_USE_SECONDS:
                return
            relative = unquote(mark.name)
            # skip a copy that another process is fetching or has removed
            with contextlib.suppress(BlockingIOError, FileNotFoundError), self._alone(relative, wait=False):
                # A reader after this renaming fetches the copy again; one before it has renewed the time.
                away = mark.with_name(f".{mark.name}")
                mark.rename(away)
                if now - _time(away) < _IN_USE_SECONDS:
                    away.rename(mark)
                    continue
                Files.delete(self, relative)
                away.unlink()
                COUNTS.evicted()
                total -= sizes[mark]


def _time(mark: Path) -> float:
    try:
        return mark.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())
    except FileNotFoundError:
        return 0
