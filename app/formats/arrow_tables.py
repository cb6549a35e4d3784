"""Parquet and Arrow IPC tables: the columns of a CSV file, with types.

Labels are strings, integers, other numbers that are whole, booleans (true and false), or lists of those (a set a row);
integers become names where the schema's metadata name them, as Hugging Face's `datasets` does. Numbers are columns of
numbers or booleans, or lists of equally many of them, as embeddings are; `indices` and `values`, two lists, are sparse
rows. Rows are counted from 1. A missing text is an empty one, a missing label or list an error; a missing number or
category is one unless the options let it be missing.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.datasets.schemas import ImportOptions
from app.formats.arrow_numbers import Numbers, bytes_read, floats, is_number
from app.formats.categories import Categories
from app.formats.columns import Columns, find_columns, with_lists
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, Splits, repeated_name
from app.formats.plain_file import MostUnpacked
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob, joined
from app.formats.weights import Weights
from app.values import canonical, normalized, written

BATCH_ROWS = 8192
_CHOSEN_FROM = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
# characters of a class's number; Python reads none that has thousands
_LONGEST_PLACE = 20
_INTEGER = re.compile(r"-?[0-9]+")

_STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def parse_parquet(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        As for CSV.
    most : MostUnpacked
        What the columns may come to, as Parquet packs its pages: equal values take next to nothing.

    Returns
    -------
    Parsed
        Kind "text" or "sparse" with `feature_names`, or "table", as the columns say.

    Raises
    ------
    FormatError
        It is damaged, its columns are not those expected, or with the rows that are not.
    """
    with _refusing("Parquet"), pq.ParquetFile(path) as file:
        check = partial(most.check, size=path.stat().st_size)
        return _parse(file.schema_arrow, file.iter_batches(batch_size=BATCH_ROWS), options, check)


def parse_arrow(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """As :func:`parse_parquet`, of an Arrow IPC file (Feather version 2) or stream."""
    with _refusing("Arrow IPC"), pa.memory_map(str(path)) as source:
        check = partial(most.check, size=path.stat().st_size)
        if source.read(6) == b"ARROW1":
            file = pa.ipc.open_file(source)
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
            return _parse(file.schema, batches, options, check)
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return _parse(stream.schema, stream, options, check)


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise row_error(1, f"not a valid {what} file: {shorten(str(error))}") from error


def _parse(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], options: ImportOptions, check: Callable[..., None]
) -> Parsed:
    names = [normalized(name) for name in schema.names]
    options = with_lists(options, names)
    columns = find_columns(names, options)
    reader, row, total = _Reader(schema, columns, options), 1, 0
    for batch in batches:
        batch.validate(full=True)
        # Pieces, as an Arrow file may hold any number of rows in one batch.
        for begin in range(0, batch.num_rows, BATCH_ROWS):
            piece = batch.slice(begin, BATCH_ROWS)
            total += bytes_read(piece)
            check(total, row=row)
            reader.read(piece, row)
            row += piece.num_rows
    return reader.build(row - 1)


