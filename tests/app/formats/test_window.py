from pathlib import Path

import pytest

from app.formats.table import FormatError
from app.formats.window import Window


def read_lines(path: Path, block_bytes: int, max_record_bytes: int = 1 << 20) -> list[bytes]:
    lines: list[bytes] = []
    with Window(path, block_bytes, max_record_bytes) as window:
        while unread := window.fill(len(lines) + 1):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            lines += unread[:end].splitlines(keepends=True)
            window.consume(end)
    return lines


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 100])
def test_records_come_whole_whatever_the_size_of_a_block(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n\ntwenty two\nthree")
    assert read_lines(path, block_bytes) == [b"one\n", b"\n", b"twenty two\n", b"three"]


@pytest.mark.parametrize("block_bytes", [1, 2, 100])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\n")
    assert read_lines(path, block_bytes) == [b"one\n"]


def test_a_record_longer_than_the_bound_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n" + b"x" * 100 + b"\n")
    with pytest.raises(FormatError, match="longer than 100 bytes") as caught:
        read_lines(path, 16, 100)
    assert caught.value.errors[0].row == 2


def test_a_record_as_long_as_the_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n" + b"x" * 99 + b"\n" + b"y" * 100)
    assert [len(line) for line in read_lines(path, 16, 100)] == [4, 100, 100]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert read_lines(path, 10) == []
