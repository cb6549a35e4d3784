"""JSON lines: one object a line, with a label and a text or features.

Keys: `label` (or another name, see the options; a string or a number, or in all rows a list of those) and one of
`text`; `features`, an object of names and numbers; `indices` with `values`, two lists of which the first is 0-based,
in any order, without repetition. All rows have the same of the three. `split` (train, test or validation) stands in all
rows or in none, and so does `weight` (or another name), a positive number; `id` is ignored, and so are the keys that
the options name; other keys are refused. The options may name keys of several texts, which are joined.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson

from app.formats.label_sets import LabelSets, take_labels
from app.formats.labels import Labels, Splits
from app.formats.matrix import MAX_INDEX, Rows
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_blob import TextBlob
from app.formats.weights import Weights
from app.formats.window import NOT_UTF8, Window
from app.schemas.datasets import ImportOptions

_TEXT, _NAMED, _PAIRS = frozenset({"text"}), frozenset({"features"}), frozenset({"indices", "values"})
_NUMBERS = frozenset({int, float})
_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def parse_jsonl(path: Path, options: ImportOptions) -> Parsed:
    """Read a JSON lines file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column` is the label's key, `weight_column` that of the weights: it must be there if it is given.

    Returns
    -------
    Parsed
        Kind "text" if the rows have texts; else "sparse", with sorted `feature_names` if the features have names.

    Raises
    ------
    FormatError
        With the lines that break the format.
    """
    reader, line = _Reader(options), 1
    with Window(path) as window:
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            for record in unread[:end].removesuffix(b"\n").split(b"\n") if end else []:
                if record and not record.isspace():
                    reader.read(record, line)
                line += 1
            reader.settle()
            window.consume(end)
    return reader.take()


class _RefusedError(Exception):
    """What is wrong with one row."""

    def __init__(self, detail: str, column: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.column = column


class _Reader:
    """Rows as they come; `settle` moves a block of them into arrays."""

    def __init__(self, options: ImportOptions) -> None:
        self._label_key = options.label_column
        self._weight_key = options.weight_column or "weight"
        self._text_keys, self._ignored = options.text_columns, options.ignore_columns
        self._must_weigh = options.weight_column is not None
        self._form: frozenset[str] | None = None
        self._has_split = self._has_weight = self._has_sets = False
        self._feature_ids: dict[str, int] = {}
        self._labels, self._label_sets, self._splits = Labels(), LabelSets(), Splits()
        self._rows, self._texts = Rows(), TextBlob()
        self._weights = Weights(self._weight_key)
        self._problems = Problems()
        self._n_records = 0
        self._begin_block()

    def _begin_block(self) -> None:
        self._lines = array("q")
        self._label_names: list[str] = []
        self._label_lists: list[list[str]] = []
        self._split_names: list[str] = []
        self._row_weights = array("d")
        self._blob = bytearray()
        self._lengths = array("q")
        self._indices = array("i")
        self._values = array("d")

    def read(self, record: bytes, line: int) -> None:
        """Read one row, or note what is wrong with it."""
        self._n_records += 1
        try:
            self._append(_load(record), line)
        except _RefusedError as refusal:
            self._problems.add(line, refusal.detail, refusal.column)

    def settle(self) -> None:
        """Move the rows read since the last call into arrays."""
        lines = np.array(self._lines, dtype=np.int64)
        if self._has_sets:
            self._label_sets.add_sets(np.arange(len(lines)), self._label_lists, lines, self._problems)
        else:
            self._labels.add(*_encode(self._label_names), lines, self._problems)
        if self._has_split:
            self._splits.add(*_encode(self._split_names), lines, self._problems)
        if self._has_weight:
            self._weights.add(np.array(self._row_weights, dtype=np.float64), lines, self._problems)
        lengths = np.array(self._lengths, dtype=np.int64)
        if self._form == _TEXT:
            self._texts.add(np.frombuffer(self._blob, dtype=np.uint8), lengths)
        else:
            self._rows.add(lengths, np.array(self._indices, dtype=np.int32), np.array(self._values, dtype=np.float64))
        self._begin_block()

    def take(self) -> Parsed:
        """The whole file."""
        self._problems.raise_if_any()
        if self._n_records == 0:
            raise row_error(1, "the file is empty or has only blank lines")
        labels, y, indptr = take_labels(self._label_sets if self._has_sets else self._labels)
        split = self._splits.take() if self._has_split else None
        weights = self._weights.take() if self._has_weight else None
        if self._form == _TEXT:
            return Parsed("text", labels, y, split, texts=self._texts.take(), weights=weights, label_indptr=indptr)
        if self._form == _PAIRS:
            return Parsed("sparse", labels, y, split, X=self._rows.take(), weights=weights, label_indptr=indptr)
        names = sorted(self._feature_ids)
        place = np.empty(len(names), dtype=np.int32)
        place[[self._feature_ids[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        X = self._rows.take(len(names), place)
        return Parsed("sparse", labels, y, split, X=X, feature_names=names, weights=weights, label_indptr=indptr)

    def _append(self, row: dict[str, Any], line: int) -> None:
        if self._label_key not in row:
            raise _RefusedError("the key is missing", self._label_key)
        label = row.pop(self._label_key)
        has_set = type(label) is list
        names = [_label(name) for name in label] if has_set else [_label(label)]
        has_weight = self._weight_key in row
        if self._must_weigh and not has_weight:
            raise _RefusedError("the key is missing", self._weight_key)
        weight = row.pop(self._weight_key, 1.0)
        if type(weight) not in _NUMBERS:
            raise _RefusedError(f"{_type_name(weight)}, expected a positive number", self._weight_key)
        for ignored in ("id", *self._ignored):
            row.pop(ignored, None)
        has_split = "split" in row
        split = row.pop("split", "train")
        if type(split) is not str:
            raise _RefusedError(f"{_type_name(split)}, expected train, test or validation", "split")
        if self._text_keys:
            row["text"] = _joined(row, self._text_keys)
        form = _form(row)
        if self._form is None:
            self._form, self._has_split, self._has_weight, self._has_sets = form, has_split, has_weight, has_set
        if form != self._form:
            raise _RefusedError(f"the row has {_spoken(form)}; rows before it have {_spoken(self._form)}")
        if has_split != self._has_split:
            raise _RefusedError("split is in some rows and not in others", "split")
        if has_weight != self._has_weight:
            raise _RefusedError("the weight is in some rows and not in others", self._weight_key)
        if has_set != self._has_sets:
            raise _RefusedError("labels are a list in some rows and not in others", self._label_key)
        self._append_values(row, form)
        self._lines.append(line)
        if has_set:
            self._label_lists.append(names)
        else:
            self._label_names += names
        self._split_names.append(split)
        self._row_weights.append(weight)

    def _append_values(self, row: dict[str, Any], form: frozenset[str]) -> None:
        if form == _TEXT:
            text = row["text"]
            if type(text) is not str:
                raise _RefusedError(f"{_type_name(text)}, expected a string", "text")
            encoded = text.encode()
            self._blob += encoded
            self._lengths.append(len(encoded))
            return
        if form == _NAMED:
            features = row["features"]
            if type(features) is not dict:
                raise _RefusedError(f"{_type_name(features)}, expected an object of names and numbers", "features")
            _check_numbers(features.values(), "features")
            ids = self._feature_ids
            indices, values = [ids.setdefault(name, len(ids)) for name in features], list(features.values())
        else:
            indices, values = row["indices"], row["values"]
            _check_pairs(indices, values)
        self._indices.extend(indices)
        self._values.extend(values)
        self._lengths.append(len(indices))


def _load(record: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        try:
            record.decode()
        except UnicodeDecodeError:
            raise _RefusedError(f"not {NOT_UTF8}") from error
        raise _RefusedError(f"not valid JSON at character {error.pos + 1}") from error
    if type(row) is not dict:
        raise _RefusedError(f"{_type_name(row)}, expected an object")
    return row


def _label(value: object) -> str:
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    if type(value) is float and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    raise _RefusedError(f"{_type_name(value)}, expected a string or a number", "label")


def _joined(row: dict[str, Any], keys: Sequence[str]) -> str:
    """The texts of several keys, each on a line of its own; nulls and empty ones left out."""
    texts = []
    for key in keys:
        if key not in row:
            raise _RefusedError("the key is missing", key)
        text = row.pop(key)
        if type(text) is not str and text is not None:
            raise _RefusedError(f"{_type_name(text)}, expected a string", key)
        texts.append(text)
    return "\n".join(filter(None, texts))


def _form(row: dict[str, Any]) -> frozenset[str]:
    form = frozenset(row)
    if form in (_TEXT, _NAMED, _PAIRS):
        return form
    unknown = sorted(form - _TEXT - _NAMED - _PAIRS)
    if unknown:
        named = ", ".join(f"'{shorten(name)}'" for name in unknown[:3])
        raise _RefusedError(f"{len(unknown)} unknown key(s): {named}", unknown[0])
    if not form:
        raise _RefusedError("no text, no features, and no indices with values")
    if form < _PAIRS:
        raise _RefusedError("indices and values go together", next(iter(form)))
    raise _RefusedError(f"the row has {_spoken(form)}, expected text, or features, or indices with values")


def _check_pairs(indices: object, values: object) -> None:
    if type(indices) is not list:
        raise _RefusedError(f"{_type_name(indices)}, expected a list", "indices")
    if type(values) is not list:
        raise _RefusedError(f"{_type_name(values)}, expected a list", "values")
    if len(indices) != len(values):
        raise _RefusedError(f"{len(indices)} indices and {len(values)} values")
    if not set(map(type, indices)) <= {int}:
        raise _RefusedError("an index is not an integer", "indices")
    if indices and not (min(indices) >= 0 and max(indices) < MAX_INDEX):
        raise _RefusedError(f"an index is not between 0 and {MAX_INDEX - 1}", "indices")
    if len(set(indices)) != len(indices):
        raise _RefusedError("an index is there twice", "indices")
    _check_numbers(values, "values")


def _check_numbers(values: Collection[object], column: str) -> None:
    if not set(map(type, values)) <= _NUMBERS:
        wrong = next(value for value in values if type(value) not in _NUMBERS)
        raise _RefusedError(f"a value is {_type_name(wrong)}, expected a number", column)
    if not all(map(math.isfinite, cast(Collection[float], values))):
        raise _RefusedError("a value is not a finite number", column)


def _encode(names: list[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Distinct names, and each name's index among them."""
    ids: dict[str, int] = {}
    codes = [ids.setdefault(name, len(ids)) for name in names]
    return np.array(codes, dtype=np.int64), list(ids)


def _spoken(form: frozenset[str]) -> str:
    return " and ".join(sorted(form))


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "something else")
