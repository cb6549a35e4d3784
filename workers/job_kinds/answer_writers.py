"""Files of answers: pieces on disk, joined with the columns of the input to Parquet, CSV, JSON lines or a workbook."""

import base64
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.formats.json_records import JSON_FIELD
from app.formats.label_sets import SEPARATORS
from app.store.disk_space import writing_to

# sets of labels have these joined by a separator where a cell holds no list; other lists are JSON there
JOINED = frozenset(
    {"labels", "notations", "names", "probabilities", "sure", "sure_ancestors", "scores"}
    | {"alternatives", "alternative_names", "alternative_probabilities", "alternative_scores"}
)
_RENAMED = "input."
# what spreadsheets read as a formula, unless it is a number or several with a separator between them
_FORMULA = r"^[=+\-@\t\r]"
_ONE_NUMBER = r"[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?"
_NUMBER = rf"^{_ONE_NUMBER}([;|]{_ONE_NUMBER})*$"
_BOM = b"\xef\xbb\xbf"


class Inputs:
    """The columns of the input, read once from the beginning to the end.

    Parameters
    ----------
    names : sequence of str
        What they are called in the file of answers.
    blocks : iterator of Table
        Its rows.
    places : int64 array, optional
        The place among them of each row of the dataset, where rows have been deleted.
    """

    def __init__(
        self, names: Sequence[str], blocks: Iterator[pa.Table], places: NDArray[np.int64] | None = None
    ) -> None:
        self.names = tuple(names)
        self._blocks, self._places = blocks, places
        self._block: pa.Table | None = None
        self._begin = self._end = 0

    def at(self, rows: NDArray[np.int64]) -> pa.Table:
        """Some rows, whose numbers rise from one call to the next as well."""
        found = []
        rows = rows if self._places is None else np.asarray(self._places)[rows]
        while len(rows):
            while self._end <= rows[0]:
                self._block = next(self._blocks)
                self._begin, self._end = self._end, self._end + self._block.num_rows
            assert self._block is not None
            n = int(np.searchsorted(rows, self._end))
            found.append(self._block.take(pa.array(rows[:n] - self._begin)))
            rows = rows[n:]
        return pa.concat_tables(found)


@dataclass(frozen=True)
class Layout:
    """How a file is written.

    Attributes
    ----------
    answers : sequence of str
        The columns of answers.
    separator : str
        Between the labels of a set.
    bom : bool
        A CSV file begins with a byte order mark.
    about : sequence of (str, object)
        What a workbook says of the model and its answers, line by line.
    """

    answers: Sequence[str]
    separator: str = SEPARATORS[0]
    bom: bool = False
    about: Sequence[tuple[str, Any]] = ()


def renamed(inputs: Sequence[str], answers: Iterable[str]) -> list[str]:
    """Names of the input's columns: their own, or where an answer has it the name with ``input.`` before it."""
    taken, found = {*answers, *inputs}, []
    answered = {*answers}
    for name in inputs:
        given = name
        if name in answered:
            given = _RENAMED + name
            while given in taken:
                given = _RENAMED + given
            taken.add(given)
        found.append(given)
    return found


def write_part(path: Path, table: pa.Table) -> None:
    """Write a piece of the answers, which appears whole or not at all."""
    with _appearing(path) as file:
        pq.write_table(table, file, compression="lz4")


