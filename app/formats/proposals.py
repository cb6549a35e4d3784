"""Proposes a role for each column of a table from the beginning of its file.

Types come from :mod:`app.formats.inference`, which also reads whole files; the label, the ids and the weights are found
by their names, and then their values must fit.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

import orjson

from app.datasets.column_names import (
    is_named_id,
    is_named_weight,
    is_sure_label,
    labels_by_name,
)
from app.datasets.formats import FORMATS
from app.datasets.schemas import (
    ColumnRole,
    ImportOptions,
    ProposedColumn,
    ProposedColumns,
    TableSample,
)
from app.formats.columns import indicator_columns
from app.formats.inference import (
    DATES,
    DISTINCT,
    LISTS,
    NO_VALUES,
    column_role,
    first_values,
    missing_marks,
    names_own_features,
)
from app.formats.json_records import first_rows
from app.formats.label_forms import joined_by, looks_like_list
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, row_error, shorten
from app.formats.table_samples import plain_sample
from app.plurals import counted

MOST_COLUMNS = 200
# an upload names its columns in its URL, and proxies take 8 KiB
_MOST_NAMES_BYTES = 6000
N_VALUES = 5
_MOST_SHOWN = 200
_MOST_UNPACKED = MostUnpacked(32 << 20)
# fewer rows may each have a label of their own
_FEW_ROWS = 20
_LABEL_WORDS = 5
# of different cells, those that have several labels
_JOINED_SHARE = 0.1
_INDICATORS = {"0", "1", "0.0", "1.0"}

_AS_GIVEN = "as the options say"
_SPECIAL: tuple[ColumnRole, ...] = ("indicator", "id", "weight", "split")
_CONTENT: tuple[ColumnRole, ...] = ("text", "number", "category")
# names that need no option
_DEFAULTS: dict[ColumnRole, str] = {"label": "label", "id": "id", "weight": ""}
_Type = Literal["text", "number", "category", "date", "distinct", "list", "empty", "other"]
_TYPES: dict[str, _Type] = {
    "text": "text", "number": "number", "category": "category", DATES: "date", DISTINCT: "distinct", LISTS: "list",
    NO_VALUES: "empty",
}  # fmt: skip


@dataclass(frozen=True)
class _Values:
    """A column's first values as strings, without missing ones, and what kind they are."""

    kind: str
    present: list[str]
    n_missing: int
    shown: list[str]
    marks: list[str]

    @property
    def n_levels(self) -> int:
        return len(set(self.present))

    @property
    def type(self) -> _Type:
        return _TYPES.get(self.kind, "other")

    @property
    def n_words(self) -> float:
        return sum(len(value.split()) for value in self.present) / max(len(self.present), 1)

    @property
    def repeat(self) -> bool:
        return self.n_levels <= max(_FEW_ROWS, len(self.present) / 2) and self.n_levels < len(self.present)

    @cached_property
    def are_written_lists(self) -> bool:
        """Whether all values are strings that a program has written of lists."""
        return self.kind != LISTS and bool(self.present) and all(map(looks_like_list, self.present))

    @cached_property
    def separator(self) -> str | None:
        """What separates several labels in a cell; None if cells seem to have one label each."""
        if self.kind in (NO_VALUES, DATES, LISTS, "number") or self.are_written_lists:
            return None
        cells = set(self.present)
        mark, joined = joined_by(cells) or (None, [])
        words = sum(len(cell.split(mark)) for cell in joined)
        short = sum(len(cell.split()) for cell in joined) <= _LABEL_WORDS * words
        return mark if short and len(joined) >= _JOINED_SHARE * len(cells) else None

    @property
    def are_sets(self) -> bool:
        return self.kind == LISTS or self.are_written_lists or self.separator is not None

    def may_be_labels(self) -> bool:
        """Whether rows may have these as labels, also if each row of the sample has another."""
        if self.kind in (NO_VALUES, DATES) or not self.present:
            return False
        return self.are_sets or self.repeat or (self.kind != "text" and self.n_words <= _LABEL_WORDS)

    def are_sure_labels(self) -> bool:
        return self.are_sets or self.repeat or len(self.present) < _FEW_ROWS

    def are_indicators(self) -> bool:
        """Whether each row has a 0 or a 1."""
        return self.kind == "number" and not self.n_missing and set(self.present) <= _INDICATORS


