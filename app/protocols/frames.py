"""Rows of a data frame, in the forms that MLflow's scoring server takes, as instances of a model."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from app.errors import InvalidInput, Item, Malformed
from app.protocols.asking import reads_texts
from app.services.model_cache import LoadedModel

_FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")


def from_document(loaded: LoadedModel, document: dict[str, Any]) -> list[Any]:
    """Instances of the one form that a body has; raises InvalidInput."""
    forms = [form for form in _FORMS if form in document]
    if len(forms) != 1:
        raise InvalidInput(f"The body must have one of {', '.join(_FORMS)}.")
    (form,) = forms
    given = document[form]
    if form == "dataframe_split":
        return _from_split(loaded, given)
    if isinstance(given, dict):  # columns by name, each a list
        columns = list(given)
        if not all(isinstance(column, list) for column in given.values()):
            raise _fault("every column is a list", f"/{form}")
        if len({len(column) for column in given.values()}) > 1:
            raise _fault("the columns have different lengths", f"/{form}")
        return [_instance(loaded, columns, row) for row in zip(*given.values(), strict=True)]
    if not isinstance(given, list):
        raise _fault("a list was expected", f"/{form}")
    return [_one(loaded, value) for value in given]


def from_csv(loaded: LoadedModel, content: bytes) -> list[Any]:
    """Instances of CSV with a head of column names; raises Malformed, InvalidInput."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise Malformed("The body is not CSV in UTF-8.") from error
    if not rows:
        raise Malformed("The body is empty; CSV with a head was expected.")
    head, instances = rows[0], []
    for number, row in enumerate(filter(None, rows[1:])):
        if len(row) != len(head):
            raise _fault(f"{len(row)} cells below a head of {len(head)}", f"/{number}")
        instances.append(_instance(loaded, head, row if reads_texts(loaded) else _numbers(row, number)))
    return instances


def _from_split(loaded: LoadedModel, given: Any) -> list[Any]:
    data = given.get("data") if isinstance(given, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        raise _fault("data is a list of rows", "/dataframe_split/data")
    columns = given.get("columns", list(range(len(data[0]))) if data else [])
    if not isinstance(columns, list) or any(len(row) != len(columns) for row in data):
        raise _fault("every row has as many values as there are columns", "/dataframe_split/data")
    return [_instance(loaded, [str(column) for column in columns], row) for row in data]


def _one(loaded: LoadedModel, value: Any) -> Any:
    if type(value) is str:
        return {"text": value}
    if not isinstance(value, dict):
        if reads_texts(loaded) and isinstance(value, list) and len(value) == 1:
            return {"text": value[0]}
        return value
    own = value.keys() in ({"text"}, {"features"}, {"indices", "values"})
    return value if own else _instance(loaded, list(value), list(value.values()))


def _instance(loaded: LoadedModel, columns: Sequence[str], row: Sequence[Any]) -> Any:
    """Named cells as an instance: a text's is in the column ``text``, or the only one."""
    if not reads_texts(loaded):
        if loaded.features.names() is None:
            return list(row)
        return {"features": {name: value for name, value in zip(columns, row, strict=True) if value is not None}}
    if "text" in columns:
        return {"text": row[list(columns).index("text")]}
    if len(columns) != 1:
        raise InvalidInput("The model reads texts: a column text was expected, or one column alone.")
    return {"text": row[0]}


def _numbers(row: Sequence[str], number: int) -> list[float | None]:
    try:
        return [float(cell) if cell.strip() else None for cell in row]
    except ValueError:
        raise _fault("a cell is no number", f"/{number}") from None


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The body is no data frame.", [Item(detail, pointer)])
