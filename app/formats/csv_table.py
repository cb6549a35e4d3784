"""CSV and TSV files with a header: a label column, and either text columns or numeric columns.

UTF-8 (a byte order mark is skipped), cells quoted as RFC 4180 says, newlines allowed in quotes. The delimiter is the
one with which the header has the label's column; a first line as `sep=;`, which Excel reads, says it, too. Columns:
`label` (or another name, see the options), `split` (train, test or validation) and `id` (ignored) if wanted, and then
either texts and nothing else, or features that are all numbers. A column of weights, positive numbers, is there only
if the options name it. Labels are taken as they are written, without white space around them; if the options name a
separator, the label cell is cut at it into a set of labels. Texts, numbers and categories may be combined if
the options name them; numbers and categories may then be missing.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.datasets.schemas import ImportOptions
from app.formats.categories import Categories
from app.formats.columns import Columns
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
from app.formats.csv_header import read_header
from app.formats.decimals import EMPTY, EXACT, NOT_A_NUMBER, NOT_FINITE, long_decimals, read_decimals
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, Splits, distinct
from app.formats.matrix import Rows
from app.formats.table import Cause, Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob, joined
from app.formats.weights import Weights
from app.formats.window import NOT_UTF8, Window, as_array
from app.plurals import counted

_CELL_DETAILS = {
    EMPTY: "the cell is empty, expected a number",
    NOT_A_NUMBER: "'{}' is not a number",
    NOT_FINITE: "'{}' is not a finite number",
}
_RECORD_DETAILS = {
    RAGGED: "{}, expected {} as in the header (cells that contain the delimiter need double quotes around them)",
    AFTER_QUOTE: "text after a closing quote (a quote inside a quoted cell is written twice)",
    UNCLOSED: "a quote is never closed (pass quotes=false if quotes are ordinary characters)",
}


_GROUPED = re.compile(rb"\s*[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]*\s*")
_COMMA = re.compile(rb"\s*[+-]?[0-9.]*,[0-9]+\s*")
# a decimal comma becomes a point, and a point, which might separate thousands, no number
_DECIMAL_COMMA = bytes.maketrans(b",.", b".,")


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
        The name of the delimiter where the options give none; by default it is guessed from the header.

    Returns
    -------
    Parsed
        Kind "text" or "sparse" with `feature_names` in the header's order, or "table", as the columns say.

    Raises
    ------
    FormatError
        With the lines, and columns, that break the format.
    """
    sets = options.unlabelled or options.has_separated_labels
    may_lack = options.without_label != "refuse" or options.label_lists == "read"
    labels: Labels | LabelSets = LabelSets(options.label_separator or ",") if sets else Labels(may_lack)
    splits, rows, texts, ids, problems = Splits(), Rows(), TextBlob(), TextBlob(), Problems()
    with Window(path) as window:
        header, dialect, line = read_header(window, options, delimiter)
        keep = options.missing == "keep"
        categories = Categories([header.names[at] for at in header.categories], options)
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
            if header.id is not None:
                ids.add(*read_texts(data, *_column(records, header, header.id)))
            for place, column in enumerate(header.categories):
                categories.add(place, *_cells(data, records, header, column), records.lines, problems)
            if keep:
                _add_present(data, decimals, records, header, rows, problems, options.missing_values)
            elif header.numeric:
                _add_numbers(unread, decimals, records, header, rows, problems)
            else:
                rows.add(np.zeros(len(records.lines), np.int64), np.empty(0, np.int32), np.empty(0))
            line += records.n_lines
            window.consume(records.consumed)
    problems.raise_if_any()
    label_names, y, indptr = build_labels(labels)
    if (len(y) if indptr is None else len(indptr) - 1) == 0:
        raise row_error(1, "the file has a header but no rows")
    split = None if header.split is None else splits.build()
    given = None if weights is None else weights.build()
    names = [header.names[column] for column in header.numeric]
    X, feature_names = (None, None) if header.kind == "text" else categories.beside(rows.build(len(names)), names)
    return Parsed(
        header.kind,
        label_names,
        y,
        split,
        X,
        texts.build() if header.texts else None,
        feature_names,
        given,
        indptr,
        header.reported(names, options, categories.types()),
        None if header.id is None else ids.build(),
    )


