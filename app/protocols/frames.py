"""Rows of a data frame, in the forms that MLflow's scoring server takes, as instances of a model."""

import csv
import io
import unicodedata
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Literal

import orjson

from app.errors import InvalidInput, Item, Malformed
from app.features.names import list_widths
from app.predictions.inspection import MOST_NAMED
from app.predictions.model_cache import LoadedModel
from app.protocols.adapter import lists_of, reads_texts, require_few
from app.storable_text import require_storable
from app.values import canonical

_FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")
_Kind = Literal["texts", "named", "numbered", "records"]


def from_document(loaded: LoadedModel, document: dict[str, Any], most: int) -> tuple[list[Any], bool]:
    """Instances of the one form that a body has, at most ``most``; raises InvalidInput.

    The second value says whether names of columns were given and are unknown to the model, which reads by position.
    """
    forms = [form for form in _FORMS if form in document]
    if len(forms) != 1:
        raise InvalidInput(f"The body must have one of {', '.join(_FORMS)}.")
    (form,) = forms
    given, kind = document[form], _kind(loaded)
    if form == "dataframe_split":
        return _from_split(loaded, kind, given, most)
    if isinstance(given, dict):  # columns by name, each a list
        columns = list(given)
        if not all(isinstance(column, list) for column in given.values()):
            raise _fault("every column is a list", f"/{form}")
        if len({len(column) for column in given.values()}) > 1:
            raise _fault("the columns have different lengths", f"/{form}")
        require_few(len(given[columns[0]]) if columns else 0, most, f"/{form}")
        _require_all(loaded, kind, columns, f"/{form}")
        return [_instance(kind, columns, row) for row in zip(*given.values(), strict=True)], _unread(kind, columns)
    if not isinstance(given, list):
        raise _fault("expected a list", f"/{form}")
    require_few(len(given), most, f"/{form}")
    if form == "dataframe_records":
        _require_all(loaded, kind, set().union(*(row for row in given if isinstance(row, dict))), f"/{form}")
    first = list(given[0]) if given and isinstance(given[0], dict) and not _is_instance(given[0]) else None
    return [_one(kind, value, first, f"/{form}/{at}") for at, value in enumerate(given)], _unread(kind, first or ())


def from_csv(loaded: LoadedModel, content: bytes, most: int) -> tuple[list[Any], bool]:
    """As :func:`from_document`, of CSV with a header of column names; raises Malformed, too."""
    try:
        reader = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
        head = next(reader, None)
        rows = list(islice(filter(None, reader), most + 1))
    except (csv.Error, UnicodeDecodeError) as error:
        raise Malformed("The body is not CSV in UTF-8.") from error
    if head is None:
        raise Malformed("The body is empty; send CSV with a header.")
    require_few(len(rows), most, "")
    require_storable([head, *rows])
    kind, lists, instances = _kind(loaded), lists_of(loaded), []
    _require_once(kind, head, "")
    _require_all(loaded, kind, head, "")
    for number, row in enumerate(rows):
        if len(row) != len(head):
            raise _fault(f"{len(row)} cells below a head of {len(head)}", f"/{number}")
        instances.append(_instance(kind, head, _cells(loaded, kind, head, row, number, lists)))
    return instances, _unread(kind, head)


def _kind(loaded: LoadedModel) -> _Kind:
    # asked once a request: a model of some of its dataset's features builds the list of their names each time
    if reads_texts(loaded):
        return "texts"
    if loaded.features.columns is not None:
        return "records"
    return "numbered" if loaded.features.names() is None else "named"


