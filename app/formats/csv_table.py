"""CSV files with a header: a label column, and either a text column or numeric columns.

UTF-8 (a byte order mark is skipped), commas, cells quoted as RFC 4180 says, newlines allowed in quotes. Columns:
`label` (or another name, see the options), `split` (train or test) and `id` (ignored) if wanted, and then either `text`
and nothing else, or features that are all numbers. A column of weights, positive numbers, is there only if the options
name it. Labels are taken as they are written, without white space around them; if the options name a separator, the
label cell is cut at it into a set of labels.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
from app.formats.text_blob import TextBlob
from app.formats.weights import Weights
from app.formats.window import Window, as_array
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


@dataclass(frozen=True)
class _Header:
    names: list[str]
    label: int
    split: int | None
    weight: int | None
    text: int | None
    numeric: list[int]


def parse_csv(path: Path, options: ImportOptions) -> Parsed:
    """Read a CSV file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column` is the label's column, `weight_column` that of the weights, `label_separator` makes sets.

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
        header, line = _read_header(window, options)
        weights = Weights(header.names[header.weight]) if header.weight is not None else None
        while unread := window.fill(line):
            data = as_array(unread)
            records = Records(*split_records(data, window.at_end, len(header.names), line))
            _check_utf8(unread, records, line, problems)
            _note_record_errors(records, len(header.names), problems)
            _add_names(data, records, header, labels, splits, problems)
            if weights is not None and header.weight is not None:
                starts, ends, _ = _column(records, header, header.weight)
                weights.add_decimals(data, starts, ends, records.lines, problems)
            if header.text is None:
                _add_numbers(unread, records, header, rows, problems)
            else:
                starts, ends, doubled = _column(records, header, header.text)
                texts.add(*read_texts(data, starts, ends, doubled))
            line += records.n_lines
            window.consume(records.consumed)
    problems.raise_if_any()
    label_names, y, indptr = take_labels(labels)
    if (len(y) if indptr is None else len(indptr) - 1) == 0:
        raise row_error(1, "the file has a header and no rows")
    split = None if header.split is None else splits.take()
    given = None if weights is None else weights.take()
    if header.text is not None:
        return Parsed("text", label_names, y, split, texts=texts.take(), weights=given, label_indptr=indptr)
    names = [header.names[column] for column in header.numeric]
    X = rows.take(len(names))
    return Parsed("sparse", label_names, y, split, X=X, feature_names=names, weights=given, label_indptr=indptr)


def _read_header(window: Window, options: ImportOptions) -> tuple[_Header, int]:
    """Take the first record off the window; its columns, and the line after it."""
    unread, n_quotes, seen, end = window.fill(1), 0, 0, 0
    if not unread:
        raise row_error(1, "the file is empty")
    while end == 0:
        newline = unread.find(b"\n", seen)
        if newline < 0 and not window.at_end:
            window.consume(0)
            unread = window.fill(1)
            continue
        stop = len(unread) if newline < 0 else newline + 1
        n_quotes += unread.count(b'"', seen, stop)
        seen = stop
        if n_quotes % 2 == 0 or newline < 0:
            end = stop
    window.consume(end)
    try:
        names = next(csv.reader(io.StringIO(unread[:end].decode(), newline=""), strict=True))
    except UnicodeDecodeError as error:
        raise row_error(1, "the header is not valid UTF-8") from error
    except csv.Error as error:
        raise row_error(1, "the header is not a CSV record") from error
    return _check_header([name.strip() for name in names], options), 1 + unread.count(b"\n", 0, end)


def _check_header(names: list[str], options: ImportOptions) -> _Header:
    if not names:
        raise row_error(1, "the first line is blank, expected a header")
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise row_error(1, f"column {number} has no name")
        if name in seen:
            raise row_error(1, f"two columns are called '{shorten(name)}'", name)
        seen.add(name)
    if options.weight_column == options.label_column:
        raise row_error(1, "one column cannot hold both labels and weights", options.label_column)
    for wanted in (options.label_column, options.weight_column):
        if wanted is None or wanted in seen:
            continue
        separator = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
        hint = "" if separator is None else "; cells are separated by commas"
        raise row_error(1, f"no column '{shorten(wanted)}' among the {len(names)} columns of the header{hint}")
    place = {name: index for index, name in enumerate(names)}
    label, weight = place[options.label_column], place.get(options.weight_column or "")
    split, text = (None if at in (label, weight) else at for at in (place.get("split"), place.get("text")))
    known = {label, weight, split, text, place.get("id")}
    others = [index for index in range(len(names)) if index not in known]
    if text is not None and others:
        named = ", ".join(f"'{shorten(names[index])}'" for index in others[:3])
        detail = f"beside text only label, split, id and weights may stand; {len(others)} more column(s): {named}"
        raise row_error(1, detail, names[others[0]])
    if text is None and not others:
        raise row_error(1, "neither a text column nor numeric columns beside the label")
    return _Header(names, label, split, weight, text, others)


def _check_utf8(unread: bytes, records: Records, line: int, problems: Problems) -> None:
    """Stop at a block that is not UTF-8: its cells cannot be shown or kept."""
    try:
        unread[: records.consumed].decode()
    except UnicodeDecodeError as error:
        problems.add(line + unread.count(b"\n", 0, error.start), "not valid UTF-8")
        problems.raise_if_any()


def _note_record_errors(records: Records, n_columns: int, problems: Problems) -> None:
    for line, code, n_cells in records.errors.tolist():
        problems.add(line, _RECORD_DETAILS[code].format(n_cells, n_columns))
    problems.uncounted(records.n_errors - len(records.errors))


def _add_names(
    data: npt.NDArray[np.uint8],
    records: Records,
    header: _Header,
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


def _add_numbers(unread: bytes, records: Records, header: _Header, rows: Rows, problems: Problems) -> None:
    data = as_array(unread)
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
    records: Records, header: _Header, column: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Starts, ends and doubled-quote marks of one column's cells."""
    n_columns = len(header.names)
    return (
        records.cells[column::n_columns, 0],
        records.cells[column::n_columns, 1],
        records.doubled[column::n_columns],
    )
