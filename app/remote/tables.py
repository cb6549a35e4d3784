"""Tables in memory as files that the service reads: of pandas, polars and Arrow, and rows as mappings.

The packages of a table are there already where one is given, so none of them is imported before.
"""

import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeGuard

import orjson

from app.remote.errors import ClientError

# a path, a DataFrame of pandas or polars, an Arrow table, or a list of dicts
Data = Any
_EXPECTED = "a path, a DataFrame of pandas or polars, an Arrow table, or a list of dicts"


def is_path(data: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether data is the path of a file."""
    return isinstance(data, str | os.PathLike)


@contextmanager
def as_file(data: Data) -> Iterator[Path]:
    """The path of data, or a temporary file that a table was written to: Parquet, or JSON lines of mappings.

    Raises
    ------
    ClientError
        Data is no table, has no rows, or has a column that Parquet cannot hold.
    """
    if is_path(data):
        yield Path(data)
        return
    with TemporaryDirectory() as folder:
        yield _written(data, Path(folder))


@contextmanager
def with_labels(features: Path, labels: Path | None, label_names: Path | None) -> Iterator[Path]:
    """An archive of features and labels, the same for the same files; without labels the file of features."""
    parts = {"features": features, "labels": labels, "names": label_names}
    given = {folder: path for folder, path in parts.items() if path is not None}
    if len(given) == 1:
        yield features
        return
    with TemporaryDirectory() as folder:
        packed = Path(folder, f"{features.name.partition('.')[0]}.tar")
        with tarfile.open(packed, "w") as archive:
            for place, path in given.items():
                member = tarfile.TarInfo(f"{place}/{path.name}")
                member.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(member, content)
        yield packed


def package_of(data: object) -> str:
    """The package that a table is of: ``pandas``, ``polars``, ``pyarrow`` or another."""
    return type(data).__module__.partition(".")[0]


def is_table(data: object) -> bool:
    """Whether data has named columns: a DataFrame, or what gives itself as an Arrow table."""
    if package_of(data) in ("pandas", "polars"):
        return type(data).__name__ == "DataFrame"
    return hasattr(data, "__arrow_c_stream__") and not is_column(data)


def is_column(data: object) -> bool:
    """Whether data is one column: a series of pandas or polars, or an Arrow array."""
    return type(data).__name__ in ("Series", "ChunkedArray", "StringArray", "LargeStringArray") and package_of(
        data
    ) in ("pandas", "polars", "pyarrow")


def rows_of(data: Any) -> list[dict[str, Any]]:
    """The rows of a table as mappings of plain values, in which NaN, NaT and NA are None."""
    package = package_of(data)
    if package == "pandas":
        _require_unique(data)
        columns = {str(name): [_plain(value) for value in data[name].tolist()] for name in data.columns}
    elif package == "polars":
        columns = {name: [_plain(value) for value in data[name].to_list()] for name in data.columns}
    else:
        table = _arrow(data)
        columns = {
            name: [_plain(value) for value in table.column(at).to_pylist()]
            for at, name in enumerate(table.column_names)
        }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _written(data: Any, folder: Path) -> Path:
    package = package_of(data)
    if is_table(data):
        _require_rows(len(data) if hasattr(data, "__len__") else None)
        path = folder / "rows.parquet"
        if package == "polars":
            data.write_parquet(path)
            return path
        if find_spec("pyarrow") is not None:
            from pyarrow.parquet import write_table

            write_table(_arrow(data), path)
            return path
        data = rows_of(data)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Sequence):
        raise ClientError(f"{type(data).__name__} cannot be uploaded: pass {_EXPECTED}")
    _require_rows(len(data))
    path = folder / "rows.jsonl"
    with path.open("wb") as file:
        for number, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise ClientError(f"Item {number} is of type {type(row).__name__}: pass {_EXPECTED}")
            values = {str(name): _plain(value) for name, value in row.items()}
            file.write(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY, default=str) + b"\n")
    return path


def _arrow(data: Any) -> Any:
    """Data as an Arrow table; its index, of pandas, is left out."""
    import pyarrow as pa

    try:
        if package_of(data) != "pandas":
            return pa.table(data)
        _require_unique(data)
        return pa.Table.from_pandas(_without_intervals(data.rename(columns=str)), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        # the first argument is the fault, the second names the column
        reason = "; ".join(str(each) for each in error.args)
        column = next((name for name in map(str, data.columns) if f"column {name} " in reason), None)
        where = "A column" if column is None else f"Column {column!r}"
        way = "make it one type" if column is None else f"make it one type, as frame[{column!r}].astype(str) does"
        raise ClientError(f"{where} has values of several types: {way}, or leave it out ({reason})") from None


def _without_intervals(data: Any) -> Any:
    """A frame of pandas whose intervals, such as those of ``pandas.cut``, are written as texts."""
    kinds = {name: getattr(dtype, "categories", None) for name, dtype in data.dtypes.items()}
    kinds = {name: data.dtypes[name] if kind is None else kind.dtype for name, kind in kinds.items()}
    written = {name: data[name].astype(object) for name, kind in kinds.items() if str(kind).startswith("interval")}
    return data.assign(**{name: each.map(str, na_action="ignore") for name, each in written.items()})


def _require_unique(data: Any) -> None:
    names = list(map(str, data.columns))
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ClientError(f"Two columns are named {repeated!r}: rename one, or leave it out")


def _require_rows(n_rows: int | None) -> None:
    if n_rows == 0:
        raise ClientError("The table has no rows, so nothing was sent. Check how the table was read or filtered.")


def _plain(value: Any) -> Any:
    """A value as JSON has it; what is missing is None."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return value if value == value else None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "isoformat"):
        return None if str(value) == "NaT" else value.isoformat()
    return None if type(value).__name__ in ("NAType", "NaTType") else value