class _Reader:
    """Batches of rows become arrays."""

    def __init__(self, schema: pa.Schema, columns: Columns, options: ImportOptions) -> None:
        self._columns = columns
        self._problems = Problems()
        self._splits, self._texts = Splits(), TextBlob()
        weight = None if columns.weight is None else columns.names[columns.weight]
        self._weights = None if weight is None else Weights(weight)
        keep = options.missing == "keep"
        self._numbers = None if columns.kind == "text" else Numbers(schema, columns, keep)
        self._categories = Categories([columns.names[at] for at in columns.categories], options)
        self._ids, self._options = TextBlob(), options
        for column in columns.categories:
            _require(schema, columns, column, "a category", _is_level)
        for column in columns.texts:
            _require(schema, columns, column, "text", _is_string)
        if columns.split is not None:
            _require(schema, columns, columns.split, "split", _is_string)
        if columns.weight is not None:
            _require(schema, columns, columns.weight, "weights", is_number)
        self._listed, self._fractional, self._class_names = False, False, None
        if columns.label is not None:
            type = _plain(schema.types[columns.label])
            self._listed = any(test(type) for test in _LISTS)
            _require(schema, columns, columns.label, "labels", lambda type: _is_label(_element(type)))
            self._fractional = not pa.types.is_integer(_element(type)) and is_number(_element(type))
            self._class_names = class_names(schema, schema.names[columns.label])
        twice = repeated_name(self._class_names or ())
        if twice is not None:
            raise row_error(1, f"two labels are named '{shorten(twice)}' in the schema's metadata", "label")
        sets = self._listed or options.has_separated_labels or columns.label is None
        self._may_lack = options.without_label != "refuse" or options.label_lists == "read"
        self._labels: Labels | LabelSets = LabelSets(options.label_separator or ",") if sets else Labels(self._may_lack)

    def read(self, batch: pa.RecordBatch, first: int) -> None:
        """Take rows of which the first has that number."""
        columns, rows = self._columns, np.arange(first, first + batch.num_rows, dtype=np.int64)
        if columns.label is None:
            self._labels.add(np.zeros(len(rows), np.int64), [""], rows, self._problems)
        else:
            self._add_labels(batch.column(columns.label), rows)
        if columns.split is not None:
            self._splits.add(*_distinct(batch.column(columns.split)), rows, self._problems)
        if self._weights is not None:
            self._weights.add(floats(batch.column(columns.weight)), rows, self._problems)
        if self._numbers is not None:
            self._numbers.add(batch, rows, self._problems)
        for place, at in enumerate(columns.categories):
            self._categories.add(place, *_distinct(batch.column(at)), rows, self._problems)
        if columns.id is not None:
            self._ids.add(*_texts(_named_rows(batch.column(columns.id))))
        if columns.texts:
            self._texts.add(*joined([_texts(batch.column(column)) for column in columns.texts]))

    def build(self, n_rows: int) -> Parsed:
        """The whole table."""
        common = self._numbers.why_all_fail() if self._problems and self._numbers is not None else None
        if common is not None:
            raise common
        self._problems.raise_if_any()
        if n_rows == 0:
            raise row_error(1, "the table has no rows")
        labels, y, indptr = build_labels(self._labels)
        split = None if self._columns.split is None else self._splits.build()
        weights = None if self._weights is None else self._weights.build()
        texts = self._texts.build() if self._columns.texts else None
        ids = None if self._columns.id is None else self._ids.build()
        X, names = (None, None) if self._numbers is None else self._numbers.build()
        kind, reported = self._columns.kind, None
        if kind == "table" and names is None:
            raise row_error(1, "a file with indices and values cannot have other feature columns", "indices")
        if X is not None and names is not None:
            reported = self._columns.reported(names, self._options, self._categories.types())
            X, names = self._categories.beside(X, names)
        elif kind == "text":
            reported = self._columns.reported((), self._options, {})
        return Parsed(kind, labels, y, split, X, texts, names, weights, indptr, reported, ids)

    def _add_labels(self, column: pa.Array, rows: npt.NDArray[np.int64]) -> None:
        if not self._listed:
            codes, names = _distinct(column)
            if self._fractional:
                names = [self._whole(name, rows[codes == code]) for code, name in enumerate(names)]
            if self._class_names is not None:
                names = [self._named(name, rows[codes == code]) for code, name in enumerate(names)]
            self._labels.add(codes, names, rows, self._problems)
            return
        assert isinstance(self._labels, LabelSets)
        missing = () if self._may_lack else rows[column.is_null().to_numpy(zero_copy_only=False)].tolist()
        for row in missing:
            self._problems.add(row, "the list of labels is missing; use an empty list for no labels", "label")
        sets = [
            [self._member(name, rows[k : k + 1]) for name in members or ()]
            for k, members in enumerate(column.to_pylist())
        ]
        self._labels.add_sets(np.arange(len(sets)), sets, rows, self._problems)

    def _member(self, value: object, rows: npt.NDArray[np.int64]) -> str:
        """The label that an element of a list is."""
        name = written(value)
        return self._named(self._whole(name, rows) if self._fractional else name, rows)

    def _whole(self, name: str, rows: npt.NDArray[np.int64]) -> str:
        """An integer as it is written, of a number that is whole; others are noted."""
        number = canonical(name, "number")
        if number and not _INTEGER.fullmatch(number):
            detail = (
                f"{shorten(name)} is not a whole number; a label is a string, an integer or a boolean: cast the "
                "column to strings"
            )
            for row in rows.tolist():
                self._problems.add(row, detail, "label")
        return number

    def _named(self, name: str, rows: npt.NDArray[np.int64]) -> str:
        """The names of integers, where the file's metadata have them."""
        if self._class_names is None or not name:
            return name
        place = int(name) if name.isdecimal() and len(name) < _LONGEST_PLACE else -1
        if 0 <= place < len(self._class_names):
            return self._class_names[place]
        for row in rows.tolist():
            detail = (
                f"{shorten(name)} is not the number of any of the {len(self._class_names)} labels that the file names"
            )
            self._problems.add(row, detail, "label")
        return "?"


