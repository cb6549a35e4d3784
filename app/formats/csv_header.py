"""The header of a CSV or TSV file: its columns, how its cells are written, and what is in them."""

import csv
import io
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from app.datasets.formats.delimited import DELIMITERS
from app.datasets.schemas import ImportOptions
from app.formats.columns import Columns, check_names, find_columns
from app.formats.csv_cells import Records, read_texts, split_records
from app.formats.plain_file import MostUnpacked
from app.formats.table import row_error
from app.formats.window import MAX_RECORD_BYTES, NOT_UTF8, Window, as_array
from app.values import normalized

# the names of columns, and the rows in blocks
Blocks = AbstractContextManager[tuple[list[str], Iterator[pa.Table]]]
_NAMES = {mark: name for name, mark in DELIMITERS.items()}


class Dialect(NamedTuple):
    """How cells are written: bytes, a quote of -1 is none."""

    delimiter: int
    quote: int
    decimal_comma: bool


def read_header(window: Window, options: ImportOptions, default: str | None) -> tuple[Columns, Dialect, int]:
    """Take the header off the window: its columns, how cells are written, and the line after it."""
    names, dialect, line, given = _read_names(window, options, default)
    other = next((name for name, mark in DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    hint = "" if other is None else f"; the delimiter is {given}; did you mean delimiter={other}?"
    if len(names) == 2 and names[1].startswith("<") and names[1].endswith(">"):
        hint = "; is it an Annif corpus, which has no header? Pass format=annif"
    return find_columns(names, options, hint), dialect, line


def first_cells(path: Path, options: ImportOptions, delimiter: str | None, n_rows: int) -> dict[str, list[str]]:
    """The cells of the first rows by column; faulty rows are left out.

    Raises
    ------
    FormatError
        The first line is not a header.
    """
    with Window(path) as window:
        names, dialect, line = _read_names(window, options, delimiter)[:3]
        check_names(names)
        text = window.fill(line).decode("utf-8", "replace")
        whole = window.at_end
    csv.field_size_limit(MAX_RECORD_BYTES)  # of this process: long texts are above the default
    stream, mark = io.StringIO(text, newline=""), chr(dialect.delimiter)
    reader = csv.reader(stream, delimiter=mark, quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE)
    rows = list(itertools.islice(reader, n_rows + 1))
    rows = rows if whole and len(rows) <= n_rows else rows[:-1]  # the last may be cut off
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    return dict(zip(names, map(list, columns), strict=False)) or {name: [] for name in names}


def first_values_of_csv(path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int) -> dict[str, list[str]]:
    """As :func:`first_cells`."""
    return first_cells(path, options, None, n_rows)


def first_values_of_tsv(path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int) -> dict[str, list[str]]:
    """As :func:`first_cells`."""
    return first_cells(path, options, "tab", n_rows)


@contextmanager
def blocks_of_csv(
    path: Path, options: ImportOptions, most: MostUnpacked, delimiter: str | None = None
) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """The names of the columns, and the cells as strings in blocks of rows, to be used within the context."""
    with Window(path) as window:
        names, dialect, line, _ = _read_names(window, options, delimiter)
        yield names, _blocks(window, names, dialect, line)


def blocks_of_tsv(path: Path, options: ImportOptions, most: MostUnpacked) -> Blocks:
    """As :func:`blocks_of_csv`."""
    return blocks_of_csv(path, options, most, "tab")


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


def _blocks(window: Window, names: list[str], dialect: Dialect, line: int) -> Iterator[pa.Table]:
    width = len(names)
    while unread := window.fill(line):
        data = as_array(unread)
        records = Records(*split_records(data, window.at_end, width, line, dialect.delimiter, dialect.quote))
        columns = []
        for at in range(width):
            cells = records.cells[at::width]
            blob, lengths = read_texts(data, cells[:, 0], cells[:, 1], records.doubled[at::width])
            columns.append(_strings(blob, lengths))
        line += records.n_lines
        window.consume(records.consumed)
        yield pa.Table.from_arrays(columns, names=names)


def _strings(blob: Any, lengths: Any) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    cells = pa.LargeStringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(blob))
    )
    return cells.cast(pa.string())
