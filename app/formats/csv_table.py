"""CSV and TSV files with a header: a label column, and either text columns or numeric columns.

UTF-8 (a byte order mark is skipped), cells quoted as RFC 4180 says, newlines allowed in quotes. The delimiter is the
one with which the header has the label's column; a first line as `sep=;`, which Excel reads, says it, too. Columns:
`label` (or another name, see the options), `split` (train, test or validation) and `id` (ignored) if wanted, and then
either texts and nothing else, or features that are all numbers. A column of weights, positive numbers, is there only
if the options name it. Labels are taken as they are written, without white space around them; if the options name a
separator, the label cell is cut at it into a set of labels.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.formats.columns import Columns, find_columns
from app.formats.csv_cells import (
    AFTER_QUOTE,
    RAGGED,
    UNCLOSED,
    Numbers,
    Records,
    read_numbers,
    read_texts,
    split_records,
)
from app.formats.decimals import EMPTY, NOT_A_NUMBER, NOT_FINITE, long_decimals
from app.formats.label_sets import LabelSets, take_labels
from app.formats.labels import Labels, Splits, distinct
from app.formats.matrix import Rows
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_blob import TextBlob, joined
from app.formats.weights import Weights
from app.formats.window import NOT_UTF8, Window, as_array
from app.schemas.datasets import ImportOptions

_CELL_DETAILS = {
    EMPTY: "the cell is empty, expected a number",
    NOT_A_NUMBER: "'{}' is not a number",
    NOT_FINITE: "'{}' is not a finite number",
}
_RECORD_DETAILS = {
    RAGGED: "{} cells, expected {} as in the header",
    AFTER_QUOTE: "text after a closing quote (a quote inside a quoted cell is written twice)",
    UNCLOSED: "a quote is opened and never closed",
}


DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
_NAMES = {mark: name for name, mark in DELIMITERS.items()}
# a decimal comma becomes a point, and a point, which might separate thousands, no number
_DECIMAL_COMMA = bytes.maketrans(b",.", b".,")


class _Dialect(NamedTuple):
    """How cells are written: bytes, a quote of -1 is none."""

    delimiter: int
    quote: int
    decimal_comma: bool


def parse_tsv(path: Path, options: ImportOptions) -> Parsed:
    """As :func:`parse_csv`, of cells with tabs between them."""
    return parse_csv(path, options, "tab")


def parse_csv(path: Path, options: ImportOptions, delimiter: str | None = None) -> Parsed:
    """Read a CSV file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column` is the label's column, `weight_column` that of the weights, `label_separator` makes sets;
        `delimiter`, `decimal` and `quotes` say how cells are written.
    delimiter : str, optional
        The name of the delimiter where the options give none; by default the header tells it.

    Returns
    -------
    Parsed
        Kind "text" if there is a `text` column, else "sparse" with `feature_names` in the header's order.

    Raises
    ------
    FormatError
        With the lines, and columns, that break the format.
    """
    labels: Labels | LabelSets = Labels() if options.label_separator is None else LabelSets(options.label_separator)
    splits, rows, texts, problems = Splits(), Rows(), TextBlob(), Problems()
    with Window(path) as window:
        header, dialect, line = _read_header(window, options, delimiter)
        weights = Weights(header.names[header.weight]) if header.weight is not None else None
        while unread := window.fill(line):
            data = as_array(unread)
            decimals = as_array(unread.translate(_DECIMAL_COMMA)) if dialect.decimal_comma else data
            records = Records(*split_records(data, window.at_end, len(header.names), line, *dialect[:2]))
            _check_utf8(unread, records, line, problems)
            _note_record_errors(records, len(header.names), problems)
            _add_names(data, records, header, labels, splits, problems)
            if weights is not None and header.weight is not None:
                starts, ends, _ = _column(records, header, header.weight)
                weights.add_decimals(decimals, starts, ends, records.lines, problems, written=data)
            if header.texts:
                texts.add(*joined([read_texts(data, *_column(records, header, column)) for column in header.texts]))
            else:
                _add_numbers(unread, decimals, records, header, rows, problems)
            line += records.n_lines
            window.consume(records.consumed)
    problems.raise_if_any()
    label_names, y, indptr = take_labels(labels)
    if (len(y) if indptr is None else len(indptr) - 1) == 0:
        raise row_error(1, "the file has a header and no rows")
    split = None if header.split is None else splits.take()
    given = None if weights is None else weights.take()
    if header.texts:
        return Parsed("text", label_names, y, split, texts=texts.take(), weights=given, label_indptr=indptr)
    names = [header.names[column] for column in header.numeric]
    X = rows.take(len(names))
    return Parsed("sparse", label_names, y, split, X=X, feature_names=names, weights=given, label_indptr=indptr)


def _read_header(window: Window, options: ImportOptions, default: str | None) -> tuple[Columns, _Dialect, int]:
    """Take the header off the window: its columns, how cells are written, and the line after it."""
    record, line = _first_record(window, 1, options.quotes)
    given = options.delimiter or default
    if record.startswith(b"sep=") and len(record.rstrip()) == 5:  # Excel's own word on it
        said = _NAMES.get(record[4:5].decode("latin-1"))
        if said is None or given not in (None, said):
            raise row_error(1, "the first line says another delimiter than the options")
        given = said
        record, line = _first_record(window, line, options.quotes)
    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise row_error(1, f"the header is not {NOT_UTF8}") from error
    if given is None:
        given = _told_delimiter(text, options)
    delimiter = DELIMITERS[given]
    names = _names(text, delimiter, options.quotes)
    if names is None:
        raise row_error(1, "the header is not a CSV record")
    other = next((name for name, mark in DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    hint = "" if other is None else f"; cells are separated by a {given}, or is it a {other}? (delimiter={other})"
    dialect = _Dialect(ord(delimiter), ord('"') if options.quotes else -1, options.decimal == "comma")
    return find_columns(names, options, hint), dialect, line


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


def _told_delimiter(header: str, options: ImportOptions) -> str:
    """The one delimiter with which the label's column is there, else the comma."""
    fitting = []
    for name, delimiter in DELIMITERS.items():
        names = _names(header, delimiter, options.quotes)
        if names is not None and len(names) > 1 and options.label_column in names:
            fitting.append(name)
    return fitting[0] if len(fitting) == 1 else "comma"


def _names(header: str, delimiter: str, quotes: bool) -> list[str] | None:
    stream = io.StringIO(header, newline="")
    plain = csv.reader(stream, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    try:
        names = next(csv.reader(stream, delimiter=delimiter, strict=True) if quotes else plain)
    except (csv.Error, StopIteration):
        return None
    return [name.strip() for name in names]


def _check_utf8(unread: bytes, records: Records, line: int, problems: Problems) -> None:
    """Stop at a block that is not UTF-8: its cells cannot be shown or kept."""
    try:
        unread[: records.consumed].decode()
    except UnicodeDecodeError as error:
        problems.add(line + unread.count(b"\n", 0, error.start), f"not {NOT_UTF8}")
        problems.raise_if_any()


def _note_record_errors(records: Records, n_columns: int, problems: Problems) -> None:
    for line, code, n_cells in records.errors.tolist():
        problems.add(line, _RECORD_DETAILS[code].format(n_cells, n_columns))
    problems.uncounted(records.n_errors - len(records.errors))


def _add_names(
    data: npt.NDArray[np.uint8],
    records: Records,
    header: Columns,
    labels: Labels | LabelSets,
    splits: Splits,
    problems: Problems,
) -> None:
    starts, ends, doubled = _column(records, header, header.label)
    blob, lengths = read_texts(data, starts, ends, doubled)
    stops = np.cumsum(lengths)
    codes, names = distinct(blob, stops - lengths, stops)
    labels.add(codes, names, records.lines, problems)
    if header.split is not None:
        starts, ends, _ = _column(records, header, header.split)
        codes, names = distinct(data, starts, ends)
        splits.add(codes, names, records.lines, problems)


def _add_numbers(
    unread: bytes,
    data: npt.NDArray[np.uint8],
    records: Records,
    header: Columns,
    rows: Rows,
    problems: Problems,
) -> None:
    numbers = Numbers(*read_numbers(data, records.cells, len(header.names), np.array(header.numeric)))
    values = long_decimals(data, numbers.longs[:, 1], numbers.longs[:, 2])
    for k in np.flatnonzero(~np.isfinite(values)):
        _, start, end, record, feature = numbers.longs[k].tolist()
        detail = f"'{shorten(unread[start:end])}' is too large for a 64-bit number"
        problems.add(int(records.lines[record]), detail, header.names[header.numeric[feature]])
    numbers.values[numbers.longs[:, 0]] = values
    for record, code, start, end, feature in numbers.errors.tolist():
        detail = _CELL_DETAILS[code].format(shorten(unread[start:end]))
        problems.add(int(records.lines[record]), detail, header.names[header.numeric[feature]])
    problems.uncounted(numbers.n_errors - len(numbers.errors))
    rows.add(numbers.lengths, numbers.indices, numbers.values)


def _column(
    records: Records, header: Columns, column: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Starts, ends and doubled-quote marks of one column's cells."""
    n_columns = len(header.names)
    return (
        records.cells[column::n_columns, 0],
        records.cells[column::n_columns, 1],
        records.doubled[column::n_columns],
    )
