"""The canonical form of a value, by the type of its column.

All input parses categories and labels here: uploaded files of all formats, appended rows, corrections, records of
requests and the protocols. So `True` in a CSV file, `true` in JSON and a boolean of a Parquet file are one level, and
so are `7`, `7.0` and a float column of integers.
"""

import datetime
import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

ColumnType = Literal["boolean", "number", "date", "text"]
# of the rules below; increase it if what they return changes, and keep the old rules for what was stored
VERSION = 1

_SPELLED: tuple[ColumnType, ...] = ("boolean", "number", "date")
_BOOLEANS = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_DIGITS = {"true": "1", "false": "0"}
_WORDS = {"1": "true", "0": "false"}
# a leading zero makes a code, as that of a place; an exponent without a sign may be one, too, as 1E30 of the ICD is
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-][0-9]{1,3})?")
_DIGIT = re.compile(r"[0-9]")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_CODE = re.compile(r"0[0-9]+(?:\.0*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]{1,9}))?"
    r"\s*(Z|[+-][0-9]{2}:?[0-9]{2})?"
)


def written(value: object) -> str:
    """A value of a typed format as a plain text file would write it; "" for a missing value.

    Raises
    ------
    TypeError
        The value is neither a string, a number, a boolean nor a date.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _of_float(value)
    if isinstance(value, Decimal):
        return _of_float(float(value)) if value % 1 else str(int(value))
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be the value of a category")


def column_type(values: Iterable[str]) -> ColumnType:
    """The type of a column with these values as text; empty values are ignored."""
    fitting, present = set(_SPELLED), False
    for value in map(str.strip, values):
        if value:
            present = True
            fitting -= {kind for kind in fitting if _read(value, kind) is None}
            if not fitting:
                break
    if not present:
        return "text"
    return next((kind for kind in _SPELLED if kind in fitting), "text")


def canonical(value: str, type: ColumnType) -> str:
    """The canonical form of a value of a column.

    A boolean is `true` or `false`, a whole number an integer, another number the shortest decimal that reads back as
    the same 64-bit number, a date `2024-01-31`, with a time only where it has one, in UTC where it has a zone. All
    else, and every text, is in Unicode's form NFC, without white space around it.

    Parameters
    ----------
    value : str
        As `written` returns it.
    type : "boolean", "number", "date" or "text"
        Type of the column.
    """
    value = normalized(value)
    word = _BOOLEANS.get(value)
    if type == "boolean":
        if word is None:
            number = _read(value, "number")
            return value if number is None else _WORDS.get(number, value)
        return word
    if type == "number" and word is not None:
        return _DIGITS[word]
    found = None if type == "text" else _read(value, type)
    return found if found is not None else word or value


def normalized(text: str) -> str:
    """Text in Unicode's form NFC without white space around it: how labels and levels are compared."""
    return unicodedata.normalize("NFC", text).strip()


def _read(value: str, kind: str) -> str | None:
    """The canonical form of a value as a boolean, number or date; None if it is not one."""
    if kind == "boolean":
        return _BOOLEANS.get(value)
    return _number(value) if kind == "number" else _date(value)


def _number(value: str) -> str | None:
    if not _NUMBER.fullmatch(value) or not _DIGIT.search(value):
        return None
    if _INTEGER.fullmatch(value):  # of any length: codes of 20 digits are none of a float
        digits = value.lstrip("+-")
        return f"-{digits}" if value.startswith("-") and digits != "0" else digits
    number = float(value)
    return _of_float(number) if math.isfinite(number) else None


def _of_float(number: float) -> str:
    if not math.isfinite(number):
        return "" if math.isnan(number) else str(number)
    return str(int(number)) if number.is_integer() else repr(number)


def _date(value: str) -> str | None:
    try:
        if _DATE.fullmatch(value):
            return datetime.date.fromisoformat(value).isoformat()
        match = _MOMENT.fullmatch(value)
        if match is None:
            return None
        day, time, fraction, zone = match.groups()
        moment = datetime.datetime.fromisoformat(f"{day}T{time}{'' if zone in (None, 'Z') else zone}")
    except ValueError:
        return None
    if moment.tzinfo is not None:
        try:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        except OverflowError:
            return None
    digits = (fraction or "").rstrip("0")
    if zone is None and not digits and moment.time() == datetime.time():
        return moment.date().isoformat()
    return f"{moment.isoformat()}{'.' if digits else ''}{digits}{'' if zone is None else 'Z'}"


def whole_number(text: str) -> str | None:
    """A whole number written as an integer without leading zeros; None for anything else."""
    number = _number(text.lstrip("0") or "0") if _CODE.fullmatch(text) else _number(text)
    return number if number is not None and _INTEGER.fullmatch(number) else None
