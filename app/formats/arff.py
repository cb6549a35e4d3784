"""ARFF files: Weka's, dense and sparse, Meka's, and those of Clus with a hierarchy of classes.

The attributes' types say what they are: numbers, categories (nominal), texts (string), ids (Clus's `key`) or classes
(Clus's `hierarchical`). A nominal attribute of 0 and 1 is a number. The label is the attribute that `label_column`
names, else a hierarchical one, else one called `label` or `class`; Meka's option `-C` in the relation's name says which
attributes are labels. A class of Clus is a path (`01/02`) or, where the attribute lists edges, a node; rows have sets
of them, with `@` between. `?` is a missing value. In sparse rows what is not written is 0, or the first nominal value.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.datasets.schemas import ImportOptions
from app.formats.categories import Categories
from app.formats.columns import Columns, indicator_columns, kind_of
from app.formats.indicator_columns import with_indicator_labels
from app.formats.json_columns import RefusedError
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, repeated_name
from app.formats.matrix import Rows
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob, joined_rows
from app.formats.weights import Weights
from app.formats.window import NOT_UTF8, Window
from app.values import normalized

SEPARATOR = "/"

_BLOCK_ROWS = 1 << 13
_NUMBERS = frozenset({"numeric", "real", "integer"})
_QUOTED = r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\""
_ATTRIBUTE = re.compile(rf"@attribute\s+(?:{_QUOTED}|([^\s'\"{{]\S*))\s*(.*)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(rf"\s*(?:(?:{_QUOTED})\s*|([^,'\"]*))(?:(,)|$)")
_SPARSE_CELL = re.compile(rf"\s*(\d+)\s+(?:(?:{_QUOTED})\s*|([^,'\"]*))(?:(,)|$)")
_WEIGHT = re.compile(r",\s*\{([^{}]*)\}\s*$")
_MEKA = re.compile(r"-C\s+(-?\d+)")
_ESCAPE = re.compile(r"\\(.)")
_LABELS = ("label", "class")
# in this order, as a sparse row leaves out the first
_MARKS = (("0",), ("0", "1"))


# values that a message shows
_MOST_VALUES = 5


class Attribute(NamedTuple):
    """An attribute: `kind` is number, nominal, string, date, key or hierarchical; `values` are its possible ones."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Header:
    """The header, and the line of `@data`."""

    relation: str
    attributes: tuple[Attribute, ...]
    line: int


class _Cell(NamedTuple):
    text: str
    quoted: bool


_MISSING = _Cell("?", False)


def parse_arff(path: Path, options: ImportOptions) -> Parsed:
    """Read an ARFF file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column`, or `label_columns`, name attributes of labels; `missing=keep` allows missing values.

    Returns
    -------
    Parsed
        Kind "sparse", "text" or "table", as the attributes' types say.

    Raises
    ------
    FormatError
        With the lines that break the format, or attributes that have no place in a dataset.
    """
    lines = _lines(path)
    header = read_header(lines)
    reader = _Reader(header, options)
    for line, text in lines:
        if text and not text.startswith("%"):
            reader.read(text, line)
    return reader.build()


def read_header(lines: Iterator[tuple[int, str]]) -> Header:
    """Take the header off the lines; raises FormatError."""
    attributes: list[Attribute] = []
    relation, line = "", 1
    for line, text in lines:
        word = text[:10].lower()
        if not text or text.startswith("%"):
            continue
        if word.startswith("@relation"):
            relation = text[9:].strip()
        elif word.startswith("@attribute"):
            attributes.append(_attribute(text, line))
        elif word.startswith("@data"):
            _check_names(attributes, line)
            return Header(relation, tuple(attributes), line)
        else:
            raise row_error(line, f"'{shorten(text)}' is not a line of an ARFF header: expected @attribute or @data")
    raise row_error(line, "the file has no line @data")


def file_header(path: Path) -> Header:
    """The header of a file; raises FormatError."""
    return read_header(_lines(path))


def are_edges(classes: Sequence[str]) -> bool:
    """Whether the classes of a hierarchical attribute are edges, `parent/child`, rather than whole paths."""
    return all(name.count(SEPARATOR) == 1 for name in classes)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """All lines with their numbers, without white space around them."""
    line = 1
    with Window(path) as window:
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            for record in unread[:end].removesuffix(b"\n").split(b"\n") if end else []:
                try:
                    yield line, record.decode().strip()
                except UnicodeDecodeError:
                    raise row_error(line, f"not {NOT_UTF8}") from None
                line += 1
            window.consume(end)