def _from_split(loaded: LoadedModel, kind: _Kind, given: Any, most: int) -> tuple[list[Any], bool]:
    data = given.get("data") if isinstance(given, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        raise _fault("data is a list of rows", "/dataframe_split/data")
    require_few(len(data), most, "/dataframe_split/data")
    columns = given.get("columns", list(range(len(data[0]))) if data else [])
    if not isinstance(columns, list) or any(len(row) != len(columns) for row in data):
        raise _fault("every row must have one value per column", "/dataframe_split/data")
    names = [str(column) for column in columns]
    _require_once(kind, names, "/dataframe_split/columns")
    _require_all(loaded, kind, names, "/dataframe_split/columns")
    return [_instance(kind, names, row) for row in data], _unread(kind, names)


def _unread(kind: _Kind, columns: Sequence[str]) -> bool:
    """Whether columns have names, other than their places, that the model does not know."""
    return kind == "numbered" and list(columns) != [str(at) for at in range(len(columns))]


def _require_once(kind: _Kind, columns: Sequence[str], pointer: str) -> None:
    """Where columns go by their names, one of two of the same name would be lost."""
    if kind != "numbered" and len(set(columns)) < len(columns):
        raise _fault("two columns have one name", pointer)


def _require_all(loaded: LoadedModel, kind: _Kind, columns: Collection[str], pointer: str) -> None:
    """A number that is not there would be 0; of tables with texts or categories it is a missing value."""
    names = loaded.features.names() or ()
    if kind != "named" or len(names) > MOST_NAMED:
        return
    given, lists = {unicodedata.normalize("NFC", name) for name in columns}, list_widths(names)
    missing = [
        name
        for name in names
        if given.isdisjoint({unicodedata.normalize("NFC", name), *({name.rpartition(".")[0]} & lists.keys())})
    ]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise _fault(f"the model reads the column {missing[0]!r}{more}, which the data frame does not have", pointer)


def _one(kind: _Kind, value: Any, columns: list[str] | None, pointer: str) -> Any:
    """A row as an instance; where the model knows no names, in the order of the first row's ``columns``."""
    if type(value) is str:
        return {"text": value}
    if not isinstance(value, dict):
        if kind == "texts" and isinstance(value, list) and len(value) == 1:
            return {"text": value[0]}
        return value
    if _is_instance(value):
        return value
    if kind == "numbered" and columns is not None:
        if value.keys() != set(columns):
            raise _fault("the row has other columns than the first row", pointer)
        return [value[name] for name in columns]
    return _instance(kind, list(value), list(value.values()))


def _is_instance(value: dict[str, Any]) -> bool:
    """Whether an object is an instance as the API has it."""
    return value.keys() in ({"text"}, {"record"}, {"features"}, {"indices", "values"})


def _instance(kind: _Kind, columns: Sequence[str], row: Sequence[Any]) -> Any:
    """Named cells as an instance: a text's is in the column ``text``, or the only one."""
    if kind == "numbered":
        return list(row)
    if kind == "records":
        return {"record": dict(zip(columns, row, strict=True))}
    if kind == "named":
        return {"features": dict(zip(columns, row, strict=True))}
    if "text" in columns:
        return {"text": row[list(columns).index("text")]}
    if len(columns) != 1:
        raise InvalidInput("The model reads texts: send a column named text, or a single column.")
    return {"text": row[0]}


def _cells(
    loaded: LoadedModel,
    kind: _Kind,
    head: Sequence[str],
    row: Sequence[str],
    number: int,
    lists: Collection[str],
) -> Sequence[Any]:
    """Cells of CSV as the values that they encode."""
    columns = loaded.features.columns
    if columns is not None:
        as_numbers = set(columns.numbers)
        return [
            _numbers([cell], number)[0] if name in as_numbers else _list(cell) if name in lists else cell or None
            for name, cell in zip(head, row, strict=True)
        ]
    return row if kind == "texts" else _numbers(row, number)


def _numbers(row: Sequence[str], number: int) -> list[float | None]:
    try:
        if any("_" in cell for cell in row):  # which Python alone takes for a part of a number
            raise ValueError
        return [float(canonical(cell, "number")) if cell.strip() else None for cell in row]
    except ValueError:
        raise _fault("a cell is not a number", f"/{number}") from None


def _list(cell: str) -> Any:
    """The list that pandas or JSON writes into a cell; what is none is left to the model's own check."""
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell or None


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The body is no data frame.", [Item(detail, pointer)])
