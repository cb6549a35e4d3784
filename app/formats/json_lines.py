"""JSON lines: one object per line, with a label and a text or features; or one array of such objects.

Keys: `label` (or another name, see the options; a string or a number, or in all rows a list of those) and one of
`text`; `features`, an object of names and numbers; `indices` with `values`, two lists of which the first is 0-based,
in any order, without repetition. All rows have the same of the three. `split` (train, test or validation) is in all
rows or in none, and so does `weight` (or another name), a positive number; `id` is kept, the keys that the options
ignore are not, and other keys are refused. The options may name keys of several texts, which are joined, and keys of
numbers and categories, which rows then have in place of the three; named numbers may be in `features`, too.
"""

from __future__ import annotations

import json
import math
import unicodedata
from array import array
from collections.abc import Collection, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson
from scipy.sparse import csr_matrix

from app.datasets.column_names import labels_by_name
from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import ImportOptions
from app.formats.columns import with_lists
from app.formats.json_array import array_records, begins_array
from app.formats.json_columns import RefusedError, TableRows, key_texts, text_of_label, type_name
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, Splits
from app.formats.matrix import MAX_INDEX, Rows
from app.formats.table import Kind, Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob, joined_rows
from app.formats.weights import Weights
from app.formats.window import NOT_UTF8, Window
from app.plurals import counted

_TEXT, _NAMED, _PAIRS = frozenset({"text"}), frozenset({"features"}), frozenset({"indices", "values"})
_TABLE: frozenset[str] = frozenset()
_NUMBERS = frozenset({int, float})
_BLOCK_ROWS = 1 << 14


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
        if begins_array(window.fill(line)):
            for record, line in array_records(window):
                reader.read(record, line)
                if reader.is_block_full:
                    reader.flush()
            reader.flush()
            return reader.build()
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            for record in unread[:end].removesuffix(b"\n").split(b"\n") if end else []:
                if record and not record.isspace():
                    reader.read(record, line)
                line += 1
            reader.flush()
            window.consume(end)
    return reader.build()


