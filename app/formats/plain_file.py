"""Decompresses files (gzip, bzip2, zstd, xz) and converts text to UTF-8.

The compression is detected from the first bytes, never from the name. The file is unpacked once, into a file without a
name that is gone when the process ends, however it ends. So every parser reads a plain file, from any offset.
"""

import bz2
import codecs
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from app.formats.table import FormatError, row_error

BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 10
_XZ_MEMORY = 256 << 20
# what follows the end of a member is copied at each end, and a member may have twenty bytes
_PIECE_BYTES = 1 << 14
# of so many bytes one may be zero in a text
_ZEROS = 4
# a small file may well repeat itself a thousand times
_RATIO_FROM = 64 << 20

_GZIP, _ZSTD, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"
# a block follows at once, or in an empty file the end of the stream
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_UTF16, _UTF32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


@dataclass(frozen=True)
class MostUnpacked:
    """Limits of a decompressed file.

    Attributes
    ----------
    n_bytes : int
        Most bytes after unpacking.
    ratio : float
        How many times its own size a file may come to, once that is more than 64 MiB.
    """

    n_bytes: int = 32 << 30
    ratio: float = 250.0

    def check(self, total: int, size: int, row: int = 1) -> None:
        """Raise FormatError where a file of ``size`` bytes has come to too many, by the row ``row``."""
        if total > self.n_bytes:
            raise row_error(row, f"the file decompresses to more than {self.n_bytes:,} bytes")
        if total > _RATIO_FROM and total > self.ratio * size:
            raise row_error(row, f"the file decompresses to more than {self.ratio:g} times its size")


def compression_of(head: bytes) -> str | None:
    """gzip, bzip2, zstd or xz, by the first ten bytes of a file; None for anything else."""
    if _BZIP2.match(head):
        return "bzip2"
    for name, magic in (("gzip", _GZIP), ("zstd", _ZSTD), ("xz", _XZ)):
        if head.startswith(magic):
            return name
    return None


@contextmanager
def plain_file(
    path: Path, most: MostUnpacked | None = None, encoding: str = "utf-8", folder: Path | None = None
) -> Iterator[Path]:
    """A path of the same content, unpacked and in UTF-8, to be used within the context.

    Parameters
    ----------
    most : MostUnpacked, optional
        What a compressed file may come to; a file that comes to more is refused while it is unpacked.
    encoding : str
        That of the text; never guessed. A text in UTF-8 is not looked at here: its reader names faulty lines.
    folder : Path, optional
        Where it is unpacked; default: beside the file.

    Raises
    ------
    FormatError
        The file is damaged, comes to too much, is compressed twice, or is no text in that encoding.
    """
    with path.open("rb") as file:
        kind = compression_of(file.read(_HEAD_BYTES))
    same = codecs.lookup(encoding).name == "utf-8"
    if kind is None and same:
        yield path
        return
    with tempfile.TemporaryFile(dir=folder or path.parent) as target:
        blocks = _unpacked(path, kind, most or MostUnpacked())
        for block in blocks if same else _recoded(blocks, encoding):
            target.write(block)
        target.flush()
        yield Path(f"/proc/self/fd/{target.fileno()}")


def head_of(path: Path, n_bytes: int) -> bytes:
    """The first bytes of a file's unpacked content, at most `n_bytes`; raises FormatError where it is damaged."""
    with path.open("rb") as file:
        kind = compression_of(file.read(_HEAD_BYTES))
    head = b""
    for block in _unpacked(path, kind, MostUnpacked()):
        head += block
        if len(head) >= n_bytes:
            break
    return head[:n_bytes]


def first_bytes(path: Path, n_bytes: int) -> bytes:
    """As :func:`head_of`, of a file whose end may be missing; raises FormatError where nothing can be unpacked."""
    with path.open("rb") as file:
        kind = compression_of(file.read(_HEAD_BYTES))
    head = b""
    try:
        for block in _unpacked(path, kind, MostUnpacked()):
            head += block
            if len(head) >= n_bytes:
                break
    except FormatError:
        if not head:
            raise
    return head[:n_bytes]


