"""Columns of JSON lines: what a row has in place of features where the options name numbers or categories."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import ImportOptions
from app.formats.categories import Categories
from app.formats.columns import find_columns
from app.formats.labels import repeated_name
from app.formats.matrix import Rows
from app.formats.row_groups import ListLengths
from app.formats.table import Cause, FormatError, Kind, Problems, RowError, Texts, row_error, shorten
from app.formats.text_rows import TextBlob, joined_rows
from app.plurals import counted
from app.values import written

_MOST_KEYS, _ALIKE = 5, 0.7
_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class RefusedError(Exception):
    """What is wrong with one row."""

    def __init__(self, detail: str, column: str | None = None, cause: Cause | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.column = column
        self.cause = cause


class TableRows:
    """Rows of texts, numbers and categories; `flush` moves a block of them into arrays.

    Raises
    ------
    FormatError
        One column is two things.
    """

    def __init__(self, options: ImportOptions) -> None:
        self._options = options
        self._text_keys = options.text_columns
        self._keep_missing = options.missing == "keep"
        self._categories = Categories(options.category_columns, options)
        self._rows, self._texts = Rows(), TextBlob()
        self._widths: list[int | None] = [None] * len(options.number_columns)  # of lists in the first row
        self._lengths = [ListLengths() for _ in options.number_columns]
        self._named = (*self._text_keys, *options.number_columns, *options.category_columns)
        self._n_given, self._lacking, self._keys = 0, Counter[str](), dict[str, None]()
        self._n_rows = 0
        self._begin_block()

    def _begin_block(self) -> None:
        self._numbers = array("d")
        self._levels: list[list[str]] = [[] for _ in self._options.category_columns]
        self._pieces: list[list[bytes]] = []

    def read(self, row: dict[str, Any], line: int) -> None:
        """Take what is left of a row without label, split, weight and id; raises RefusedError."""
        options = self._options
        self._n_given += 1
        if self._n_given == 1:
            self._keys = dict.fromkeys(row)
        self._lacking.update(key for key in self._named if key not in row)
        if self._n_rows == 0 and not self._text_keys and "text" in row:
            self._text_keys = () if "text" in (*options.number_columns, *options.category_columns) else ("text",)
        if self._n_rows == 0:
            given = [row.get(key) for key in options.number_columns]
            self._widths = [len(value) if type(value) is list else None for value in given]
        if self._keep_missing:
            row = dict.fromkeys(self._text_keys) | row
        numbers: list[float] = []
        for key, width, lengths in zip(options.number_columns, self._widths, self._lengths, strict=True):
            value = row.pop(key, None)
            if width is not None and type(value) is list:
                lengths.add(len(value), line)
            numbers += self._elements(value, key, width)
        levels = [self._level(row.pop(key, None), key) for key in options.category_columns]
        texts = [text.encode() for text in key_texts(row, self._text_keys)]
        if row:
            named = ", ".join(f"'{shorten(name)}'" for name in sorted(row)[:3])
            raise RefusedError(f"{counted(len(row), 'unknown key')}: {named}", min(row), "unknown_key")
        self._n_rows += 1
        self._numbers.extend(numbers)
        for column, level in zip(self._levels, levels, strict=True):
            column.append(level)
        self._pieces.append(texts)

    def why_all_fail(self) -> FormatError | None:
        """What is wrong with faulty rows in common: a key that none has, or a list in the first that is an odd one."""
        lacking = next((key for key in self._named if 1 < self._n_given == self._lacking[key]), None)
        if lacking is not None:
            return FormatError([RowError(1, shorten(lacking), self._instead_of(lacking))])
        for key, width, lengths in zip(self._options.number_columns, self._widths, self._lengths, strict=True):
            odd = None if width is None else lengths.odd_ones(shorten(key), width)
            if odd is not None:
                return odd
        return None

    def _instead_of(self, lacking: str) -> str:
        keys = [key for key in self._keys if key not in self._named]
        shown = ", ".join(f"'{shorten(key)}'" for key in keys[:_MOST_KEYS])
        alike = " or ".join(f"'{shorten(key)}'" for key in get_close_matches(lacking, keys, 3, _ALIKE))
        return (
            f"no row has the key '{shorten(lacking)}'"
            + (f"; the first row has {shown}" if shown else "")
            + (f"; did you mean {alike}?" if alike else "")
        )

    def flush(self, lines: npt.NDArray[np.int64], problems: Problems) -> None:
        """Move the rows read since the last call, which are on these lines, into arrays."""
        dense = np.array(self._numbers, dtype=np.float64).reshape(len(lines), len(self._number_names()))
        row, column = np.nonzero(dense)
        self._rows.add(np.count_nonzero(dense, axis=1).astype(np.int64), column.astype(np.int32), dense[row, column])
        for place, levels in enumerate(self._levels):
            ids: dict[str, int] = {}
            codes = np.array([ids.setdefault(level, len(ids)) for level in levels], dtype=np.int64)
            self._categories.add(place, codes, list(ids), lines, problems)
        self._texts.add(*joined_rows(self._pieces))
        self._begin_block()

    def build(
        self,
    ) -> tuple[Kind, csr_matrix[np.float64], Texts | None, list[str], TableColumns | None]:
        """What the rows make together, numbers and levels, the texts, the names, and what the columns are."""
        options = self._options
        numbers = self._number_names()
        twice = repeated_name(numbers)
        if twice is not None:
            raise row_error(1, f"two features are named '{shorten(twice)}': a key, and an element of a list", twice)
        X, names = self._categories.beside(self._rows.build(len(numbers)), numbers)
        label = None if options.unlabelled else options.label_column
        single = (label, options.weight_column, options.id_column)
        present = [name for name in single if name is not None]
        present += [*self._text_keys, *options.ignore_columns, *options.number_columns, *options.category_columns]
        columns = find_columns(present, options.model_copy(update={"text_columns": self._text_keys}))
        texts = self._texts.build() if self._text_keys else None
        return columns.kind, X, texts, names, columns.reported(numbers, options, self._categories.types())

    def _number_names(self) -> list[str]:
        """The names of the numbers: those of lists with a point and the place."""
        names: list[str] = []
        for key, width in zip(self._options.number_columns, self._widths, strict=True):
            names += [key] if width is None else [f"{key}.{place}" for place in range(width)]
        return names

    def _elements(self, value: object, key: str, width: int | None) -> list[float]:
        if width is None:
            return [self._number(value, key)]
        if value is None and self._keep_missing:
            return [math.nan] * width
        if type(value) is not list or len(value) != width:
            found = f"a list of {len(value)}" if type(value) is list else type_name(value)
            raise RefusedError(f"{found}, expected a list of {counted(width, 'number')} as in the first row", key)
        return [self._number(element, key) for element in value]

    def _number(self, value: object, key: str) -> float:
        if value is None:
            if self._keep_missing:
                return math.nan
            raise RefusedError("the number is missing (pass missing=keep to allow missing values)", key)
        if type(value) is bool:
            return float(value)
        if type(value) is not int and type(value) is not float:
            raise RefusedError(f"{type_name(value)}, expected a number", key)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise RefusedError("the number is too large for a 64-bit number", key)
        return number

    def _level(self, value: object, key: str) -> str:
        if value is not None and type(value) not in (str, int, float, bool):
            raise RefusedError(f"{type_name(value)}, expected a string or a number", key)
        return written(value)


def text_of_label(value: object) -> str:
    """Return a string, an integer or a boolean as a label; raises RefusedError for other values."""
    if type(value) in (str, int, bool):
        return written(value)
    if type(value) is float and value.is_integer():
        return written(value)
    if type(value) is float:
        detail = f"{value!r} is not a whole number; a label is a string, an integer or a boolean: write it in quotes"
        raise RefusedError(detail, "label")
    raise RefusedError(f"{type_name(value)}, expected a string, an integer or a boolean", "label")


def joined_texts(row: dict[str, Any], keys: Sequence[str]) -> str:
    """The texts of several keys, each on a line of its own; nulls and empty ones left out."""
    return "\n".join(filter(None, key_texts(row, keys)))


def key_texts(row: dict[str, Any], keys: Sequence[str]) -> list[str]:
    """The texts of several keys, which are taken out of the row; null is empty."""
    texts = []
    for key in keys:
        if key not in row:
            raise RefusedError("the key is missing", key)
        text = row.pop(key)
        if type(text) is not str and text is not None:
            raise RefusedError(f"{type_name(text)}, expected a string", key)
        texts.append(text or "")
    return texts


def type_name(value: object) -> str:
    """What JSON calls a value, with its article."""
    return _TYPE_NAMES.get(type(value), "something else")
