"""The header of a CSV or TSV file: its columns, and how its cells are written."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import NamedTuple

from app.datasets.schemas import ImportOptions
from app.formats.columns import Columns, check_names, find_columns
from app.formats.table import row_error
from app.formats.window import MAX_RECORD_BYTES, NOT_UTF8, Window
from app.values import normalized

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
_NAMES = {mark: name for name, mark in DELIMITERS.items()}


class Dialect(NamedTuple):
    """How cells are written: bytes, a quote of -1 is none."""

    delimiter: int
    quote: int
    decimal_comma: bool


def sample_of_table(path: Path, options: ImportOptions, delimiter: str | None, most: int) -> dict[str, list[str]]:
    """The cells of the first `most` rows by column; faulty rows are left out.

    Raises
    ------
    FormatError
        The header is none.
    """
    with Window(path) as window:
        names, dialect, line = _read_names(window, options, delimiter)[:3]
        check_names(names)
        text = window.fill(line).decode("utf-8", "replace")
        whole = window.at_end
    csv.field_size_limit(MAX_RECORD_BYTES)  # of this process: long texts are above the default
    stream, mark = io.StringIO(text, newline=""), chr(dialect.delimiter)
    reader = csv.reader(stream, delimiter=mark, quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE)
    rows = list(itertools.islice(reader, most + 1))
    rows = rows if whole and len(rows) <= most else rows[:-1]  # the last may be cut off
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    return dict(zip(names, map(list, columns), strict=False)) or {name: [] for name in names}


def read_header(window: Window, options: ImportOptions, default: str | None) -> tuple[Columns, Dialect, int]:
    """Take the header off the window: its columns, how cells are written, and the line after it."""
    names, dialect, line, given = _read_names(window, options, default)
    other = next((name for name, mark in DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    hint = "" if other is None else f"; the delimiter is {given}; did you mean delimiter={other}?"
    if len(names) == 2 and names[1].startswith("<") and names[1].endswith(">"):
        hint = "; is it an Annif corpus, which has no header? Pass format=annif"
    return find_columns(names, options, hint), dialect, line


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of a first line; empty if it has fewer than two."""
    try:
        cells = next(csv.reader(io.StringIO(line), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells] if len(cells) > 1 else []


def has_annif_header(line: str) -> bool:
    """Whether a first line is the header of Annif's corpora in CSV, which has `text` and `subject_uris`."""
    return set(cells_of(line, ",")) >= {"text", "subject_uris"}


def names_of_header(window: Window, options: ImportOptions, default: str | None) -> tuple[list[str], int, int, int]:
    """Take the header off the window: its cells, the bytes of delimiter and quote (-1: none), the line after it."""
    names, dialect, line, _ = _read_names(window, options, default)
    return names, dialect.delimiter, dialect.quote, line


def _read_names(window: Window, options: ImportOptions, default: str | None) -> tuple[list[str], Dialect, int, str]:
    """Take the header off the window: its cells, how cells are written, the line after it, the delimiter's name."""
    record, line = _first_record(window, 1, options.quotes)
    given = options.delimiter or default
    if record.startswith(b"sep=") and len(record.rstrip()) == 5:  # Excel's own word on it
        said = _NAMES.get(record[4:5].decode("latin-1"))
        if said is None or given not in (None, said):
            raise row_error(1, "the delimiter in the first line differs from the delimiter option")
        given = said
        record, line = _first_record(window, line, options.quotes)
    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise row_error(1, f"the header is not {NOT_UTF8}") from error
    if "\r" in text.rstrip("\r\n") and '"' not in text:
        raise row_error(1, "lines end with a carriage return only: save the file with line feeds, or as CSV in UTF-8")
    if given is None:
        given = _declared_delimiter(text, options)
    delimiter = DELIMITERS[given]
    names = _names(text, delimiter, options.quotes)
    if names is None:
        raise row_error(1, "the header is not a CSV record")
    dialect = Dialect(ord(delimiter), ord('"') if options.quotes else -1, options.decimal == "comma")
    return names, dialect, line, given


def _first_record(window: Window, line: int, quotes: bool) -> tuple[bytes, int]:
    """Take a record off the window; its bytes, and the line after it."""
    unread, n_quotes, seen, end = window.fill(line), 0, 0, 0
    if not unread:
        raise row_error(1, "the file is empty")
    while end == 0:
        newline = unread.find(b"\n", seen)
        if newline < 0 and not window.at_end:
            window.consume(0)
            unread = window.fill(line)
            continue
        stop = len(unread) if newline < 0 else newline + 1
        n_quotes += unread.count(b'"', seen, stop)
        seen = stop
        if n_quotes % 2 == 0 or newline < 0 or not quotes:
            end = stop
    window.consume(end)
    return unread[:end], line + unread.count(b"\n", 0, end)


def _declared_delimiter(header: str, options: ImportOptions) -> str:
    """The one delimiter with which the label's column is there, else the one that makes most columns, or the comma."""
    fitting, n_columns = [], {}
    for name, delimiter in DELIMITERS.items():
        names = _names(header, delimiter, options.quotes)
        n_columns[name] = len(names or [""])
        if names is not None and len(names) > 1 and options.label_column in names:
            fitting.append(name)
    if fitting:
        return fitting[0] if len(fitting) == 1 else "comma"
    return max(n_columns, key=n_columns.__getitem__)  # of equal ones the comma, which comes first


def _names(header: str, delimiter: str, quotes: bool) -> list[str] | None:
    stream = io.StringIO(header, newline="")
    plain = csv.reader(stream, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    try:
        names = next(csv.reader(stream, delimiter=delimiter, strict=True) if quotes else plain)
    except (csv.Error, StopIteration):
        return None
    return [normalized(name) for name in names]