def _check_utf8(unread: bytes, records: Records, line: int, problems: Problems) -> None:
    """Stop at a block that is not UTF-8: its cells cannot be shown or kept."""
    try:
        unread[: records.consumed].decode()
    except UnicodeDecodeError as error:
        problems.add(line + unread.count(b"\n", 0, error.start), f"not {NOT_UTF8}")
        problems.raise_if_any()


def _note_record_errors(records: Records, n_columns: int, problems: Problems) -> None:
    for line, code, n_cells in records.errors.tolist():
        problems.add(line, _RECORD_DETAILS[code].format(counted(n_cells, "cell"), n_columns))
    problems.uncounted(records.n_errors - len(records.errors))


def _add_names(
    data: npt.NDArray[np.uint8],
    records: Records,
    header: Columns,
    labels: Labels | LabelSets,
    splits: Splits,
    problems: Problems,
) -> None:
    if header.label is None:
        labels.add(np.zeros(len(records.lines), np.int64), [""], records.lines, problems)
    else:
        labels.add(*_cells(data, records, header, header.label), records.lines, problems)
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
        _note_no_number(
            problems, int(records.lines[record]), header.names[header.numeric[feature]], code, unread[start:end]
        )
    problems.uncounted(numbers.n_errors - len(numbers.errors))
    rows.add(numbers.lengths, numbers.indices, numbers.values)


def _note_no_number(problems: Problems, line: int, column: str, code: int, cell: bytes) -> None:
    cause: Cause | None = None
    if code == EMPTY:
        cause = "empty"
    elif code == NOT_A_NUMBER:
        cause = "decimal_comma" if _COMMA.fullmatch(cell) else "text"
    detail = _CELL_DETAILS[code].format(shorten(cell))
    if _GROUPED.fullmatch(cell):
        cause, detail = None, f"{detail}: write numbers without separators of thousands"
    problems.add(line, detail, column, cause)


def _add_present(
    data: npt.NDArray[np.uint8],
    decimals: npt.NDArray[np.uint8],
    records: Records,
    header: Columns,
    rows: Rows,
    problems: Problems,
    missing: Sequence[str],
) -> None:
    """As :func:`_add_numbers`, where numbers may be missing: these are NaN."""
    # all at once, as a file may have a million columns, and in the order of the file
    n, order = len(records.lines), np.argsort(np.array(header.numeric, dtype=np.int64))
    places = np.array(header.numeric, dtype=np.int64)[order]
    cells = records.cells.reshape(n, len(header.names), 2)[:, places].reshape(-1, 2)
    values, codes = read_decimals(decimals, cells[:, 0], cells[:, 1])
    values[codes == EMPTY] = np.nan
    codes[(codes == EXACT) & np.isinf(values)] = NOT_FINITE
    for k in np.flatnonzero((codes != EXACT) & (codes != EMPTY)).tolist():
        line, at = divmod(k, len(places))
        cell = data[cells[k, 0] : cells[k, 1]].tobytes().decode("utf-8", "replace").strip()
        if cell and cell not in missing:
            _note_no_number(problems, int(records.lines[line]), header.names[places[at]], int(codes[k]), cell.encode())
        values[k] = np.nan
    dense = np.empty((n, len(places)))
    dense[:, order] = values.reshape(n, len(places))
    row, feature = np.nonzero(dense)
    rows.add(np.count_nonzero(dense, axis=1).astype(np.int64), feature.astype(np.int32), dense[row, feature])


def _cells(
    data: npt.NDArray[np.uint8], records: Records, header: Columns, column: int
) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """The distinct cells of a column, and the index of each row's among them."""
    blob, lengths = read_texts(data, *_column(records, header, column))
    stops = np.cumsum(lengths)
    return distinct(blob, stops - lengths, stops)


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