def is_xml_in_utf16(head: bytes) -> bool:
    """Whether a file begins like XML in UTF-16, with its byte order mark: parsers of XML read that by themselves."""
    if head.startswith(_UTF32) or not head.startswith(_UTF16):
        return False
    return head[: len(head) // 2 * 2].decode("utf-16", "replace").lstrip().startswith("<")


def check_text(head: bytes, *, has_encoding: bool = False) -> None:
    """Refuse a text whose first bytes show that it is not in UTF-8.

    Parameters
    ----------
    has_encoding : bool
        Whether an option names the encoding of such a file.
    """
    if head.startswith(_UTF32):
        raise row_error(1, "the file begins with the byte order mark of UTF-32; save it as UTF-8")
    if head.startswith(_UTF16):
        way = "pass encoding=utf-16, or save it as UTF-8" if has_encoding else "save it as UTF-8"
        raise row_error(1, f"the file begins with the byte order mark of UTF-16: {way}")
    if b"\0" in head and not _is_utf8(head):
        raise row_error(1, "the file is not a text: it has zero bytes and is not in UTF-8; save the table as CSV")
    # letters of most languages have a zero beside them there
    if head.count(0) * _ZEROS >= len(head) > 0:
        way = f"{_without_mark(head)}, or save it as UTF-8" if has_encoding else "save it as UTF-8"
        raise row_error(1, f"the file has zero bytes like UTF-16 but no byte order mark: {way}")


def check_mark(head: bytes) -> None:
    """Refuse a text in UTF-16 whose first bytes do not say the order of its bytes."""
    if head and not head.startswith(_UTF16):
        raise row_error(
            1,
            "the file does not begin with the byte order mark of UTF-16: if it is in UTF-16, "
            f"{_without_mark(head)}; else pass its own encoding",
        )


def _without_mark(head: bytes) -> str:
    """The option that reads a text in UTF-16 without a mark; the zeros of most letters are in their second half."""
    order = "be" if head[::2].count(0) > head[1::2].count(0) else "le"
    return f"pass encoding=utf-16-{order}"


def _is_utf8(head: bytes) -> bool:
    """Whether the beginning of a file is valid UTF-8, where its last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _unpacked(path: Path, kind: str | None, most: MostUnpacked) -> Iterator[bytes]:
    with path.open("rb") as file:
        if kind is None:
            while block := file.read(BLOCK_BYTES):
                yield block
            return
        size, total = os.fstat(file.fileno()).st_size, 0
        try:
            for block in _READERS[kind](file):
                if total == 0 and compression_of(block) is not None:
                    raise row_error(1, f"the file is {compression_of(block)} within {kind}: compress it once")
                total += len(block)
                most.check(total, size)
                yield block
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk, not of the data
            raise row_error(
                1, f"the {kind} data are damaged or end too early: copy or download the file again"
            ) from error


def _gunzipped(file: BinaryIO) -> Iterator[bytes]:
    """Members one after another, as `gzip -c a b` writes them; zeros may follow the last."""
    data, unpacker = file.read(_PIECE_BYTES), zlib.decompressobj(wbits=31)
    while True:
        yield unpacker.decompress(data, BLOCK_BYTES)
        data = unpacker.unconsumed_tail
        if unpacker.eof:
            data = unpacker.unused_data.lstrip(b"\0")
            while not data and (more := file.read(_PIECE_BYTES)):
                data = more.lstrip(b"\0")
            if not data:
                return
            unpacker = zlib.decompressobj(wbits=31)
        elif not data:
            data = file.read(_PIECE_BYTES)
            if not data:
                rest = unpacker.flush(BLOCK_BYTES)
                if not unpacker.eof:
                    raise EOFError
                yield rest
                return


def _unxzed(file: BinaryIO) -> Iterator[bytes]:
    """Streams one after another, with zeros between them; a dictionary takes a bounded memory."""
    unpacker, data = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY), b""
    while True:
        if unpacker.eof:
            data = unpacker.unused_data.lstrip(b"\0")
            while not data and (more := file.read(_PIECE_BYTES)):
                data = more.lstrip(b"\0")
            if not data:
                return
            unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
        elif unpacker.needs_input and not data:
            data = file.read(_PIECE_BYTES)
            if not data:
                raise EOFError
        block = unpacker.decompress(data, BLOCK_BYTES)
        data = b""
        yield block


def _unbzipped(file: BinaryIO) -> Iterator[bytes]:
    """Streams one after another, as pbzip2 writes them; a block has at most 900 kB."""
    unpacker, data = bz2.BZ2Decompressor(), b""
    while True:
        if unpacker.eof:
            data = unpacker.unused_data or file.read(_PIECE_BYTES)
            if not data:
                return
            unpacker = bz2.BZ2Decompressor()
        elif unpacker.needs_input:
            data = file.read(_PIECE_BYTES)
            if not data:
                raise EOFError
        block = unpacker.decompress(data, BLOCK_BYTES)
        data = b""
        yield block


def _unzstded(file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


_READERS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "gzip": _gunzipped,
    "bzip2": _unbzipped,
    "xz": _unxzed,
    "zstd": _unzstded,
}


def _recoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The text in UTF-8; raises FormatError with the line that is not in the encoding."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    try:
        for block in blocks:
            text = decoder.decode(block)
            line += text.count("\n")
            yield text.encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError):
            whole = codecs.getincrementaldecoder(encoding)("replace").decode(error.object[: error.start])
            line += whole.count("\n")
        raise row_error(line, f"not valid {encoding}") from None
