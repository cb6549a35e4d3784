"""The beginning of a table's file, as its format's reader takes it: plain, in UTF-8, and of whole records."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.datasets.formats import EXTENSIONS, FORMATS
from app.datasets.formats.delimited import DELIMITERS, cells_of
from app.datasets.schemas import MOST_SAMPLE_BYTES, SAMPLE_BYTES, TableSample
from app.formats.detection import binary_format, check_encoding, check_format, recognised
from app.formats.plain_file import first_bytes
from app.formats.table import FormatError, row_error
from app.formats.window import BOM, NOT_UTF8


@contextmanager
def plain_sample(content: bytes, sample: TableSample) -> Iterator[tuple[Path, str]]:
    """A file of the content, unpacked and in UTF-8, without the record that is cut off; and its format."""
    with _in_memory(content) as path:
        head = first_bytes(path, MOST_SAMPLE_BYTES if _is_binary(content) else SAMPLE_BYTES)
    format = _format(head, sample)
    if FORMATS[format].columns is None:
        raise row_error(1, f"files of the format {format} have no columns to choose")
    if FORMATS[format].is_text:
        head = head if sample.encoding == "utf-8" else head.decode(sample.encoding, "replace").encode()
        _check_utf8(head)
        # the end of a piece is in the middle of a row
        end = head.rfind(b"\n") + 1
        head = head[:end] if head.count(b"\n", 0, end) > 1 else head
    with _in_memory(head) as path:
        yield path, format


def _check_utf8(head: bytes) -> None:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else a character is cut off
            raise row_error(1 + head.count(b"\n", 0, error.start), f"not {NOT_UTF8}") from None


def _is_binary(content: bytes) -> bool:
    try:
        return binary_format(content[:1024]) is not None
    except FormatError:
        return False


@contextmanager
def _in_memory(content: bytes) -> Iterator[Path]:
    with open(os.memfd_create("table"), "w+b") as file:
        file.write(content)
        file.flush()
        yield Path(f"/proc/self/fd/{file.fileno()}")


def _format(head: bytes, sample: TableSample) -> str:
    """The format as given, of the file's extension or of the content."""
    name = re.sub(r"\.(gz|bz2|xz|zst)$", "", (sample.file or "").lower())
    by_name = EXTENSIONS.get(name.rpartition(".")[2])
    found = binary_format(head)
    if found is not None:
        if sample.format is not None:
            check_format(head, sample.format, sample)
        return found
    format = sample.format or by_name
    if format is not None and not FORMATS[format].is_text:
        raise row_error(1, f"the file does not begin like {format}")
    check_encoding(head, sample)
    text = head.removeprefix(BOM).decode(sample.encoding, "replace").removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise row_error(1, "the file is empty or has only blank lines")
    if sample.format is None and (format is None or FORMATS[format].columns is not None):
        # the label column of a table may have any name, so a table need not be recognised
        found = next((name for name in recognised(lines, sample) if not FORMATS[name].is_table), None)
        if found is not None and (format is None or FORMATS[found].columns is None):
            return found
    if format is not None:
        return format
    if any(len(cells_of(lines[0], mark)) > 1 for mark in DELIMITERS.values()) or lines[0].startswith("sep="):
        return "csv"
    raise row_error(1, "the first line is not a header with several columns")