class _Reader:
    """Rows as they come; `flush` moves a block of them into arrays."""

    def __init__(self, options: ImportOptions) -> None:
        self._label_key, self._unlabelled = options.label_column, options.unlabelled
        self._weight_key = options.weight_column or "weight"
        self._text_keys, self._ignored = options.text_columns, options.ignore_columns
        self._must_weigh = options.weight_column is not None
        self._form: frozenset[str] | None = None
        self._has_split = self._has_weight = self._has_sets = False
        self._feature_ids: dict[str, int] = {}
        self._may_lack = options.without_label != "refuse" or options.label_lists == "read"
        self._labels, self._label_sets, self._splits = Labels(self._may_lack), LabelSets(), Splits()
        self._rows, self._texts = Rows(), TextBlob()
        self._weights = Weights(self._weight_key)
        self._problems = Problems()
        self._n_records = 0
        self._id_key = "id" if options.id_column is None else options.id_column
        self._has_ids, self._ids = False, TextBlob()
        self._options: ImportOptions | None = options  # until the first row
        self._table: TableRows | None = None
        self._read_keys: frozenset[str] | None = None
        self._zeros: dict[str, float] = {}  # where features have the named numbers: those that a row leaves out
        self._known: set[str] = set()  # keys that these features may have
        self._unknown: dict[str, tuple[int, int]] = {}  # their other keys: the first line, and how many rows
        self._begin_block()

    def _begin(self, options: ImportOptions, row: dict[str, Any]) -> None:
        """Decide by the first row what rows have."""
        named = {*options.text_columns, *options.number_columns, *options.category_columns}
        if options.number_columns and "features" not in named and type(row.get("features")) is dict:
            options = with_lists(options, row["features"])
            self._zeros = dict.fromkeys(options.number_columns, 0.0)
            self._known = named | self._zeros.keys()
        else:
            options = with_lists(options, row)
        if options.number_columns or options.category_columns:
            self._table = TableRows(options)
        if options.other_columns == "ignore":
            columns = {*options.text_columns, *options.number_columns, *options.category_columns}
            self._read_keys = frozenset(columns or _TEXT | _NAMED | _PAIRS) | (_NAMED if self._zeros else _TABLE)
        self._options = None

    def _begin_block(self) -> None:
        self._lines = array("q")
        self._label_names: list[str] = []
        self._label_lists: list[list[str]] = []
        self._split_names: list[str] = []
        self._row_weights = array("d")
        self._pieces: list[list[bytes]] = []
        self._lengths = array("q")
        self._indices = array("i")
        self._values = array("d")
        self._names: list[bytes] = []

    def read(self, record: bytes, line: int) -> None:
        """Read one row, or note what is wrong with it."""
        self._n_records += 1
        try:
            self._append(_load(record), line)
        except RefusedError as refusal:
            self._problems.add(line, refusal.detail, refusal.column, refusal.cause)

    @property
    def is_block_full(self) -> bool:
        """Whether it is time to flush."""
        return len(self._lines) >= _BLOCK_ROWS

    def flush(self) -> None:
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
        self._ids.add(np.frombuffer(b"".join(self._names), np.uint8), np.array(list(map(len, self._names)), np.int64))
        lengths = np.array(self._lengths, dtype=np.int64)
        if self._table is not None:
            self._table.flush(lines, self._problems)
        elif self._form == _TEXT:
            self._texts.add(*joined_rows(self._pieces))
        else:
            self._rows.add(lengths, np.array(self._indices, dtype=np.int32), np.array(self._values, dtype=np.float64))
        self._begin_block()

    def build(self) -> Parsed:
        """The whole file."""
        common = self._table.why_all_fail() if self._problems and self._table is not None else None
        if common is not None:
            raise common
        for key, (line, n_rows) in self._unknown.items():
            alike = next(iter(get_close_matches(key, self._known, 1)), None)
            hint = "" if alike is None else f"; did you mean '{shorten(alike)}'?"
            detail = f"features of {counted(n_rows, 'row')} have the key '{shorten(key)}', which no option names{hint}"
            self._problems.add(line, detail, key, "unknown_key")
        self._problems.raise_if_any()
        if self._n_records == 0:
            raise row_error(1, "the file is empty or has only blank lines")
        labels, y, indptr = build_labels(self._label_sets if self._has_sets else self._labels)
        split = self._splits.build() if self._has_split else None
        weights = self._weights.build() if self._has_weight else None
        ids = self._ids.build() if self._has_ids else None
        texts, X, names, columns, kind = None, None, None, None, "sparse"
        if self._table is not None:
            kind, X, texts, names, columns = self._table.build()
        elif self._form == _TEXT:
            kind, texts = "text", self._texts.build()
            columns = TableColumns(texts=self._text_keys) if len(self._text_keys) > 1 else None
        else:
            X, names = self._matrix()
        return Parsed(cast(Kind, kind), labels, y, split, X, texts, names, weights, indptr, columns, ids)

    def _matrix(self) -> tuple[csr_matrix[np.float64], list[str] | None]:
        if self._form == _PAIRS:
            return self._rows.build(), None
        names = list(self._feature_ids)
        return self._rows.build(len(names)), names

    def _append(self, row: dict[str, Any], line: int) -> None:
        if self._options is not None:
            self._begin(self._options, row)
        names, has_set = self._take_labels(row)
        has_weight = self._weight_key in row
        if self._must_weigh and not has_weight:
            raise RefusedError("the key is missing", self._weight_key)
        weight = row.pop(self._weight_key, 1.0)
        if type(weight) not in _NUMBERS:
            raise RefusedError(f"{type_name(weight)}, expected a positive number", self._weight_key)
        for ignored in self._ignored:
            row.pop(ignored, None)
        id = row.pop(self._id_key, None)
        self._has_ids = self._has_ids or id is not None
        has_split = "split" in row and not (self._unlabelled and self._read_keys is not None)
        split = row.pop("split", "train")
        if not has_split:
            split = "train"
        if self._read_keys is not None:
            row = {key: value for key, value in row.items() if key in self._read_keys}
        if type(split) is not str:
            raise RefusedError(f"{type_name(split)}, expected train, test or validation", "split")
        if self._zeros:
            row = self._unfolded(row, line)
        if self._text_keys and self._table is None:
            row["text"] = key_texts(row, self._text_keys)
        form = _TABLE if self._table is not None else _form(row)
        self._require_alike(form, has_split, has_weight, has_set)
        self._append_values(row, form, line)
        self._lines.append(line)
        if has_set:
            self._label_lists.append(names)
        else:
            self._label_names += names
        self._names.append(str(id).encode() if type(id) in (str, int, float) else b"")
        self._split_names.append(split)
        self._row_weights.append(weight)

    def _take_labels(self, row: dict[str, Any]) -> tuple[list[str], bool]:
        """The labels of a row, whose key is removed, and whether they are a list."""
        if self._label_key not in row and not (self._unlabelled or self._may_lack):
            likely = next(
                (f"; did you mean label_column={key}?" for key in labels_by_name(list(row)) if key.isidentifier()), ""
            )
            detail = f"the key is missing; the row has {_shown_keys(row)}{likely}"
            raise RefusedError(detail, self._label_key, "no_label")
        label = [] if self._unlabelled else row.pop(self._label_key, None)
        if label is None and self._may_lack:
            label = [] if self._has_sets else ""
        if type(label) is list:
            return [text_of_label(name) for name in label], True
        return [text_of_label(label)], False

    def _require_alike(self, form: frozenset[str], has_split: bool, has_weight: bool, has_set: bool) -> None:
        """Refuse a row that has other things than the first one."""
        if self._form is None:
            self._form, self._has_split, self._has_weight, self._has_sets = form, has_split, has_weight, has_set
        if form != self._form:
            raise RefusedError(f"the row has {_listed_keys(form)}; rows before it have {_listed_keys(self._form)}")
        if has_split != self._has_split:
            raise RefusedError("split is given in some rows but not in others", "split")
        if has_weight != self._has_weight:
            raise RefusedError("the weight is given in some rows but not in others", self._weight_key)
        if has_set != self._has_sets:
            detail = (
                "labels are a list in some rows but not in others: rows before it have "
                f"{_ONE_OR_LISTS[self._has_sets]}, "
                'this one has not; write a list in every row, as in ["a"]'
            )
            raise RefusedError(detail, self._label_key)

    def _unfolded(self, row: dict[str, Any], line: int) -> dict[str, Any]:
        """The row with its features as keys of their own; unknown ones are noted and left out."""
        features = row.pop("features", None)
        if type(features) is not dict:
            raise RefusedError(f"{type_name(features)}, expected an object of names and numbers", "features")
        others = features.keys() - self._known
        for key in others.difference(self._ignored):
            first, n_rows = self._unknown.get(key, (line, 0))
            self._unknown[key] = first, n_rows + 1
        for key in others:
            del features[key]
        return row | self._zeros | features

    def _append_values(self, row: dict[str, Any], form: frozenset[str], line: int) -> None:
        if self._table is not None:
            self._table.read(row, line)
            return
        if form == _TEXT:
            texts = row["text"] if self._text_keys else [row["text"]]
            if type(texts[0]) is not str:
                raise RefusedError(f"{type_name(texts[0])}, expected a string", "text")
            self._pieces.append([text.encode() for text in texts])
            return
        if form == _NAMED:
            features = row["features"]
            if type(features) is not dict:
                raise RefusedError(f"{type_name(features)}, expected an object of names and numbers", "features")
            _check_numbers(features.values(), "features")
            ids = self._feature_ids
            indices, values = [ids.setdefault(name, len(ids)) for name in features], list(features.values())
        else:
            indices, values = row["indices"], row["values"]
            _check_pairs(indices, values)
        self._indices.extend(indices)
        self._values.extend(values)
        self._lengths.append(len(indices))


