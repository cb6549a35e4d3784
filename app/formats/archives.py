"""The files in a zip or tar archive, by name, within bounds: no links, and no path that leads out of it.

Nothing is unpacked to a name of the archive's choosing. Sizes are checked before anything is read.
"""

import errno
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from app.formats.plain_file import BLOCK_BYTES, MostUnpacked
from app.formats.table import row_error, shorten

MOST_FILES = 200_000

_BLOCK = 512
_MOST_HEADER_BYTES = 1 << 16
_PATH = re.compile(rb"(?:^|\n)\d+ path=([^\n]*)\n")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError)


class Archive:
    """Its files.

    Attributes
    ----------
    sizes : dict of str to int
        Bytes of each file by its name, in the order of the archive; hidden files and folders are left out.
    """

    def __init__(self, sizes: dict[str, int], open_: Callable[[str], BinaryIO]) -> None:
        self.sizes = sizes
        self._open = open_

    def blocks(self, name: str) -> Iterator[bytes]:
        """The content of a file, piece by piece; raises FormatError where it is damaged."""
        left = self.sizes[name]
        try:
            with self._open(name) as file:
                while left > 0 and (block := file.read(min(left, BLOCK_BYTES))):
                    left -= len(block)
                    yield block
                if left == 0 and isinstance(file, zipfile.ZipExtFile):
                    file.read(1)  # at the end the checksum is compared
        except _DAMAGED as error:
            raise row_error(1, f"'{shorten(name)}' in the archive is damaged") from error
        if left > 0:
            raise row_error(1, f"'{shorten(name)}' in the archive ends too early")


@contextmanager
def opened_archive(path: Path, most: MostUnpacked) -> Iterator[Archive]:
    """A zip or tar archive, to be used within the context.

    Raises
    ------
    FormatError
        The archive is damaged, is encrypted, has links or paths that lead out of it, or comes to too much.
    """
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            try:
                with zipfile.ZipFile(file) as archive:
                    yield Archive(_zip_sizes(archive, most, path), lambda name: _zip_file(archive, name))
            except _DAMAGED as error:
                raise row_error(1, "the zip archive is damaged or ends too early") from error
        else:
            sizes, places = _tar_sizes(file)
            yield Archive(sizes, lambda name: _tar_file(path, places[name]))


def _zip_file(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    try:
        opened: BinaryIO = archive.open(name)  # type: ignore[assignment]
    except OSError as error:
        if error.errno == errno.EINVAL:
            # the place of the file is before the archive's begin
            raise zipfile.BadZipFile(str(error)) from error
        raise
    return opened


def _zip_sizes(archive: zipfile.ZipFile, most: MostUnpacked, path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for entry in archive.infolist():
        if not entry.filename:
            raise zipfile.BadZipFile("a file has no name")
        mode = entry.external_attr >> 16
        if stat.S_ISLNK(mode):
            raise row_error(1, f"'{shorten(entry.filename)}' in the archive is a link")
        if entry.flag_bits & 1:
            raise row_error(1, f"'{shorten(entry.filename)}' in the archive is encrypted")
        if not entry.is_dir():
            _take(sizes, entry.filename, entry.file_size)
    most.check(sum(sizes.values()), os.stat(path).st_size)
    return sizes


def _tar_sizes(file: BinaryIO) -> tuple[dict[str, int], dict[str, int]]:
    sizes: dict[str, int] = {}
    places: dict[str, int] = {}
    total = os.fstat(file.fileno()).st_size
    at, long_name = 0, b""
    while True:
        file.seek(at)
        header = file.read(_BLOCK)
        if len(header) < _BLOCK:  # a block of zeros is missing, which every archive has at its end
            raise row_error(1, "the tar archive is damaged or ends too early")
        if not header.strip(b"\0"):
            return sizes, places
        kind, digits = header[156:157], header[124:136].strip(b" \0")
        if not re.fullmatch(rb"[0-7]{0,12}", digits) or header[257:262] != b"ustar":
            raise row_error(1, f"the tar archive is damaged at byte {at:,}")
        size = int(digits or b"0", 8)
        begin = at + _BLOCK
        at = begin + -(-size // _BLOCK) * _BLOCK
        if begin + size > total:
            raise row_error(1, "the tar archive is damaged or ends too early")
        if kind in (b"x", b"g", b"L"):
            if size > _MOST_HEADER_BYTES:
                raise row_error(1, "the tar archive has a name that is too long")
            found = file.read(size)
            if kind == b"L":
                long_name = found.rstrip(b"\0")
            elif kind == b"x" and (given := _PATH.search(found)) is not None:
                long_name = given[1]
            continue
        name = (long_name or _ustar_name(header)).decode("utf-8", "replace")
        long_name = b""
        if kind in (b"0", b"\0", b"7") and not name.endswith("/"):
            _take(sizes, name, size)
            places[name.removeprefix("./")] = begin
        elif kind in (b"1", b"2"):
            raise row_error(1, f"'{shorten(name)}' in the archive is a link")
        elif kind != b"5" and not name.endswith("/"):
            raise row_error(1, f"'{shorten(name)}' in the archive is neither a file nor a folder")


def _ustar_name(header: bytes) -> bytes:
    name, prefix = (part.partition(b"\0")[0] for part in (header[:100], header[345:500]))
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _tar_file(path: Path, place: int) -> BinaryIO:
    file = path.open("rb")
    file.seek(place)
    return file


def _take(sizes: dict[str, int], name: str, size: int) -> None:
    plain = name.removeprefix("./")
    parts = PurePosixPath(plain).parts
    if not plain or plain.startswith("/") or ".." in parts or "\\" in plain or re.match(r"[A-Za-z]:", plain):
        raise row_error(
            1, f"the path '{shorten(name)}' leads out of the archive: pack the folder again from the one above it"
        )
    if any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return
    if plain in sizes:
        raise row_error(1, f"the archive has '{shorten(plain)}' twice")
    if len(sizes) >= MOST_FILES:
        raise row_error(1, f"the archive has more than {MOST_FILES:,} files")
    sizes[plain] = size
