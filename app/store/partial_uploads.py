"""Files received in pieces: one folder per upload, in the folder of its workspace."""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.errors import Conflict, NotFound
from app.store.bucket_files import BucketFiles
from app.store.buckets import StorageAway
from app.store.db import new_id
from app.store.disk_space import writing_to
from app.store.files import Files, Upload
from solvers.core.artefact_files import sync_folder

FOLDER = "uploads"
_PART, _ABOUT, _LOCK = "part", "about.json", "lock"


class OffsetError(ValueError):
    """A piece does not begin where the bytes before it end, or another is being written; `offset` is that end."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the upload has {offset} bytes")
        self.offset = offset


@dataclass(frozen=True)
class Partial:
    """A partially received file.

    Attributes
    ----------
    size_bytes : int
        Of the whole file.
    sha256 : str or None
        Of the whole file, once it was used: then its bytes are elsewhere.
    """

    id: str
    folder: Path
    size_bytes: int
    sha256: str | None

    @property
    def offset(self) -> int:
        """Number of bytes received."""
        if self.sha256 is not None:
            return self.size_bytes
        with _there():
            return (self.folder / _PART).stat().st_size

    @property
    def changed_at(self) -> float:
        """When the last of them came, in seconds since 1970."""
        return last_change(self.folder)

    @contextmanager
    def piece(self, offset: int) -> Iterator["Piece"]:
        """Write the next piece; what was written stays, however the writing ends.

        Raises
        ------
        OffsetError
            It does not begin at the end of what has come, or another piece is being written.
        """
        with contextlib.ExitStack() as stack:
            with _there():
                file = stack.enter_context(open(self.folder / _PART, "r+b"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OffsetError(self.offset) from None
            end = file.seek(0, os.SEEK_END)
            if end != offset:
                raise OffsetError(end)
            yield Piece(file, offset, self.folder / _PART)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody else uses the upload, in any process; until the end of the block nobody else does."""
        with contextlib.ExitStack() as stack:
            with _there():
                file = stack.enter_context(open(self.folder / _LOCK, "ab"))
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def whole(self, files: Files) -> Upload:
        """The whole file as if it had come at once; what is done with it does nothing to this.

        Raises Conflict while a piece is being written: one that turns out to be damaged is cut off again.
        """
        incoming = files.path("incoming")
        incoming.mkdir(parents=True, exist_ok=True)
        path = incoming / new_id()
        with _there(), open(self.folder / _PART, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict("a piece of the upload is still being written") from None
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            os.link(self.folder / _PART, path)
        return Upload.of_file(path, sha256, self.size_bytes)

    @contextmanager
    def used(self, sha256: str) -> Iterator[None]:
        """Where no error leaves the block, forget the bytes, and remember their hash until the upload expires.

        The mark is written before the block and put in its place after it: what the block has committed is true on a
        disk that is full by then, and whatever else becomes of the mark.
        """
        if self.sha256 is not None:
            yield
            return
        about = self.folder / _ABOUT
        with _there():
            mark = _written_beside(about, {"size_bytes": self.size_bytes, "sha256": sha256})
        try:
            yield
        except BaseException:
            mark.unlink(missing_ok=True)
            raise
        with contextlib.suppress(OSError):  # others may have forgotten the upload meanwhile
            mark.replace(about)
            sync_folder(self.folder)
            (self.folder / _PART).unlink()


@dataclass(frozen=True)
class BucketPartial(Partial):
    """A partially received file in a bucket: an object for each piece, named by where the piece begins.

    Requests for one upload wait for each other on one machine only; on several machines the row that they add decides.
    """

    files: BucketFiles

    @classmethod
    def begun(cls, files: BucketFiles, workspace: str, id: str, size_bytes: int) -> "BucketPartial":
        """A file of which nothing has come."""
        path = f"{FOLDER}/{id}@{workspace}"
        files.bucket.put_bytes(f"{path}/{_ABOUT}", json.dumps({"size_bytes": size_bytes, "sha256": None}).encode())
        return cls(id, files.path(path), size_bytes, None, files)

    @classmethod
    def found(cls, files: BucketFiles, workspace: str, id: str) -> "BucketPartial | None":
        """The upload of that id."""
        path = f"{FOLDER}/{id}@{workspace}"
        try:
            about = json.loads(files.bucket.get_bytes(f"{path}/{_ABOUT}"))
        except FileNotFoundError:
            return None
        return cls(id, files.path(path), about["size_bytes"], about["sha256"], files)

    @property
    def offset(self) -> int:
        return self.size_bytes if self.sha256 is not None else sum(size for _, size in self._pieces())

    @property
    def changed_at(self) -> float:
        with _there():
            return self.files.modified(self._path)

    @contextmanager
    def piece(self, offset: int) -> Iterator["Piece"]:
        end = self.offset
        if end != offset:
            raise OffsetError(end)
        with tempfile.TemporaryFile() as file:
            piece = Piece(file, offset, Path(tempfile.gettempdir()))
            try:
                yield piece
            finally:
                file.seek(0)
                content = file.read()
                if content:
                    try:
                        self.files.bucket.put_new(f"{self._path}/{offset:020}", content)
                    except FileExistsError:
                        raise OffsetError(self.offset) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / _LOCK, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def whole(self, files: Files) -> Upload:
        upload = files.upload()
        try:
            with _there():
                for path, _ in self._pieces():
                    upload.write(self.files.bucket.get_bytes(path))
            upload.finish()
        except BaseException:
            upload.abort()
            raise
        return upload

    @contextmanager
    def used(self, sha256: str) -> Iterator[None]:
        yield
        if self.sha256 is None:
            about = json.dumps({"size_bytes": self.size_bytes, "sha256": sha256}).encode()
            with contextlib.suppress(StorageAway):  # what the block has committed is true, whatever becomes of the mark
                self.files.bucket.put_bytes(f"{self._path}/{_ABOUT}", about)
                for path, _ in self._pieces():
                    self.files.bucket.delete(path)

    @property
    def _path(self) -> str:
        return f"{FOLDER}/{self.folder.name}"

    def _pieces(self) -> list[tuple[str, int]]:
        """Path and size of the pieces that follow on one another."""
        found, end = [], 0
        for path, size, _ in sorted(self.files.bucket.listed(self._path)):
            if path.rpartition("/")[2] == f"{end:020}":
                found.append((path, size))
                end += size
        return found


@contextmanager
def _there() -> Iterator[None]:
    """Others may use or forget an upload at any moment."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound("the upload was used or discarded meanwhile") from None


class Piece:
    """The bytes of one piece, while they come."""

    def __init__(self, file: BinaryIO, begin: int, path: Path) -> None:
        self._file, self._start, self._path = file, file.seek(0, os.SEEK_CUR), path
        self._hash = hashlib.sha256()
        self._begin = self.end = begin

    def write(self, block: bytes) -> None:
        """Append to what has come."""
        with writing_to(self._path):
            self._file.write(block)
            self._file.flush()  # other processes read the file's size to count what has arrived
        self._hash.update(block)
        self.end += len(block)

    @property
    def sha256(self) -> bytes:
        """Of the piece."""
        return self._hash.digest()

    def flush(self) -> None:
        """Make what was written durable."""
        with writing_to(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def discard(self) -> None:
        """Discard the piece."""
        self._file.flush()
        self._file.truncate(self._start)
        self.end = self._begin


def begin(files: Files, workspace: str, size_bytes: int) -> Partial:
    """A file of so many bytes, of which none has come."""
    id = new_id()
    if isinstance(files, BucketFiles):
        return BucketPartial.begun(files, workspace, id, size_bytes)
    folder = files.path(f"{FOLDER}/{id}@{workspace}")
    folder.mkdir(parents=True)
    for name in (_PART, _LOCK):
        (folder / name).touch()
    about = folder / _ABOUT
    _written_beside(about, {"size_bytes": size_bytes, "sha256": None}).replace(about)
    sync_folder(folder)
    sync_folder(folder.parent)
    return Partial(id, folder, size_bytes, None)


def find(files: Files, workspace: str, id: str) -> Partial | None:
    """An upload of a workspace by its id."""
    if isinstance(files, BucketFiles):
        return BucketPartial.found(files, workspace, id)
    folder = files.path(f"{FOLDER}/{id}@{workspace}")
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
    except FileNotFoundError:
        return None
    return Partial(id, folder, about["size_bytes"], about["sha256"])


def number(files: Files, workspace: str) -> int:
    """How many uploads a workspace has, used or not."""
    return sum(name.endswith(f"@{workspace}") for name in files.names(FOLDER))


def unused_since(files: Files, moment: float) -> list[str]:
    """The folders of uploads of which nothing has come since a time, in seconds since 1970."""
    if isinstance(files, BucketFiles):
        changed = ((name, files.modified(f"{FOLDER}/{name}")) for name in files.names(FOLDER))
        return [f"{FOLDER}/{name}" for name, when in changed if when < moment]
    found = files.path(FOLDER).glob("*")
    return [f"{FOLDER}/{folder.name}" for folder in found if last_change(folder) < moment]


def last_change(folder: Path) -> float:
    """When the last bytes of the upload in a folder came, or it was begun, in seconds since 1970."""
    times = [time.time()]
    with contextlib.suppress(FileNotFoundError):
        times = [folder.stat().st_mtime]
    for name in (_PART, _ABOUT):
        with contextlib.suppress(FileNotFoundError):
            times.append((folder / name).stat().st_mtime)
    return max(times)


def _written_beside(path: Path, about: dict[str, object]) -> Path:
    """A durable file that only has to be renamed to ``path``."""
    temporary = path.with_name(f".{path.name}")
    try:
        with open(temporary, "wb") as file:
            file.write(json.dumps(about).encode())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