def _attribute(text: str, line: int) -> Attribute:
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        raise row_error(line, f"'{shorten(text)}' has no name and type: expected @attribute name type")
    name = normalized(_unquoted(found[1], found[2], found[3]))
    type = found[4].strip()
    word = type.split(None, 1)[0].lower() if type else ""
    if word in _NUMBERS:
        return Attribute(name, "number", (), line)
    if type.startswith("{"):
        if not type.endswith("}"):
            raise row_error(line, "the list of nominal values has no closing brace", name)
        try:
            values = tuple(cell.text for cell in _cells(type[1:-1]))
        except RefusedError as refusal:
            raise row_error(line, refusal.detail, name) from None
        return Attribute(name, "number" if values in _MARKS else "nominal", values, line)
    if word == "hierarchical":
        return Attribute(name, "hierarchical", tuple(map(str.strip, type[len(word) :].split(","))), line)
    if word in ("string", "date", "key"):
        return Attribute(name, word, (), line)
    detail = (
        f"the type is '{shorten(type)}', expected numeric, a list of values in braces, string, date or hierarchical"
    )
    raise row_error(line, detail, name)


def _check_names(attributes: Sequence[Attribute], line: int) -> None:
    if not attributes:
        raise row_error(line, "the header has no attributes")
    unnamed = next((each for each in attributes if not each.name), None)
    if unnamed is not None:
        raise row_error(unnamed.line, "the attribute has no name")
    twice = repeated_name(each.name for each in attributes)
    if twice is not None:
        raise row_error(line, f"two attributes are named '{shorten(twice)}'", twice)


def _unquoted(single: str | None, double: str | None, bare: str | None) -> str:
    quoted = single if single is not None else double
    return (bare or "").strip() if quoted is None else _ESCAPE.sub(r"\1", quoted)


def _cells(text: str) -> list[_Cell]:
    """The cells of a dense row, or of a list of nominal values."""
    if "'" not in text and '"' not in text:
        return [_Cell(cell.strip(), False) for cell in text.split(",")]
    cells, at = [], 0
    while True:
        found = _CELL.match(text, at)
        if found is None:
            raise RefusedError("a quote is not closed, or text follows a closing quote")
        cells.append(_Cell(_unquoted(found[1], found[2], found[3]), found[3] is None))
        at = found.end()
        if found[4] is None:
            return cells


def _columns(header: Header, options: ImportOptions, marks: Sequence[str]) -> Columns:
    """What each attribute is to the dataset; ``marks`` are the labels that Meka's ``-C`` specifies."""
    attributes = header.attributes
    names = [each.name for each in attributes]
    place = {name: at for at, name in enumerate(names)}
    for wanted in (*options.ignore_columns, *options.text_columns, *filter(None, [options.id_column])):
        if wanted not in place:
            raise row_error(header.line, f"no attribute '{shorten(wanted)}' among the {len(names)} of the header")
    ignored = {place[name] for name in options.ignore_columns}
    without_column = marks or indicator_columns(names, options) or options.unlabelled
    label = None if without_column else _label(header, options)
    keys = [at for at, each in enumerate(attributes) if each.kind == "key" and at not in ignored]
    id = place[options.id_column] if options.id_column is not None else (keys[0] if keys else None)
    free = [at for at in range(len(names)) if at not in ignored | {label, id}]
    texts = [place[name] for name in options.text_columns]
    texts = texts or [at for at in free if attributes[at].kind == "string"]
    free = [at for at in free if at not in texts]
    numbers = [at for at in free if attributes[at].kind == "number"]
    categories = [at for at in free if attributes[at].kind == "nominal"]
    for at in free:
        each = attributes[at]
        if each.kind in ("date", "key", "hierarchical"):
            detail = f"an attribute of type {each.kind} is no feature (leave it out with ignore_columns)"
            raise row_error(each.line, detail, each.name)
    for at in categories:
        if "=" in names[at]:
            detail = f"the category '{shorten(names[at])}' has an equals sign in its name"
            raise row_error(attributes[at].line, detail, names[at])
    if not (texts or numbers or categories):
        raise row_error(header.line, "found no attribute besides the label")
    left_out = dict.fromkeys(options.ignore_columns, "ignored")
    kind = kind_of(texts, numbers, categories, options)
    return Columns(names, label, None, None, id, texts, numbers, categories, left_out, kind)


def _label(header: Header, options: ImportOptions) -> int:
    names = [each.name for each in header.attributes]
    if options.label_column in names:
        return names.index(options.label_column)
    if options.label_column == ImportOptions.model_fields["label_column"].default:
        trees = [at for at, each in enumerate(header.attributes) if each.kind == "hierarchical"]
        usual = [at for at, name in enumerate(names) if name.lower() in _LABELS]
        if len(trees or usual) == 1:
            return (trees or usual)[0]
    detail = (
        f"no attribute '{shorten(options.label_column)}' among the {len(names)} of the header: pass label_column "
        f"(the last attribute is '{shorten(names[-1])}'), or label_columns for labels that are attributes of 0 and 1"
    )
    raise row_error(header.line, detail)


