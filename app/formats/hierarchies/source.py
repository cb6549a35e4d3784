"""The text of a hierarchy's file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.formats.plain_file import check_text
from app.formats.table import row_error
from app.formats.window import BOM


def read_text(path: Path) -> str:
    """The whole file as text, without a byte order mark.

    Raises
    ------
    FormatError
        It is empty or no UTF-8.
    """
    content = path.read_bytes()
    if content.startswith(b"PK\x03\x04"):
        raise row_error(1, "the file is a workbook, which formats csv and codes read, or a zip archive: unpack it")
    check_text(content[:4])
    content = content.removeprefix(BOM)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise row_error(1 + content.count(b"\n", 0, error.start), "not valid UTF-8") from None
    if not text.strip():
        raise row_error(1, "the file is empty or has only blank lines")
    return text


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1; raises as :func:`read_text` does."""
    text = read_text(path)
    begin, number = 0, 1
    while begin <= len(text):  # not split at once: a file of line ends alone would make a list of all of them
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        if line := text[begin:end].strip():
            yield number, line
        begin, number = end + 1, number + 1