def class_names(schema: pa.Schema, column: str) -> list[str] | None:
    """The names of a column's integers as Hugging Face's metadata give them; None where they do not."""
    try:
        features: Any = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        feature = features[column]
        while isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]
        feature = feature[0] if isinstance(feature, list) else feature  # a list's older form
        names = feature["names"]
    except (KeyError, ValueError, TypeError, IndexError, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _require(schema: pa.Schema, columns: Columns, column: int, what: str, fits: Any) -> None:
    type = _plain(schema.types[column])
    if not fits(type):
        detail = f"the column is of type {shorten(str(type))}, which cannot be used as {what}: cast it to strings"
        raise row_error(1, detail, columns.names[column])


def _plain(type: pa.DataType) -> pa.DataType:
    return type.value_type if pa.types.is_dictionary(type) else type


def _element(type: pa.DataType) -> pa.DataType:
    return _plain(type.value_type) if any(test(type) for test in _LISTS) else type


def _is_string(type: pa.DataType) -> bool:
    return any(test(type) for test in _STRINGS)


def _is_label(type: pa.DataType) -> bool:
    return _is_string(type) or is_number(type) or bool(pa.types.is_boolean(type))


def _is_level(type: pa.DataType) -> bool:
    return _is_label(type) or bool(pa.types.is_date(type) or pa.types.is_timestamp(type))


def _distinct(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Each row's index among the distinct values, as strings; "" is what is missing."""
    if pa.types.is_float16(_plain(column.type)):  # Arrow writes all digits of these, and of no other floats
        values = [None if x is None or x != x else str(np.float16(x)) for x in column.to_pylist()]
        column = pa.array(values, pa.large_string())
    elif pa.types.is_floating(_plain(column.type)):
        column = pc.if_else(pc.is_nan(column.cast(pa.float64())), None, column)
    elif pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    encoded = column.cast(pa.large_string()).fill_null("").dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def first_values_of_parquet(
    path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int
) -> dict[str, list[Any]]:
    """The values of the first rows by column.

    Raises
    ------
    FormatError
        The file is damaged, or these rows come to more than `most` allows.
    """
    with _refusing("Parquet"), pq.ParquetFile(path) as file:
        batch = next(file.iter_batches(batch_size=n_rows), None)
        names = file.schema_arrow.names
    return {normalized(name.strip()): [] for name in names} if batch is None else _values(batch, path, most)


def first_values_of_arrow(path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int) -> dict[str, list[Any]]:
    """As :func:`first_values_of_parquet`."""
    with _refusing("Arrow IPC"), pa.memory_map(str(path)) as source:
        reader = _opened(source)
        names, batch = reader.schema.names, next(_batches(reader), None)
        if batch is None:
            return {normalized(name.strip()): [] for name in names}
        batch.validate(full=True)
        return _values(batch.slice(0, n_rows), path, most)


@contextmanager
def blocks_of_parquet(
    path: Path, options: ImportOptions, most: MostUnpacked
) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """The names of the columns, and the rows in blocks, to be used within the context."""
    with pq.ParquetFile(path) as file:
        yield file.schema_arrow.names, map(_choosable, file.iter_batches(batch_size=BATCH_ROWS))


@contextmanager
def blocks_of_arrow(
    path: Path, options: ImportOptions, most: MostUnpacked
) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """As :func:`blocks_of_parquet`."""
    with pa.memory_map(str(path)) as source:
        reader = _opened(source)
        yield reader.schema.names, map(_choosable, _batches(reader))


def _opened(source: Any) -> Any:
    whole = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if whole else pa.ipc.open_stream(source)


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        return (reader.get_batch(at) for at in range(reader.num_record_batches))
    return iter(reader)


def _choosable(batch: pa.RecordBatch) -> pa.Table:
    """Rows as a table, of which Arrow can choose rows: it chooses none of views."""
    table = pa.Table.from_batches([batch])
    for at, field in enumerate(table.schema):
        plain = _CHOSEN_FROM.get(field.type)
        if plain is not None:
            table = table.set_column(at, field.with_type(plain), table.column(at).cast(plain))
    return table


def _values(batch: pa.RecordBatch, path: Path, most: MostUnpacked) -> dict[str, list[Any]]:
    most.check(bytes_read(batch), path.stat().st_size)
    return {normalized(name.strip()): values for name, values in batch.to_pydict().items()}


def _named_rows(column: pa.Array) -> pa.Array:
    """What rows are called; nothing where that is a list or the like."""
    type = _plain(column.type)
    return column if _is_label(type) or is_number(type) else pa.nulls(len(column), pa.string())


def _texts(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    texts = column.cast(pa.large_string()).fill_null("")
    _, offsets, blob = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(blob, dtype=np.uint8) if blob is not None else np.empty(0, dtype=np.uint8)
    return data[ends[0] : ends[-1]], np.diff(ends)
