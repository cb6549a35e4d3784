"""The columns of a file as they were written, whatever the import made of them: files of predictions repeat these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets.schemas import ImportOptions
from app.formats.csv_cells import Records, read_texts, split_records
from app.formats.csv_header import names_of_header
from app.formats.json_array import array_records, begins_array
from app.formats.plain_file import MostUnpacked, plain_file
from app.formats.registry import FORMATS
from app.formats.window import BOM, Window, as_array
from app.formats.workbooks import WORKBOOKS, as_csv

# formats whose files have named columns
NAMED = frozenset({"csv", "tsv", "jsonl", "parquet", "arrow"}) | WORKBOOKS
BATCH_ROWS = 8192
# marks columns whose cells are JSON
JSON_FIELD = {b"polymargin": b"json"}

_CHOSEN_FROM = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@contextmanager
def source_columns(
    path: Path, format: str, options: ImportOptions, most: MostUnpacked
) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """The names of a file's columns and its rows in blocks, to be used within the context.

    Parameters
    ----------
    path : Path
    format : str
        One of NAMED.
    options : ImportOptions
        Those that the file was imported with.
    most : MostUnpacked

    Notes
    -----
    Cells of CSV files and workbooks are strings, those of Parquet and Arrow have their types. Values of JSON lines are
    JSON, in fields with the metadata JSON_FIELD; keys that a row lacks are null.
    """
    with plain_file(path, most, options.encoding if FORMATS[format].is_text else "utf-8") as plain:
        if format in WORKBOOKS:
            with as_csv(plain, most, options.sheet) as sheet, Window(sheet) as window:
                yield _csv(window, options, "comma")
        elif format in ("csv", "tsv"):
            with Window(plain) as window:
                yield _csv(window, options, "tab" if format == "tsv" else None)
        elif format == "jsonl":
            keys = _keys(plain)
            yield keys, _json_rows(plain, keys)
        elif format == "parquet":
            with pq.ParquetFile(plain) as file:
                batches = file.iter_batches(batch_size=BATCH_ROWS)
                yield file.schema_arrow.names, map(_table, batches)
        else:
            with pa.memory_map(str(plain)) as source:
                reader = _arrow_reader(source)
                yield reader.schema.names, _arrow_rows(reader)


def _csv(window: Window, options: ImportOptions, default: str | None) -> tuple[list[str], Iterator[pa.Table]]:
    names, delimiter, quote, line = names_of_header(window, options, default)
    return names, _csv_rows(window, names, delimiter, quote, line)


def _csv_rows(window: Window, names: list[str], delimiter: int, quote: int, line: int) -> Iterator[pa.Table]:
    width = len(names)
    while unread := window.fill(line):
        data = as_array(unread)
        records = Records(*split_records(data, window.at_end, width, line, delimiter, quote))
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


def _keys(path: Path) -> list[str]:
    """All keys of a file, in the order of their first row."""
    found: dict[str, None] = {}
    for row in _json_lines(path):
        if not found.keys() >= row.keys():
            found.update(dict.fromkeys(row))
    return list(found)


def _json_rows(path: Path, keys: list[str]) -> Iterator[pa.Table]:
    schema = pa.schema([pa.field(key, pa.string(), metadata=JSON_FIELD) for key in keys])
    block: list[dict[str, Any]] = []
    for row in _json_lines(path):
        block.append(row)
        if len(block) == BATCH_ROWS:
            yield _json_table(block, schema)
            block = []
    if block:
        yield _json_table(block, schema)


def _json_table(block: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    columns = [
        pa.array([orjson.dumps(row[key]).decode() if key in row else None for row in block], pa.string())
        for key in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with Window(path) as window:
        if begins_array(window.fill(1)):
            yield from (orjson.loads(record) for record, _ in array_records(window))
            return
    with path.open("rb") as lines:
        for line in lines:
            if not line.isspace():
                yield orjson.loads(line.removeprefix(BOM))


def _arrow_reader(source: Any) -> Any:
    whole = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if whole else pa.ipc.open_stream(source)


def _arrow_rows(reader: Any) -> Iterator[pa.Table]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        batches = (reader.get_batch(at) for at in range(reader.num_record_batches))
    else:
        batches = iter(reader)
    return map(_table, batches)


def _table(batch: pa.RecordBatch) -> pa.Table:
    """Rows as a table, of which Arrow can choose rows: it chooses none of views."""
    table = pa.Table.from_batches([batch])
    for at, field in enumerate(table.schema):
        plain = _CHOSEN_FROM.get(field.type)
        if plain is not None:
            table = table.set_column(at, field.with_type(plain), table.column(at).cast(plain))
    return table
