"""Tables in text: their records with the lines on which they begin, and the names of delimiters."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from app.formats.table import row_error

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
MOST_ABOVE_HEADER = 10


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
