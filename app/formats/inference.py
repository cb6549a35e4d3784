"""Infers the types of columns from their first values: text, number, category, or left out.

A column is of numbers if all its values are, and none begins with a zero as postcodes do; of dates if all its values
are; of texts if they have many words, or several and the column's name says so; of categories if they repeat, and else
of names of rows. What does not fit further down in the file is refused there, with its line: nothing is ever read in
two ways.
"""

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from app.datasets.column_names import is_named_text
from app.datasets.formats import FORMATS
from app.datasets.schemas import ImportOptions
from app.descriptions import loaded
from app.formats.columns import indicator_columns, named_columns
from app.formats.plain_file import MostUnpacked
from app.formats.table import row_error

MOST_ROWS = 10_000
# why columns are left out
NO_VALUES, LISTS, DATES, DISTINCT = "no values", "lists", "dates", "a value of its own in each row"
_TEXT_WORDS, _TEXT_LENGTH = 3, 40
# so many different values are levels in any case; of more, this share of the rows at most
_FEW_LEVELS, _LEVELS_SHARE = 20, 0.5

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
# with separators of thousands, as 1.305,05 or 1,305.05
_GROUPED_NUMBER = re.compile(r"[+-]?[0-9]{1,3}(?:(?:\.[0-9]{3})+(?:,[0-9]+)?|(?:,[0-9]{3}){2,}|(?:,[0-9]{3})+\.[0-9]+)")
_WRITTEN_NUMBERS = (_NUMBER, _COMMA_NUMBER, _GROUPED_NUMBER)
# what programs and people write in place of a missing value, in lower case
_MISSING = {"na", "n/a", "#n/a", "nan", "null", "none", "-", "?"}
_CODE = re.compile(r"0[0-9]+")
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s*(?:Z|[+-][0-9:]+)?)?"
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}(?: [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)?"
)


def inferred(
    path: Path, format: str, options: ImportOptions, most: MostUnpacked | None = None
) -> tuple[ImportOptions, dict[str, str]]:
    """Options that say of every column what it is.

    Parameters
    ----------
    path : Path
        Of a plain file.
    format : str
        A name in FORMATS, of a format with columns.
    options : ImportOptions
        What they say of a column holds.
    most : MostUnpacked, optional
        What a table's values may come to.

    Returns
    -------
    options : ImportOptions
    left_out : dict of str to str
        Names of columns that are ignored for what their values are, and why.

    Raises
    ------
    FormatError
        The file has no header, or is damaged.
    """
    sample = first_values(path, format, options, most or MostUnpacked())
    if names_own_features(format, sample):
        return options, {}
    named = {
        *named_columns(options),
        *indicator_columns(list(sample), options),
        "split",
        "id" if options.id_column is None else options.id_column,
    }
    if format == "jsonl" and options.weight_column is None:
        named.add("weight")
    texts, numbers, categories = [*options.text_columns], [*options.number_columns], [*options.category_columns]
    left_out: dict[str, str] = {}
    for name, values in sample.items():
        if name in named:
            continue
        role = column_role(name, values, options, format)
        {"text": texts, "number": numbers, "category": categories}.get(role, []).append(name)
        if role not in ("text", "number", "category"):
            left_out[name] = role
    reported = {
        "text_columns": tuple(texts),
        "number_columns": tuple(numbers),
        "category_columns": tuple(categories),
        "ignore_columns": (*options.ignore_columns, *left_out),
    }
    return options.model_copy(update=reported), left_out


def column_role(name: str, values: Sequence[Any], options: ImportOptions, format: str) -> str:
    """text, number or category, or why a column is left out.

    Raises
    ------
    FormatError
        The column has numbers with commas, or beside marks of missing values, and the options do not say what these
        mean.
    """
    columns = FORMATS[format].columns
    written = columns is not None and not columns.typed
    if written:
        _check_numbers(name, values, options)
    role = _role(values, options, written)
    if name == "text" and not options.text_columns and role not in ("number", NO_VALUES):
        return "text"
    if is_named_text(name) and (role == DISTINCT or (role == "category" and _are_phrases(values))):
        return "text"
    return role


def names_own_features(format: str, sample: Mapping[str, Sequence[Any]]) -> bool:
    """Whether rows say themselves what their features are, and nothing is left to infer."""
    return format == "jsonl" and not {"features", "indices"}.isdisjoint(sample)