def propose_columns(content: bytes, sample: TableSample) -> ProposedColumns:
    """The columns of a table, with a proposed role for each.

    Parameters
    ----------
    content : bytes
        The beginning of the file, or the whole file where the format needs it.
    sample : TableSample
        What is known about the file.

    Raises
    ------
    FormatError
        The content is no table, or a column that the options name is not there.
    """
    with plain_sample(content, sample) as (path, format):
        options = cast(ImportOptions, sample)
        found = first_values(path, format, options, _MOST_UNPACKED)
        if names_own_features(format, found):
            raise row_error(1, "each row names its own features, so there are no columns to choose")
        if not found:
            raise row_error(1, "no rows with columns were found")
        shown = _first_rows(path, format, found)
    names = list(found)
    _require(names, options)
    options, columns = _looked_at(found, shown, options, format)
    n_listed = _n_listed(names)
    label, doubt = _label(columns, options)
    indicators = _indicators(columns, options) if label is None else []
    if len(indicators) > n_listed:
        indicators = []
    if indicators and doubt is not None:
        doubt = f"No column is named like a label, and {len(indicators)} columns contain only 0 and 1."
    roles = _roles(columns, options, label, indicators, format)
    special = {label, *(name for name, (role, _) in roles.items() if role in _SPECIAL)}
    listed = [name for at, name in enumerate(names) if at < n_listed or name in special]
    return ProposedColumns(
        format=format,
        n_rows=max((len(values.present) + values.n_missing for values in columns.values()), default=0),
        n_columns=len(names),
        columns=[
            ProposedColumn(
                name=name,
                type=columns[name].type,
                role=roles[name][0],
                reason=roles[name][1],
                n_missing=columns[name].n_missing,
                values=columns[name].shown,
            )
            for name in listed
        ],
        label_column=label,
        doubt=doubt,
        options={
            **_options(columns, {name: role for name, (role, _) in roles.items()}, options, format, n_listed),
            **_label_options(columns.get(label or ""), options, format),
        },
    )


def _first_rows(path: Path, format: str, found: Mapping[str, Sequence[Any]]) -> Mapping[str, list[Any]]:
    """The values of the first rows, one for each row."""
    if format == "jsonl":
        rows = list(first_rows(path, N_VALUES))
        return {name: [row.get(name) for row in rows] for name in found}
    return {name: list(values[:N_VALUES]) for name, values in found.items()}


def _n_listed(names: Sequence[str]) -> int:
    """How many columns an upload can name."""
    sizes = itertools.accumulate(len(quote(name)) + len("&category_columns=") for name in names)
    return sum(size <= _MOST_NAMES_BYTES for size in itertools.islice(sizes, MOST_COLUMNS))


def _require(names: Sequence[str], options: ImportOptions) -> None:
    given = [*options.text_columns, *options.number_columns, *options.category_columns, *options.ignore_columns]
    given += [name for name in (options.id_column, options.weight_column) if name is not None]
    if options.label_column != ImportOptions().label_column and not options.unlabelled:
        given.append(options.label_column)
    for name in given:
        if name not in names and name.rpartition(".")[0] not in names:
            listed = ", ".join(f"'{shorten(each)}'" for each in names[:5]) + (", ..." if len(names) > 5 else "")
            raise row_error(1, f"no column '{shorten(name)}' among the {len(names)} columns ({listed})")


def _looked_at(
    found: Mapping[str, Sequence[Any]],
    shown: Mapping[str, Sequence[Any]],
    options: ImportOptions,
    format: str,
) -> tuple[ImportOptions, dict[str, _Values]]:
    """The columns with the kinds of their values.

    Decimal commas, and usual marks of missing values, are options where only these make numbers of a column.
    """
    n_rows = max(map(len, found.values()), default=0)
    columns_of = FORMATS[format].columns
    written = columns_of is not None and not columns_of.typed
    marks = {name: missing_marks(values, options) if written else [] for name, values in found.items()}
    missing = dict.fromkeys((*options.missing_values, *itertools.chain(*marks.values())))
    options = options.model_copy(update={"missing_values": tuple(missing)})
    kinds: dict[str, str] = {}
    comma = options.model_copy(update={"decimal": "comma"})
    has_decimal = "decimal" in FORMATS[format].options
    for each in (options, comma) if has_decimal and options.decimal == "point" else (options,):
        kinds = {name: _kind(name, values, each, format) for name, values in found.items()}
        options = each
        if all(not kind.startswith("numbers with commas") for kind in kinds.values()):
            break
    columns = {}
    for name, values in found.items():
        present = [text for value in values if (text := _text(value)) and text not in options.missing_values]
        kind = kinds[name]
        columns[name] = _Values(
            kind, present, n_rows - len(present), [_shown(value) for value in shown[name]], marks[name]
        )
    return options, columns