def _meka_labels(header: Header) -> list[str]:
    found = _MEKA.search(header.relation)
    if found is None or int(found[1]) == 0:
        return []
    names, n_labels = [each.name for each in header.attributes], int(found[1])
    if abs(n_labels) >= len(names):
        raise row_error(1, f"the relation declares {abs(n_labels)} labels (-C), but there are {len(names)} attributes")
    return names[:n_labels] if n_labels > 0 else names[n_labels:]


class _Reader:
    """Rows as they come; blocks of them are moved into arrays."""

    def __init__(self, header: Header, options: ImportOptions) -> None:
        self._marks = [] if options.unlabelled else _meka_labels(header)
        self._columns, self._options = _columns(header, options, self._marks), options
        self._attributes = header.attributes
        columns, label = self._columns, self._columns.label
        self._values = [frozenset(each.values) for each in header.attributes]
        self._first = [each.values[0] if each.kind == "nominal" and each.values else "" for each in header.attributes]
        self._classes = frozenset[str]()
        self._tree = label is not None and header.attributes[label].kind == "hierarchical"
        if self._tree and label is not None:
            self._classes = _classes(header.attributes[label].values)
        sets = self._tree or label is None
        self._labels: Labels | LabelSets = LabelSets() if sets else Labels(options.without_label != "refuse")
        self._categories = Categories([header.attributes[at].name for at in columns.categories], options)
        self._rows, self._texts, self._ids, self._weights = Rows(), TextBlob(), TextBlob(), Weights("weight")
        self._problems = Problems()
        self._number_of = {at: number for number, at in enumerate(columns.numeric)}
        self._n_rows, self._weighed = 0, False
        self._begin_block()

    def _begin_block(self) -> None:
        self._lines: list[int] = []
        self._indices: list[int] = []
        self._numbers: list[float] = []
        self._lengths: list[int] = []
        self._levels: list[list[str]] = [[] for _ in self._columns.categories]
        self._names: list[str] = []
        self._sets: list[list[str]] = []
        self._pieces: list[list[bytes]] = []
        self._id_blobs: list[bytes] = []
        self._row_weights: list[float] = []

    def read(self, text: str, line: int) -> None:
        """Read one row, or note what is wrong with it."""
        self._n_rows += 1
        try:
            self._add(text, line)
        except RefusedError as refusal:
            self._problems.add(line, refusal.detail, refusal.column, refusal.cause)
        if len(self._lines) >= _BLOCK_ROWS:
            self._flush()

    def _add(self, text: str, line: int) -> None:
        text, weight = _weighed(text)
        cells = self._sparse(text) if text.startswith("{") else dict(enumerate(_cells(text)))
        if not text.startswith("{") and len(cells) != len(self._attributes):
            raise RefusedError(f"{len(cells)} values; expected {len(self._attributes)}, one per attribute")
        columns = self._columns
        entries = [(self._number_of[at], self._number(at, cell)) for at, cell in cells.items() if at in self._number_of]
        levels = [self._level(at, cells.get(at)) for at in columns.categories]
        texts = [self._text(cells.get(at)) for at in columns.texts]
        label = "" if columns.label is None else self._label(columns.label, cells.get(columns.label))
        classes = self._path_set(label) if self._tree else []
        id = "" if columns.id is None else self._text(cells.get(columns.id))
        for number, value in entries:
            if value != 0:
                self._indices.append(number)
                self._numbers.append(value)
        self._lengths.append(sum(value != 0 for _, value in entries))
        for place, level in enumerate(levels):
            self._levels[place].append(level)
        self._pieces.append([text.encode() for text in texts])
        self._id_blobs.append(id.encode())
        self._names.append(label)
        self._sets.append(classes)
        self._weighed = self._weighed or weight is not None
        self._row_weights.append(1.0 if weight is None else weight)
        self._lines.append(line)

    def _sparse(self, text: str) -> dict[int, _Cell]:
        if not text.endswith("}"):
            raise RefusedError("the sparse row has no closing brace")
        inner, at, last = text[1:-1], 0, -1
        cells: dict[int, _Cell] = {}
        while inner.strip():
            found = _SPARSE_CELL.match(inner, at)
            if found is None:
                raise RefusedError(f"'{shorten(inner[at:].strip())}' is not an index and a value")
            index = int(found[1]) if len(found[1]) < 10 else len(self._attributes)
            if not last < index < len(self._attributes):
                most = len(self._attributes) - 1
                raise RefusedError(
                    f"the index {shorten(found[1])} is not between {last + 1} and {most}, or not in order"
                )
            cells[index] = _Cell(_unquoted(found[2], found[3], found[4]), found[4] is None)
            last, at = index, found.end()
            if found[5] is None:
                break
        return cells

    def _number(self, at: int, cell: _Cell) -> float:
        name = self._attributes[at].name
        if cell == _MISSING:
            if self._options.missing != "keep":
                raise RefusedError("the number is missing (pass missing=keep to allow missing values)", name, "empty")
            return math.nan
        try:
            value = float(cell.text)
        except ValueError:
            raise RefusedError(f"'{shorten(cell.text)}' is not a number", name, "text") from None
        if not math.isfinite(value) or "_" in cell.text:
            raise RefusedError(f"'{shorten(cell.text)}' is not a finite number", name)
        if self._values[at] and cell.text not in self._values[at]:
            raise RefusedError(f"'{shorten(cell.text)}' is not one of the attribute's values", name)
        return value

    def _level(self, at: int, cell: _Cell | None) -> str:
        """A nominal value; empty where it is missing."""
        if cell is None:
            return self._first[at]
        if cell == _MISSING:
            return ""
        if self._values[at] and cell.text not in self._values[at]:
            values = self._attributes[at].values
            shown = ", ".join(map(shorten, values[:_MOST_VALUES])) + (", ..." if len(values) > _MOST_VALUES else "")
            detail = f"'{shorten(cell.text)}' is not one of the attribute's {len(values)} values ({shown}): declare it"
            raise RefusedError(
                f"{detail} on line {self._attributes[at].line}, or correct the row", self._attributes[at].name
            )
        return cell.text

    def _label(self, at: int, cell: _Cell | None) -> str:
        if self._attributes[at].kind == "number" and cell is None:
            return "0"
        return self._level(at, cell) if not self._tree else self._text(cell)

    @staticmethod
    def _text(cell: _Cell | None) -> str:
        return "" if cell is None or cell == _MISSING else cell.text

    def _path_set(self, label: str) -> list[str]:
        names = [name.strip() for name in label.split("@")] if label else []
        wrong = next((name for name in names if name not in self._classes), None)
        if wrong is not None:
            assert self._columns.label is not None
            detail = f"the class '{shorten(wrong)}' is not in the hierarchy of the header"
            raise RefusedError(detail, self._attributes[self._columns.label].name)
        return names

    def _flush(self) -> None:
        lines = np.array(self._lines, dtype=np.int64)
        if isinstance(self._labels, LabelSets):
            self._labels.add_sets(np.arange(len(lines)), self._sets, lines, self._problems)
        else:
            self._labels.add(*_encoded(self._names), lines, self._problems)
        for place, levels in enumerate(self._levels):
            self._categories.add(place, *_encoded(levels), lines, self._problems)
        self._rows.add(
            np.array(self._lengths, np.int64), np.array(self._indices, np.int32), np.array(self._numbers, np.float64)
        )
        self._texts.add(*joined_rows(self._pieces))
        self._ids.add(*joined_rows([[id] for id in self._id_blobs]))
        self._weights.add(np.array(self._row_weights, np.float64), lines, self._problems)
        self._begin_block()

    def build(self) -> Parsed:
        """The whole file."""
        self._flush()
        self._problems.raise_if_any()
        if self._n_rows == 0:
            raise row_error(1, "the file has a header but no rows")
        columns = self._columns
        labels, y, indptr = build_labels(self._labels)
        names = [self._attributes[at].name for at in columns.numeric]
        X, feature_names = None, None
        if columns.kind != "text":
            X, feature_names = self._categories.beside(self._rows.build(len(names)), names)
        parsed = Parsed(
            columns.kind,
            labels,
            y,
            X=X,
            texts=self._texts.build() if columns.texts else None,
            feature_names=feature_names,
            weights=self._weights.build() if self._weighed else None,
            label_indptr=indptr,
            columns=columns.reported(names, self._options, self._categories.types()),
            ids=None if columns.id is None else self._ids.build(),
        )
        if self._marks:
            return with_indicator_labels(parsed, self._options.model_copy(update={"label_columns": tuple(self._marks)}))
        return parsed


def _classes(declared: Sequence[str]) -> frozenset[str]:
    """The classes that rows may have: nodes of edges, or paths and their beginnings."""
    if are_edges(declared):
        return frozenset(part for name in declared for part in name.split(SEPARATOR))
    found: set[str] = set()
    for name in declared:
        parts = name.split(SEPARATOR)
        found.update(SEPARATOR.join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return frozenset(found)


def _weighed(text: str) -> tuple[str, float | None]:
    found = _WEIGHT.search(text) if text.endswith("}") else None
    if found is None:
        return text, None
    try:
        return text[: found.start()].rstrip(), float(found[1])
    except ValueError:
        return text, None


def _encoded(names: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    ids: dict[str, int] = {}
    codes = [ids.setdefault(name, len(ids)) for name in names]
    return np.array(codes, dtype=np.int64), list(ids)