def join(parts: Sequence[Path], path: Path, format: str, inputs: Inputs | None, layout: Layout) -> None:
    """Write all pieces, in order and beside the columns of the input, to one file, which appears whole or not at all.

    Parameters
    ----------
    parts : sequence of Path
        What :func:`write_part` wrote, by rising rows.
    format : str
        parquet, csv, jsonl or xlsx.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = (_beside(pq.read_table(part), inputs, layout.answers) for part in parts)
    with _appearing(path) as file:
        if format == "xlsx":
            # loaded by those who write a workbook alone
            from workers.job_kinds.answer_workbooks import write_workbook

            write_workbook((_flat(table, layout) for table in tables), file, layout.answers, layout.about)
        else:
            _WRITERS[format](tables, file, layout)


@contextmanager
def _appearing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with writing_to(path), temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(answers: pa.Table, inputs: Inputs | None, columns: Sequence[str]) -> pa.Table:
    """The columns of the input, then the answers."""
    rows = answers["row"].to_numpy()
    answers = answers.select(list(columns))
    if inputs is None:
        return answers
    given = inputs.at(rows)
    given = given.rename_columns(list(inputs.names))
    fields = [*given.schema, *answers.schema]
    return pa.Table.from_arrays([*given.columns, *answers.columns], schema=pa.schema(fields))


def _parquet(tables: Iterable[pa.Table], file: BinaryIO, layout: Layout) -> None:
    writer = None
    for table in tables:
        plain = _without_json(table)
        writer = pq.ParquetWriter(file, plain.schema) if writer is None else writer
        writer.write_table(plain)
    if writer is not None:
        writer.close()


def _csv(tables: Iterable[pa.Table], file: BinaryIO, layout: Layout) -> None:
    if layout.bom:
        file.write(_BOM)
    for number, table in enumerate(tables):
        plain = _flat(table, layout)
        plain = pa.table({_guarded_name(name): _guarded(column) for name, column in _columns(plain)})
        pacsv.write_csv(plain, file, pacsv.WriteOptions(include_header=number == 0))


def _jsonl(tables: Iterable[pa.Table], file: BinaryIO, layout: Layout) -> None:
    for table in tables:
        of_json = [field.name for field in table.schema if _is_json(field)]
        rows = table.to_pylist()
        for row in rows:
            for name in of_json:
                if row[name] is None:
                    del row[name]
                else:
                    row[name] = orjson.Fragment(row[name])
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE, default=_as_text) for row in rows)


_WRITERS: dict[str, Callable[[Iterable[pa.Table], BinaryIO, Layout], None]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
}


def _columns(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    return zip(table.column_names, table.columns, strict=True)


def _is_json(field: pa.Field) -> bool:
    return bool(field.metadata and JSON_FIELD.items() <= field.metadata.items())


def _without_json(table: pa.Table) -> pa.Table:
    """Strings in place of JSON: a string's own characters, other values as JSON writes them, and null for null."""
    for at, field in enumerate(table.schema):
        if _is_json(field):
            cells = [_plain(cell) for cell in table[at].to_pylist()]
            table = table.set_column(at, pa.field(field.name, pa.string()), pa.array(cells, pa.string()))
    return table


def _plain(cell: str | None) -> str | None:
    if cell is None or cell == "null":
        return None
    return orjson.loads(cell) if cell.startswith('"') else cell


def _flat(table: pa.Table, layout: Layout) -> pa.Table:
    """The table without lists: the labels of sets are joined, other lists and structures are JSON.

    Levels are strings, and bytes that are no text are in base64, as CSV has no other form of them.
    """
    table = _without_json(table)
    n_inputs = len(table.column_names) - len(layout.answers)
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            mine = at >= n_inputs and field.name in JOINED
            cells = [_joined(cell, layout.separator) if mine else _as_json(cell) for cell in table[at].to_pylist()]
            table = table.set_column(at, field.name, pa.array(cells, pa.string()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[at].cast(field.type.value_type))
        elif pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            cells = [None if cell is None else _of_bytes(cell) for cell in table[at].to_pylist()]
            table = table.set_column(at, field.name, pa.array(cells, pa.string()))
    return table


def _as_text(value: Any) -> str:
    return _of_bytes(value) if isinstance(value, bytes) else str(value)


def _of_bytes(cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return base64.b64encode(cell).decode()


def _joined(cell: list[Any] | None, separator: str) -> str | None:
    if cell is None:
        return None
    return separator.join("" if each is None else _written(each) for each in cell)


def _written(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _as_json(cell: Any) -> str | None:
    return None if cell is None else orjson.dumps(cell, default=_as_text).decode()


def _guarded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings that no spreadsheet reads as a formula: these have an apostrophe before them."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    formula = pc.match_substring_regex(column, _FORMULA)
    if not pc.any(formula).as_py():
        return column
    harmful = pc.and_(formula, pc.invert(pc.match_substring_regex(column, _NUMBER)))
    mark, nothing = pa.scalar("'", column.type), pa.scalar("", column.type)
    return pc.if_else(harmful, pc.binary_join_element_wise(mark, column, nothing), column)


def _guarded_name(name: str) -> str:
    return f"'{name}" if re.match(_FORMULA, name) and not re.match(_NUMBER, name) else name
