"""The objects of JSON lines, or of a JSON array, as they are written."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from app.datasets.schemas import ImportOptions
from app.formats.json_array import array_records, begins_array
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError
from app.formats.window import BOM, MAX_RECORD_BYTES, Window

# marks columns whose cells are JSON
JSON_FIELD = {b"polymargin": b"json"}
_BLOCK_ROWS = 8192
_MOST_LINES_BYTES = 8 << 20


def first_values(path: Path, options: ImportOptions, most: MostUnpacked, n_rows: int) -> dict[str, list[Any]]:
    """The values of the first rows by key; rows that lack a key are left out of its values."""
    columns: dict[str, list[Any]] = {}
    for row in first_rows(path, n_rows):
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return dict(sorted(columns.items()))  # the order of keys says nothing


def first_rows(path: Path, n_rows: int) -> Iterator[dict[str, Any]]:
    """The first rows; lines that are none are left out, and so is a cut end."""
    with path.open("rb") as file:
        head = file.read(_MOST_LINES_BYTES)
        in_array = begins_array(head)
        lines = [] if in_array else (head + file.readline(MAX_RECORD_BYTES)).splitlines()
    for line in itertools.islice(_array_lines(path) if in_array else filter(None, lines), n_rows):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(row, dict):
            yield row


@contextmanager
def blocks(path: Path, options: ImportOptions, most: MostUnpacked) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """All keys, and the values as JSON in blocks of rows, to be used within the context."""
    keys = _keys(path)
    yield keys, _blocks(path, keys)


def _keys(path: Path) -> list[str]:
    found: dict[str, None] = {}
    for row in _rows(path):
        if not found.keys() >= row.keys():
            found.update(dict.fromkeys(row))
    return list(found)


def _blocks(path: Path, keys: list[str]) -> Iterator[pa.Table]:
    schema = pa.schema([pa.field(key, pa.string(), metadata=JSON_FIELD) for key in keys])
    block: list[dict[str, Any]] = []
    for row in _rows(path):
        block.append(row)
        if len(block) == _BLOCK_ROWS:
            yield _table(block, schema)
            block = []
    if block:
        yield _table(block, schema)


def _table(block: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    columns = [
        pa.array([orjson.dumps(row[key]).decode() if key in row else None for row in block], pa.string())
        for key in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with Window(path) as window:
        if begins_array(window.fill(1)):
            yield from (orjson.loads(record) for record, _ in array_records(window))
            return
    with path.open("rb") as lines:
        for line in lines:
            if not line.isspace():
                yield orjson.loads(line.removeprefix(BOM))


def _array_lines(path: Path) -> Iterator[bytes]:
    with Window(path) as window, suppress(FormatError):  # the import reports what is wrong further down
        for record, _ in array_records(window):
            yield record