_ONE_OR_LISTS = {True: "lists of labels", False: "one label each"}
_MOST_KEYS = 5


def _shown_keys(row: Mapping[str, Any]) -> str:
    shown = ", ".join(f"'{shorten(key)}'" for key in list(row)[:_MOST_KEYS])
    return f"{shown}, ..." if len(row) > _MOST_KEYS else shown or "no keys"


def _reason(record: bytes) -> str:
    """What the standard library, whose words are clearer, finds wrong; nothing where it finds no fault."""
    try:
        json.loads(record)
    except json.JSONDecodeError as error:
        return f": {error.msg[0].lower()}{error.msg[1:]}"
    except (RecursionError, ValueError):
        return ""
    return ": NaN and Infinity are not valid numbers"


def _load(record: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        try:
            record.decode()
        except UnicodeDecodeError:
            raise RefusedError(f"not {NOT_UTF8}") from error
        raise RefusedError(f"not valid JSON at character {error.pos + 1}{_reason(record)}") from error
    if type(row) is not dict:
        hint = "; each line must be one object, without brackets or commas around it" if type(row) is list else ""
        raise RefusedError(f"{type_name(row)}, expected an object{hint}")
    _require_distinct_keys(record, row)
    if record.isascii() and b"\\u" not in record:
        return row
    features = row.get("features")
    return _in_one_form(row) | ({"features": _in_one_form(features)} if type(features) is dict else {})


def _require_distinct_keys(record: bytes, row: dict[str, Any]) -> None:
    """Refuse an object with one key twice, of which a parser keeps the last value only."""
    features = row.get("features")
    n_keys = len(row) + (len(features) if type(features) is dict else 0)
    if record.count(b'":') == n_keys:  # the quicker check: in most files nothing else looks like a key
        return

    def distinct(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            name = next(name for at, name in enumerate(names) if name in names[:at])
            raise RefusedError("the key occurs twice in one object", name)

    with suppress(RecursionError):  # of hundreds of lists in each other; the caller refuses these
        json.loads(record, object_pairs_hook=distinct, parse_int=str, parse_float=str)


def _in_one_form(row: dict[str, Any]) -> dict[str, Any]:
    """The object with its keys in Unicode's form NFC."""
    if all(unicodedata.is_normalized("NFC", key) for key in row):
        return row
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = unicodedata.normalize("NFC", key)
        if name in found:
            raise RefusedError("two keys differ in their Unicode form alone", name)
        found[name] = value
    return found


def _form(row: dict[str, Any]) -> frozenset[str]:
    form = frozenset(row)
    if form in (_TEXT, _NAMED, _PAIRS):
        return form
    unknown = sorted(form - _TEXT - _NAMED - _PAIRS)
    if unknown:
        named = ", ".join(f"'{shorten(name)}'" for name in unknown[:3])
        raise RefusedError(f"{counted(len(unknown), 'unknown key')}: {named}", unknown[0], "unknown_key")
    if not form:
        raise RefusedError("expected text, or features, or indices with values")
    if form < _PAIRS:
        raise RefusedError("indices and values must be given together", next(iter(form)))
    raise RefusedError(f"the row has {_listed_keys(form)}, expected text, or features, or indices with values")


def _check_pairs(indices: object, values: object) -> None:
    if type(indices) is not list:
        raise RefusedError(f"{type_name(indices)}, expected a list", "indices")
    if type(values) is not list:
        raise RefusedError(f"{type_name(values)}, expected a list", "values")
    if len(indices) != len(values):
        raise RefusedError(f"{len(indices)} indices and {len(values)} values")
    if not set(map(type, indices)) <= {int}:
        raise RefusedError("an index is not an integer", "indices")
    if indices and not (min(indices) >= 0 and max(indices) < MAX_INDEX):
        raise RefusedError(f"an index is not between 0 and {MAX_INDEX - 1}", "indices")
    if len(set(indices)) != len(indices):
        raise RefusedError("an index is given twice", "indices")
    _check_numbers(values, "values")


def _check_numbers(values: Collection[object], column: str) -> None:
    if not set(map(type, values)) <= _NUMBERS:
        wrong = next(value for value in values if type(value) not in _NUMBERS)
        raise RefusedError(f"a value is {type_name(wrong)}, expected a number", column)
    if not all(map(math.isfinite, cast(Collection[float], values))):
        raise RefusedError("a value is not a finite number", column)


def _encode(names: list[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    ids: dict[str, int] = {}
    codes = [ids.setdefault(name, len(ids)) for name in names]
    return np.array(codes, dtype=np.int64), list(ids)


def _listed_keys(form: frozenset[str]) -> str:
    return " and ".join(sorted(form))