def first_values(path: Path, format: str, options: ImportOptions, most: MostUnpacked) -> Mapping[str, Sequence[Any]]:
    """The first values of each column.

    Raises
    ------
    FormatError
        The file has no header, or is damaged.
    """
    columns = FORMATS[format].columns
    assert columns is not None
    values: Mapping[str, Sequence[Any]] = loaded(columns.first_values)(path, options, most, MOST_ROWS)
    return values


def _role(values: Sequence[Any], options: ImportOptions, written: bool) -> str:
    """text, number or category, or why the column is left out; `written` where numbers are strings as all else."""
    present = [value for value in map(_plain, values) if value is not None and value not in options.missing_values]
    if not present:
        return NO_VALUES
    if all(isinstance(value, list) for value in present):
        numbers = all(isinstance(one, (int, float)) for value in present for one in value)
        return "number" if numbers else LISTS
    if all(isinstance(value, bool) for value in present):
        return "category"  # as True and False of a file without types are
    if all(isinstance(value, (int, float)) for value in present):
        return "number"
    if all(isinstance(value, (datetime.date, datetime.time, datetime.timedelta)) for value in present):
        return DATES
    if not all(isinstance(value, (str, int, float)) for value in present):
        return "neither texts nor numbers"
    strings = [str(value) for value in present]
    if all(map(_DATE.fullmatch, strings)):
        return DATES
    if written and all(_is_number(string, options) for string in strings) and not any(map(_CODE.fullmatch, strings)):
        return "number"
    if median(len(string.split()) for string in strings) > _TEXT_WORDS or (
        median(map(len, strings)) > _TEXT_LENGTH and any(" " in string for string in strings)
    ):
        return "text"
    n_levels = len(set(strings))
    if n_levels <= max(_FEW_LEVELS, _LEVELS_SHARE * len(strings)) and n_levels < max(len(strings), 2):
        return "category"
    return "text" if any(" " in string for string in strings) else DISTINCT


def _are_phrases(values: Sequence[Any]) -> bool:
    """Whether most strings are different, and half of them have more than one word."""
    strings = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    several = sum(" " in string for string in strings)
    return len(set(strings)) > _LEVELS_SHARE * len(strings) and 2 * several >= len(strings) > 0


def missing_marks(values: Sequence[str], options: ImportOptions) -> list[str]:
    """The usual marks of missing values in a column whose other values are numbers; empty if it has none."""
    present = {value.strip() for value in values} - {"", *options.missing_values}
    marks = {value for value in present if value.casefold() in _MISSING}
    return sorted(marks) if present != marks and _are_written_numbers(present - marks) else []


def _are_written_numbers(present: Collection[str]) -> bool:
    written = all(any(kind.fullmatch(value) for kind in _WRITTEN_NUMBERS) for value in present)
    return written and not any(map(_CODE.fullmatch, present))


def _check_numbers(name: str, values: Sequence[str], options: ImportOptions) -> None:
    """Refuse numbers that are not read as numbers: left out, or as categories, nobody would miss them."""
    roles = "or name the column in text_columns, category_columns or ignore_columns"
    if marks := missing_marks(values, options):
        passed = " and ".join(f"missing_values={mark}" for mark in marks)
        said = f"numbers and {' and '.join(map(repr, marks))}: if these are missing values pass {passed}, missing=keep"
        raise row_error(1, f"{said}, {roles}", name)
    present = [value.strip() for value in values if value.strip() not in ("", *options.missing_values)]
    if all(_is_number(value, options) for value in present) or not any("," in value for value in present):
        return
    if not _are_written_numbers(present):
        return
    if any(map(_GROUPED_NUMBER.fullmatch, present)):
        said = "thousands separators are not supported: remove them"
    elif options.decimal == "comma":
        said = "some numbers have commas and some have points: write all with commas"
    else:
        said = "numbers with commas: pass decimal=comma if these are decimal commas"
    raise row_error(1, f"{said}, {roles}", name)


def _plain(value: Any) -> Any:
    """A value, None for a blank one."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and value != value else value


def _is_number(string: str, options: ImportOptions) -> bool:
    if options.decimal == "comma":
        string = string.translate(str.maketrans(",.", ".,"))
    return _NUMBER.fullmatch(string) is not None