def _kind(name: str, values: Sequence[Any], options: ImportOptions, format: str) -> str:
    try:
        return column_role(name, values, options, format)
    except FormatError as error:
        return error.errors[0].detail.partition(":")[0]


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (list, dict)):
        value = orjson.dumps(value, default=str).decode()
    return str(value).strip()


def _shown(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _label(columns: Mapping[str, _Values], options: ImportOptions) -> tuple[str | None, str | None]:
    """The column of the labels, and why a person should choose it."""
    if options.unlabelled or options.label_columns:
        return None, None
    taken = {*options.text_columns, *options.number_columns, *options.category_columns, *options.ignore_columns}
    taken |= {name for name in (options.id_column, options.weight_column) if name is not None}
    if options.label_column in columns:
        return options.label_column, None
    candidates = labels_by_name([name for name in columns if name not in taken])
    fitting = [name for name in candidates if columns[name].may_be_labels()]
    sure = [name for name in fitting if columns[name].are_sure_labels()]
    if sure and (len(fitting) == 1 or is_sure_label(sure[0])):
        return sure[0], None
    if len(fitting) > 1:
        listed = ", ".join(shorten(name) for name in fitting[:4])
        return (sure or fitting)[0], f"Several columns may be the label: {listed}."
    if fitting:
        found = columns[fitting[0]]
        values = f"{found.n_levels:,} different values in the first {len(found.present):,} rows"
        return fitting[0], f"The column {shorten(fitting[0])} may be the label, but has {values}."
    levels = [name for name, values in columns.items() if name not in taken and values.kind == "category"]
    if len(levels) == 1:
        return levels[0], f"No column is named like a label; {shorten(levels[0])} is the only one with categories."
    return None, "No column looks like the label."


def _indicators(columns: Mapping[str, _Values], options: ImportOptions) -> list[str]:
    """Columns that may be one label each: as the options name them, or several of 0 and 1 beside other features."""
    if options.label_columns:
        return indicator_columns(list(columns), options)
    taken = {*options.number_columns, *options.category_columns, *options.text_columns, *options.ignore_columns}
    if options.unlabelled:
        return []
    found = [name for name, values in columns.items() if name not in taken and values.are_indicators()]
    marked = [name for name in found if len(set(columns[name].present)) > 1]
    others = [name for name, values in columns.items() if name not in found and values.kind in ("text", "number")]
    return found if len(marked) > 1 and others else []


def _roles(
    columns: Mapping[str, _Values],
    options: ImportOptions,
    label: str | None,
    indicators: Sequence[str],
    format: str,
) -> dict[str, tuple[ColumnRole, str]]:
    given: dict[ColumnRole, tuple[str, ...]] = {
        "text": options.text_columns,
        "number": options.number_columns,
        "category": options.category_columns,
        "ignored": options.ignore_columns,
    }
    roles: dict[str, tuple[ColumnRole, str]] = {
        name: (role, _AS_GIVEN) for role, names in given.items() for name in names if name in columns
    }
    named = options.label_column != ImportOptions().label_column
    if label is not None:
        reason = _AS_GIVEN if named else _why_label(label, columns[label])
        roles[label] = ("label", reason)
    elif options.unlabelled and options.label_column in columns:
        roles.setdefault(options.label_column, ("ignored", "the file has no labels, as the options say"))
    for name in indicators:
        roles[name] = ("indicator", _AS_GIVEN if options.label_columns else "only 0 and 1: perhaps a label")
    id = options.id_column or _id(columns, roles)
    if id is not None:
        roles[id] = ("id", _AS_GIVEN if options.id_column else "named like an id")
    if "split" in columns and "split" not in roles:
        roles["split"] = ("split", "named split: parts of the dataset")
    weight = options.weight_column or _weight(columns, roles, format)
    if weight is not None:
        roles[weight] = ("weight", _AS_GIVEN if options.weight_column else "named like a weight, positive")
    for name, values in columns.items():
        if name not in roles:
            role = cast(ColumnRole, values.kind) if values.kind in ("text", "number", "category") else "ignored"
            roles[name] = (role, _why(values))
    return roles


def _label_options(values: _Values | None, options: ImportOptions, format: str) -> dict[str, str | bool | list[str]]:
    """How a cell with several labels is read; nothing if the options say it, or cells have one label."""
    if values is None or options.label_separator is not None or options.label_lists is not None:
        return {}
    if values.are_written_lists:
        return {"label_lists": "read"}
    if values.separator is not None and "label_separator" in FORMATS[format].options:
        return {"label_separator": values.separator}
    return {}


def _why_label(name: str, values: _Values) -> str:
    if labels_by_name([name]) or name == ImportOptions().label_column:
        parted = f", several labels separated by {values.separator}" if values.separator is not None else ""
        return f"named like a label{parted}"
    return f"{counted(values.n_levels, 'different value')} in {counted(len(values.present), 'row')}"


def _why(values: _Values) -> str:
    n = len(values.present)
    if values.kind == "number":
        marks = " and ".join(map(repr, values.marks))
        return f"numbers; {marks} is read as a missing value" if marks else "all values are numbers"
    if values.kind == "text":
        length = sum(map(len, values.present)) / max(n, 1)
        return f"{length:.0f} characters on average"
    if values.kind == "category":
        return f"{counted(values.n_levels, 'different value')} in {counted(n, 'row')}"
    return values.kind


def _id(columns: Mapping[str, _Values], roles: Mapping[str, object]) -> str | None:
    if "id" in columns:
        return None if "id" in roles else "id"
    for name, values in columns.items():
        distinct = values.n_levels == len(values.present) > 1 and not values.n_missing
        if name not in roles and is_named_id(name) and distinct and values.kind in (DISTINCT, "number"):
            return name
    return None


def _weight(columns: Mapping[str, _Values], roles: Mapping[str, object], format: str) -> str | None:
    if format == "jsonl" and "weight" in columns and "weight" not in roles:
        return "weight"
    for name, values in columns.items():
        fits = values.kind == "number" and not values.n_missing and _are_positive(values.present)
        if name not in roles and is_named_weight(name) and fits:
            return name
    return None


def _are_positive(values: Sequence[str]) -> bool:
    try:
        return all(float(value.replace(",", ".")) > 0 for value in values)
    except ValueError:
        return False


def _options(
    columns: Mapping[str, _Values],
    roles: Mapping[str, ColumnRole],
    options: ImportOptions,
    format: str,
    n_listed: int,
) -> dict[str, str | bool | list[str]]:
    """The fewest options with which the file is read like this.

    The import infers the types of a wide table, and of JSON lines that have numbers beside the label only.
    """
    by_role: dict[ColumnRole, list[str]] = {}
    for name, role in roles.items():
        by_role.setdefault(role, []).append(name)
    texts, numbers, categories = (by_role.get(role, []) for role in _CONTENT)
    found: dict[str, str | bool | list[str]] = {}
    for role, default in _DEFAULTS.items():
        option = f"{role}_column"
        default = "weight" if role == "weight" and format == "jsonl" else default
        name = next(iter(by_role.get(role, [])), default)
        if name != default:
            found[option] = name
    if indicators := by_role.get("indicator"):
        found["label_columns"] = list(options.label_columns) or indicators
    ignored = by_role.get("ignored", [])
    # keys of JSON lines need an option each, or the one that reads all of them
    inferred = format == "jsonl" and numbers and not (texts or categories or ignored or options.number_columns)
    if len(roles) > n_listed or inferred:
        found["infer_columns"] = True
    else:
        if texts not in ([], ["text"]):
            found["text_columns"] = texts
        if numbers and (texts or categories or format == "jsonl"):
            found["number_columns"] = numbers
        if categories:
            found["category_columns"] = categories
        if ignored:
            found["ignore_columns"] = ignored
    if any(columns[name].n_missing for name in itertools.chain(numbers, categories)):
        found["missing"] = "keep"
    if any(columns[name].marks for name in itertools.chain(numbers, categories)):
        found["missing_values"] = list(options.missing_values)
    if options.decimal == "comma":
        found["decimal"] = "comma"
    return found
