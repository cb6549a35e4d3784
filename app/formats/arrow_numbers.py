"""The numeric columns of an Arrow table as a sparse matrix, and the memory that its rows need once they are read.

The table's own size does not show that memory. A value of a dictionary is there once for all rows that have it, and so
may be the text that many views show; lists of no elements take no bytes at all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from app.formats.columns import Columns
from app.formats.labels import repeated_name
from app.formats.matrix import MAX_INDEX, Rows
from app.formats.row_groups import ListLengths
from app.formats.table import FormatError, Problems, row_error, shorten

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_PAIRS = ["indices", "values"]
_MOST_FEATURES = 10_000_000
# of each row at least: its label, and where it begins
_ROW_BYTES = 8


class Numbers:
    """Columns of numbers, lists of equally many numbers, or lists `indices` and `values`.

    Numbers that are missing are NaN where `keep_missing` says so, and else noted.

    Raises
    ------
    FormatError
        A column is none of these.
    """

    def __init__(self, schema: pa.Schema, columns: Columns, keep_missing: bool = False) -> None:
        self._rows = Rows()
        self._keep_missing = keep_missing
        self._places = columns.numeric
        self._names = [columns.names[at] for at in columns.numeric]
        self._sparse = sorted(self._names) == _PAIRS and all(_is_list(schema.types[at]) for at in self._places)
        self._widths: list[int | None] = [None if _is_list(schema.types[at]) else 1 for at in self._places]
        self._lengths = [ListLengths() for _ in self._places]
        for at, name in zip(self._places, self._names, strict=True):
            type = schema.types[at].value_type if _is_list(schema.types[at]) else schema.types[at]
            if not (is_number(type) or pa.types.is_boolean(type)):
                detail = (
                    f"the column is of type {shorten(str(schema.types[at]))}, expected numbers (leave the column out "
                    "with ignore_columns, name it in text_columns or category_columns, or pass infer_columns)"
                )
                raise row_error(1, detail, name)

    def add(self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64], problems: Problems) -> None:
        """Append rows, of which row k has the number `rows[k]`; what is not finite is noted."""
        if self._sparse:
            self._add_pairs(batch, rows, problems)
            return
        if not self._places:
            self._rows.add(np.zeros(len(rows), np.int64), np.empty(0, np.int32), np.empty(0))
            return
        blocks = [
            self._block(batch.column(at), place, rows, problems) for place, at in enumerate(self._places)
        ]  # each (n, width)
        dense = np.hstack(blocks) if len(blocks) > 1 else blocks[0]
        row, column = np.nonzero(dense)
        lengths = np.bincount(row, minlength=len(rows)).astype(np.int64)
        self._rows.add(lengths, column.astype(np.int32), dense[row, column])

    def why_all_fail(self) -> FormatError | None:
        """The lists that are not as long as most, where that in the first row is one of them."""
        for name, width, lengths in zip(self._names, self._widths, self._lengths, strict=True):
            odd = None if width is None else lengths.odd_ones(shorten(name), width)
            if odd is not None:
                return odd
        return None

    def build(self) -> tuple[csr_matrix[np.float64], list[str] | None]:
        """The matrix, and the names of its columns: those of lists with a point and the place."""
        if self._sparse:
            return self._rows.build(), None
        names: list[str] = []
        for name, width in zip(self._names, self._widths, strict=True):
            names += [name] if width == 1 else [f"{name}.{place}" for place in range(width or 0)]
        twice = repeated_name(names)
        if twice is not None:
            raise row_error(1, f"two features are named '{shorten(twice)}': a column, and an element of a list", twice)
        return self._rows.build(len(names)), names

    def _block(
        self, column: pa.Array, place: int, rows: npt.NDArray[np.int64], problems: Problems
    ) -> npt.NDArray[np.float64]:
        name = self._names[place]
        if not _is_list(column.type):
            values = floats(column)
            self._note(values, column, rows, name, problems)
            return values[:, None]
        lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
        width, there = self._widths[place], lengths >= 0
        if width is None:
            first = lengths[there][:1] if self._keep_missing else lengths[:1]
            width = self._widths[place] = int(max(first.max(initial=0), 0))
        if width > _MOST_FEATURES:
            raise row_error(
                int(rows[0]), f"the list has {width:,} numbers; at most {_MOST_FEATURES:,} are allowed", name
            )
        self._lengths[place].add_many(lengths[there], rows[there])
        wrong = (lengths != width) & there if self._keep_missing and width else lengths != width
        for k in np.flatnonzero(wrong).tolist():
            found = "is missing" if lengths[k] < 0 else f"has {lengths[k]} numbers"
            problems.add(int(rows[k]), f"the list {found}, expected {width} as in the first row", name)
        if wrong.any():
            return np.zeros((len(rows), width))
        flat = column.flatten()
        values = floats(flat)
        self._note(values, flat, np.repeat(rows[there], width), name, problems)
        block = np.full((len(rows), width), np.nan)
        block[there] = values.reshape(int(there.sum()), width)
        return block

    def _add_pairs(self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64], problems: Problems) -> None:
        at = dict(zip(self._names, self._places, strict=True))
        indices, values = batch.column(at["indices"]), batch.column(at["values"])
        lengths = pc.list_value_length(indices).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        others = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        for name, column in (("indices", indices), ("values", values)):
            for row in rows[column.is_null().to_numpy(zero_copy_only=False)].tolist():
                problems.add(row, "the list is missing", name)
        wrong = np.flatnonzero(lengths != others)
        for k in wrong.tolist():
            problems.add(int(rows[k]), f"{lengths[k]} indices and {others[k]} values")
        if len(wrong):
            return
        flat = indices.flatten()
        numbers = flat.cast(pa.float64(), safe=False).fill_null(-1.0).to_numpy(zero_copy_only=False)
        row = np.repeat(np.arange(len(rows)), lengths)
        bad = ~((numbers >= 0) & (numbers < MAX_INDEX) & (numbers == np.floor(numbers)))
        for k in np.unique(row[bad]).tolist():
            problems.add(int(rows[k]), f"an index is not an integer between 0 and {MAX_INDEX - 1}", "indices")
        found = np.where(bad, 0, numbers).astype(np.int32)
        order = np.lexsort((found, row))
        twice = (np.diff(found[order]) == 0) & (np.diff(row[order]) == 0)
        if not bad.any():
            for k in np.unique(row[order][1:][twice]).tolist():
                problems.add(int(rows[k]), "an index is given twice", "indices")
        given = values.flatten()
        weights = floats(given)
        self._note(weights, given, rows[row], "values", problems)
        self._rows.add(lengths, found, weights)

    def _note(
        self,
        values: npt.NDArray[np.float64],
        column: pa.Array,
        rows: npt.NDArray[np.int64],
        name: str,
        problems: Problems,
    ) -> None:
        wrong = np.flatnonzero(np.isinf(values) if self._keep_missing else ~np.isfinite(values))
        missing = column.is_null().to_numpy(zero_copy_only=False) if len(wrong) else None
        for k in wrong.tolist():
            assert missing is not None
            detail = "the number is missing" if missing[k] else f"{values[k]} is not a finite number"
            problems.add(int(rows[k]), detail, name)
        values[wrong] = 0.0


def _is_list(type: pa.DataType) -> bool:
    return any(test(type) for test in _LISTS)


def is_number(type: pa.DataType) -> bool:
    """Whether values of a type are numbers; as decimals databases write prices."""
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers or booleans as float64, NaN where one is missing."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # the cast to floats itself misses the nearest one
    return np.array(column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False))


def bytes_read(batch: pa.RecordBatch) -> int:
    """Bytes of all values of a batch, each counted as often as rows have it."""
    return sum(map(_column_bytes, batch.columns), _ROW_BYTES * int(batch.num_rows))


def _column_bytes(column: pa.Array) -> int:
    type = column.type
    if any(test(type) for test in _LISTS):
        return _ROW_BYTES * len(column) + _column_bytes(column.flatten())
    if pa.types.is_dictionary(type):
        lengths = _lengths(column.dictionary)
        return int(column.nbytes if lengths is None else pc.sum(lengths.take(column.indices)).as_py() or 0)
    lengths = _lengths(column) if pa.types.is_string_view(type) else None
    return int(column.nbytes if lengths is None else pc.sum(lengths).as_py() or 0)


def _lengths(texts: pa.Array) -> pa.Array | None:
    """Bytes of each text; None of what is none."""
    if pa.types.is_string_view(texts.type):
        views: npt.NDArray[np.int32] = np.frombuffer(texts.buffers()[1], np.int32)  # four a view, the length first
        return pa.array(views[::4][texts.offset : texts.offset + len(texts)].astype(np.int64))
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return pc.binary_length(texts).cast(pa.int64())
    return None
