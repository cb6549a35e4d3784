"""Files on disk: uploads, and folders of arrays that appear whole or not at all."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from app.config import settings
from app.store.db import new_id
from app.store.disk_space import writing_to
from app.store.ranges import RangedFolder
from solvers.core.artefact_files import file_digest, read_array, sync_folder

MANIFEST = "manifest.json"


class Files:
    """The installation's files under ``root``; every path is made from ids, never from names that users gave."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, relative: str) -> Path:
        """The place of a path as the database keeps it."""
        return self.root / relative

    @property
    def working(self) -> "Files":
        """Files of this machine alone, for what nobody else will read."""
        return self

    def local(self, relative: str) -> Path:
        """The place on this machine of a folder of arrays or a file that was published."""
        return self.path(relative)

    def publish(self, relative: str) -> None:
        """Let other machines read the folder of arrays or the file that was written at :meth:`path`."""

    def exists(self, relative: str) -> bool:
        """Whether there is such a file or folder of arrays, on any machine."""
        return self.path(relative).exists()

    def names(self, folder: str, depth: int = 1) -> list[str]:
        """Names of what is in a folder, or ``NAME/NAME`` at depth 2, sorted; none where there is no such folder."""
        place = self.path(folder)
        return sorted(path.relative_to(place).as_posix() for path in place.glob("/".join(["*"] * depth)))

    def sizes(self, relative: str) -> dict[str, int]:
        """The files of a folder, or a file: paths and sizes in bytes, without what is being written."""
        place = self.path(relative)
        found: dict[str, int] = {}
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if not any(part.startswith(".") for part in path.relative_to(self.root).parts):
                with contextlib.suppress(FileNotFoundError):
                    if not stat.S_ISDIR((status := path.stat()).st_mode):
                        found[path.relative_to(self.root).as_posix()] = status.st_size
        return found

    def modified(self, relative: str) -> float:
        """When a file or folder was changed, by the clock of :meth:`now`; raises FileNotFoundError."""
        return self.path(relative).stat().st_mtime

    def now(self) -> float:
        """The time by the clock that files are stamped with: on a disk of the network that is not this machine's."""
        self.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.root) as file:
            return os.fstat(file.fileno()).st_mtime

    def upload(self, workspace: str | None = None) -> "Upload":
        """Begin to receive a file, which counts as one of ``workspace``."""
        folder = self.root / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        return Upload(folder / (new_id() if workspace is None else f"{new_id()}@{workspace}"))

    def incoming_bytes(self, workspace: str) -> int:
        """Bytes of the files that are received for ``workspace``, by any process that still runs."""
        sizes = 0
        for path in self.path("incoming").glob(f"*@{workspace}"):
            with contextlib.suppress(FileNotFoundError):
                sizes += 0 if is_abandoned(path) else path.stat().st_size
        for path in self.path("uploads").glob(f"*@{workspace}/part"):
            with contextlib.suppress(FileNotFoundError):
                sizes += path.stat().st_size
        return sizes

    def manifest(self, relative: str) -> dict[str, Any]:
        """The manifest of a folder that :meth:`save_arrays` made."""
        manifest: dict[str, Any] = json.loads(self.read_bytes(f"{relative}/{MANIFEST}"))
        return manifest

    def save_arrays(
        self,
        relative: str,
        arrays: Mapping[str, np.ndarray],
        manifest: Mapping[str, Any],
        shared: Mapping[str, str] | None = None,
    ) -> str:
        """Write ``arrays`` as .npy files and ``manifest`` as JSON into the new folder ``relative``.

        Parameters
        ----------
        shared : mapping of str to str, optional
            Further arrays by name: the folder that has each, and whose file becomes this folder's as well (a hard link;
            a copy where the file system has none). Either folder may be deleted.

        Returns
        -------
        str
            SHA-256 of the manifest, which names the SHA-256 of every array.

        Raises
        ------
        FileExistsError
            The folder is there already.
        """
        target = self.path(relative)
        if target.exists():
            raise FileExistsError(f"{relative} exists")
        temporary = target.with_name(f".{target.name}.{new_id()}")
        try:
            with writing_to(target, sum(array.nbytes for array in arrays.values())):
                temporary.mkdir(parents=True)
                hashes = {name: _save_array(temporary / f"{name}.npy", array) for name, array in arrays.items()}
                for name, folder in (shared or {}).items():
                    _share(self.path(folder) / f"{name}.npy", temporary / f"{name}.npy")
                    hashes[name] = self.manifest(folder)["arrays"][name]
                text = json.dumps({**manifest, "arrays": hashes}, ensure_ascii=False, separators=(",", ":")).encode()
                with open(temporary / MANIFEST, "wb") as file:
                    file.write(text)
                    _sync(file)
                sync_folder(temporary)
                os.rename(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(target.parent)
        return hashlib.sha256(text).hexdigest()

    def save_bytes(self, relative: str, content: bytes) -> None:
        """Write a file that appears whole, in the place of what is there."""
        target = self.path(relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{new_id()}")
        try:
            with writing_to(target, len(content)), open(temporary, "xb") as file:
                file.write(content)
                _sync(file)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)

    def put(self, relative: str, source: Path, sha256: str) -> None:
        """Copy a file to its place, in which it appears whole; ``sha256`` is that of its content."""
        target = self.path(relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{new_id()}")
        try:
            with writing_to(target, source.stat().st_size):
                shutil.copyfile(source, temporary)
                with open(temporary, "rb+") as file:
                    _sync(file)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(target.parent)

    def sha256(self, relative: str) -> str | None:
        """SHA-256 of a file that is kept; None where there is none."""
        with contextlib.suppress(FileNotFoundError):
            return file_digest(self.path(relative))
        return None

    def read_bytes(self, relative: str) -> bytes:
        """The content of a file; raises FileNotFoundError."""
        return self.path(relative).read_bytes()

    def send(self, upload: "Upload", relative: str) -> None:
        """Do what takes long of :meth:`keep`, before a transaction in which that is called."""

    def keep(self, upload: "Upload", relative: str) -> None:
        """Finish an upload, and put it in its place."""
        target = self.path(relative)
        new = not target.parent.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        upload.move(target)
        if new:
            sync_folder(target.parent.parent)

    def copies_bytes(self) -> int:
        """Bytes of the copies on this machine of files that are kept elsewhere."""
        return 0

    def ranged(self, relative: str) -> RangedFolder | None:
        """A folder whose large arrays can be read by rows before they are on this machine; None where that is no use.

        Raises
        ------
        FileNotFoundError
            There is no such folder.
        ValueError
            A file is damaged.
        """
        return None

    def load_arrays(
        self, relative: str, mmap: bool = True, sha256: str | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays (memory-mapped, read-only, unless ``mmap`` is False) and the manifest of a folder.

        Parameters
        ----------
        sha256 : str, optional
            What :meth:`save_arrays` returned: then every byte is compared with what was written.

        Raises
        ------
        OSError
            A file is not there.
        ValueError
            A file is damaged.
        """
        folder = self.local(relative)
        text = (folder / MANIFEST).read_bytes()
        manifest: dict[str, Any] = json.loads(text)
        if sha256 is not None:
            if hashlib.sha256(text).hexdigest() != sha256:
                raise ValueError(f"the manifest of {relative} is damaged")
            self.check(relative)
        arrays = {name: read_array(folder / f"{name}.npy", mmap=mmap) for name in manifest["arrays"]}
        return arrays, manifest

    @contextlib.contextmanager
    def opened(self, relative: str) -> Iterator[Path]:
        """The file as it is kept, not a copy that was made for reading."""
        yield self.path(relative)

    def check(self, relative: str) -> None:
        """Compare the arrays of a folder with its manifest; raises ValueError where one is damaged."""
        for name, digest in json.loads(self.read_bytes(f"{relative}/{MANIFEST}"))["arrays"].items():
            with self.opened(f"{relative}/{name}.npy") as path:
                if file_digest(path) != digest:
                    raise ValueError(f"array {name} of {relative} is damaged")

    def delete(self, relative: str) -> None:
        """Remove a file or folder, if it is there."""
        path = self.path(relative)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class Upload:
    """A file at ``path`` while it is received: hashed on the way, durable once finished.

    It is locked until it is moved or forgotten. The system releases the lock when the process dies, however it does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hash = hashlib.sha256()
        self._sha256: str | None = None
        self._file: BinaryIO | None = open(path, "xb")  # noqa: SIM115 - closed by move or abort
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._finished = False
        self.size_bytes = 0

    @classmethod
    def of_file(cls, path: Path, sha256: str, size_bytes: int) -> "Upload":
        """A file that was received already."""
        upload = cls.__new__(cls)
        upload.path, upload._file, upload._sha256, upload.size_bytes = path, None, sha256, size_bytes
        upload._finished = True
        return upload

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes received so far."""
        return self._sha256 or self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append ``chunk``."""
        if self._file is None or self._finished:
            raise ValueError("the upload is finished")
        with writing_to(self.path):
            self._file.write(chunk)
        self._hash.update(chunk)
        self.size_bytes += len(chunk)

    def finish(self) -> None:
        """Flush to the disk; a second call does nothing."""
        if self._file is not None and not self._finished:
            with writing_to(self.path):
                _sync(self._file)
            self._finished = True

    def abort(self) -> None:
        """Forget the file."""
        self.path.unlink(missing_ok=True)
        self._close()

    def move(self, target: Path) -> None:
        """Finish, and move the file to its place in a folder that is there."""
        self.finish()
        os.rename(self.path, target)
        self._close()
        sync_folder(target.parent)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # what is still to be written may find no room
                self._file.close()
            self._file = None


def is_abandoned(path: Path) -> bool:
    """Whether the process that received the file has died; raises FileNotFoundError."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def files() -> Files:
    """The files of this installation."""
    return files_at(settings().files)


def files_at(address: str) -> Files:
    """The files in a bucket, ``s3://bucket/prefix``, or in the data folder if the address is empty.

    Raises SettingsError where the address is none, or the client of buckets is not installed.
    """
    found = settings()
    if not address:
        return Files(found.files_folder)
    from app.store.bucket_files import BucketFiles
    from app.store.buckets import Bucket

    bucket = Bucket(address, found.files_endpoint or None)
    return BucketFiles(found.cache or found.files_folder, bucket, found.cache_bytes)


class _Hashing:
    """A file that hashes what is written through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)


def _save_array(path: Path, array: np.ndarray) -> str:
    with open(path, "wb") as file:
        hashing = _Hashing(file)
        np.lib.format.write_array(hashing, np.asanyarray(array), allow_pickle=False)
        _sync(file)
    return hashing.hash.hexdigest()


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        with open(target, "rb+") as file:
            _sync(file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
