"""Compressed files and other encodings: the same content, or a refusal."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.formats import plain_file as plain_files
from app.formats.parsing import parse
from app.formats.plain_file import MostUnpacked, compression_of, head_of, plain_file
from app.formats.table import FormatError

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACKS = pytest.mark.parametrize("pack", [gzip.compress, zstd, lzma.compress], ids=["gzip", "zstd", "xz"])


def unpacked(path: Path, content: bytes, most: MostUnpacked | None = None, encoding: str = "utf-8") -> bytes:
    path.write_bytes(content)
    with plain_file(path, most, encoding) as plain:
        return plain.read_bytes()


def refusal(path: Path, content: bytes, most: MostUnpacked | None = None, encoding: str = "utf-8") -> str:
    with pytest.raises(FormatError) as refused:
        unpacked(path, content, most, encoding)
    return refused.value.errors[0].detail


@PACKS
def test_compressed_content_is_read_even_from_several_streams_in_a_row(tmp_path: Path, pack: Pack) -> None:
    data = os.urandom(1_100_000) + b"abc\n" * 600_000
    assert unpacked(tmp_path / "a", pack(data) + pack(b"end")) == data + b"end"
    assert head_of(tmp_path / "a", 10) == data[:10]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@PACKS
def test_compressed_rows_are_imported(tmp_path: Path, pack: Pack) -> None:
    path = tmp_path / "rows"
    path.write_bytes(pack(b"a 1:2\nb 2:1\n"))
    assert parse(path, "svmlight").labels == ["a", "b"]


@PACKS
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_damaged_data_are_refused(tmp_path_factory: pytest.TempPathFactory, pack: Pack, data: st.DataObject) -> None:
    whole = pack(b"a line of text\n" * 50)
    cut = data.draw(st.integers(8, len(whole) - 1))
    path = tmp_path_factory.getbasetemp() / "damaged"
    assert "damaged" in refusal(path, whole[:cut])


@PACKS
def test_content_of_too_many_bytes_or_too_high_a_ratio_is_refused(
    tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "_RATIO_FROM", 1 << 20)
    zeros = pack(bytes(8 << 20))
    assert refusal(tmp_path / "a", zeros, MostUnpacked(n_bytes=5000)) == (
        "the file decompresses to more than 5,000 bytes"
    )
    assert refusal(tmp_path / "a", zeros, MostUnpacked(ratio=20)) == (
        "the file decompresses to more than 20 times its size"
    )
    assert len(unpacked(tmp_path / "a", pack(bytes(1 << 20)), MostUnpacked(ratio=20))) == 1 << 20


class _Counting:
    """An unpacker that counts the bytes it is given, which are copied each time."""

    n_bytes = 0

    def __init__(self, unpacker: Any) -> None:
        self._unpacker = unpacker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unpacker, name)

    def decompress(self, data: bytes, most: int) -> bytes:
        type(self).n_bytes += len(data)
        return bytes(self._unpacker.decompress(data, most))


@pytest.mark.parametrize(
    ("pack", "module", "name"),
    [(gzip.compress, zlib, "decompressobj"), (lzma.compress, lzma, "LZMADecompressor")],
    ids=["gzip", "xz"],
)
def test_twice_as_many_empty_streams_cost_twice_as_much(
    tmp_path: Path, pack: Pack, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, make = pack(b""), getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **named: _Counting(make(*args, **named)))
    given = []
    for n_streams in (2_000, 4_000):
        monkeypatch.setattr(_Counting, "n_bytes", 0)
        assert unpacked(tmp_path / "a", empty * n_streams) == b""
        given.append(_Counting.n_bytes)
    assert 0 < given[1] < 2.5 * given[0]


_PEAK = """
import resource, sys
from pathlib import Path
from app.formats.plain_file import MostUnpacked, plain_file
from app.formats.table import FormatError

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

before = peak()
for n_bytes, ratio in zip(sys.argv[2::2], sys.argv[3::2]):
    try:
        with plain_file(Path(sys.argv[1]), MostUnpacked(int(n_bytes), float(ratio))):
            print("unpacked")
    except FormatError as error:
        print(error.errors[0].detail)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_file_that_comes_to_360_megabytes_is_refused_or_read_in_little_memory(tmp_path: Path, pack: Pack) -> None:
    part = (bytes(1 << 20) + os.urandom(5 << 10)) * 12
    packed = pack(part) * 30
    n_bytes, ratio = len(part) * 30, len(part) * 30 / len(packed)
    assert n_bytes > 360 << 20
    assert 100 < ratio < 250
    path = tmp_path / "a"
    path.write_bytes(packed)

    bounds = [n_bytes, 250.0, n_bytes - 1, 250.0, n_bytes, ratio - 1]
    command = [sys.executable, "-c", _PEAK, str(path), *map(str, bounds)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "unpacked"
    assert f"more than {n_bytes - 1:,} bytes" in lines[1]
    assert "times its size" in lines[2]
    assert int(lines[3]) < 64, "MiB"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@PACKS
def test_a_file_that_is_compressed_twice_is_refused(tmp_path: Path, pack: Pack) -> None:
    assert "compress it once" in refusal(tmp_path / "a", pack(gzip.compress(b"a 1:1\n")))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_a_named_encoding_becomes_utf8(tmp_path: Path, encoding: str) -> None:
    content = "Grün;1\n" * 200_000
    assert unpacked(tmp_path / "a", gzip.compress(content.encode(encoding)), encoding=encoding) == content.encode()


def test_what_is_not_in_the_named_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as refused:
        unpacked(tmp_path / "a", b"a\nb\nc \x81\n", encoding="cp1252")
    assert (refused.value.errors[0].row, refused.value.errors[0].detail) == (3, "not valid cp1252")


def test_bzip2_of_several_streams_is_read_and_a_cut_one_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "data.bz2", b"a 1:1\n" * 400_000
    packed = bz2.compress(content[: 6 * 100_000]) + bz2.compress(content[6 * 100_000 :])
    path.write_bytes(packed)
    assert compression_of(packed[:10]) == "bzip2"
    with plain_file(path) as plain:
        assert plain.read_bytes() == content
    path.write_bytes(packed[:-20])
    with pytest.raises(FormatError, match="the bzip2 data are damaged or end too early"), plain_file(path):
        pass


@pytest.mark.parametrize("first", ["[Content_Types].xml", "docProps/app.xml", "xl/workbook.xml", "_rels/.rels"])
def test_an_archive_of_office_without_sheets_is_called_damaged(tmp_path: Path, first: str) -> None:
    path = tmp_path / "data.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(first, "x" * 5000)
        archive.writestr("xl/worksheets/sheet1.xml", "x")
    with pytest.raises(FormatError, match="begins like xlsx, not like csv"):
        parse(path, "csv")
    with pytest.raises(FormatError, match="the workbook is damaged, or has no sheet of cells"):
        parse(path, "xlsx")
