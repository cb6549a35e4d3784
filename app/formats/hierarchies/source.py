"""A hierarchy's file: its text as lines or records of a table, and the limits of what is read from it."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.formats.plain_file import check_text
from app.formats.table import FormatError, row_error
from app.formats.window import BOM

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
MOST_ABOVE_HEADER = 10


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


def head_lines(text: str) -> list[str]:
    """The lines that may have the header: publishers put titles above it."""
    head = io.StringIO(text, newline="")
    return [line.rstrip("\r\n") for _, line in zip(range(MOST_ABOVE_HEADER), head, strict=False)]


def header_cells(line: str, delimiter: str) -> list[str] | None:
    """The cells of a line without white space around them; None of one that is no record."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
    except csv.Error:
        return None


def table_rows(text: str, header_line: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the lines on which they begin, from the header on; raises FormatError."""
    file = io.StringIO(text, newline="")
    for _ in range(header_line - 1):  # lines above the header need not be CSV
        file.readline()
    rows = csv.reader(file, delimiter=delimiter, strict=True)
    above = header_line - 1
    line = header_line
    try:
        for row in rows:
            yield line, row
            line = above + rows.line_num + 1
    except csv.Error as error:
        raise row_error(above + rows.line_num, f"not a CSV record: {error}") from None


def delimiter_name(delimiter: str) -> str:
    """The name of a delimiter."""
    return next(name for name, character in DELIMITERS.items() if character == delimiter)


@dataclass(frozen=True)
class Bounds:
    """What a file of a label tree may come to, so that reading ends soon, and within a known memory.

    Attributes
    ----------
    nodes : int
        Most nodes.
    depth : int
        Most levels.
    characters : int
        Most characters in the names of all nodes: whole paths are longer than the file that spells them.
    seconds : float
        Most time that reading a large file may take.
    n_bytes : int
        Most bytes of a compressed file once it is unpacked.
    """

    nodes: int = 1_000_000
    depth: int = 1000
    characters: int = 128 << 20
    seconds: float = 120.0
    n_bytes: int = 128 << 20

    @property
    def entries(self) -> int:
        """Most values in a JSON file, where a node may have some beside its name."""
        return 4 * self.nodes

    @property
    def nesting(self) -> int:
        """Most brackets in one another in a JSON file, where a node may have two, and the top as well."""
        return 2 * self.depth + 2


def too_many(line: int, what: str, most: int) -> FormatError:
    """The error of a file that has more than ``most`` of something by that line."""
    return row_error(line, f"more than {most:,} {what}, the maximum of a label tree")
