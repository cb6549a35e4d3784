"""The labels of a whole file as they are kept: by their type, lists in cells read, those that look alike merged."""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.datasets.schemas import ImportOptions
from app.datasets.statistics_schemas import LabelType, Likeness
from app.formats.label_names import label_problem
from app.formats.label_sets import SEPARATORS
from app.formats.likeness import merged
from app.formats.table import Parsed, Texts, row_error, shorten
from app.plurals import counted
from app.values import canonical, column_type, normalized, whole_number

_URI = re.compile(r"<([^<>\s]+)>")
_URIS = re.compile(r"(?:<[^<>\s]+>\s+)+<[^<>\s]+>")
_LIST = re.compile(r"\[.*\]|\(.*,.*\)|\(\)|\{.*\}|(?:frozen)?set\(\)", re.DOTALL)
# what Python, numpy, pandas and R write around a list
_CALL = re.compile(r"(?:frozenset|set|array|Index|c)\(\s*([\[({\"'].*?)\s*(?:,\s*dtype=[\w<>='\"|]+)?\s*\)", re.DOTALL)
_QUOTED = r"""(?:'[^']*'|"[^"]*")"""
_QUOTED_LIST = re.compile(rf"\s*{_QUOTED}(?:\s*,\s*{_QUOTED})+\s*")
_CUT_LIST = re.compile(r"""[\[({]\s*(['"]).*\1\s*,.*[^\])}]""", re.DOTALL)
_NUMBERS = re.compile(r"\s*-?[0-9.]+(?:\s+-?[0-9.]+)+\s*")
# strings side by side, as numpy writes an array of them
_STRING = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_ROW = re.compile(r"""\s*(?:(?:'[^']*'|"[^"]*")\s+)+(?:'[^']*'|"[^"]*")\s*""")
_CUT = re.compile(r"[\[({].*[^\])}]", re.DOTALL)


def with_label_forms(parsed: Parsed, options: ImportOptions) -> Parsed:
    """A file with its labels as they are kept, and without the rows that the options leave out.

    Parameters
    ----------
    parsed : Parsed
        Its labels as they are written; "" of rows without one.

    Raises
    ------
    FormatError
        The labels look like lists and the options do not say how to read them; or no row is left.
    """
    if options.unlabelled:
        return parsed
    sets = [[name] if name else [] for name in parsed.labels]
    cells = [name for name in parsed.labels if looks_like_list(name)]
    if options.label_lists == "read":
        sets = [
            _members(name) if looks_like_list(name) or _URI.fullmatch(name) else members
            for name, members in zip(parsed.labels, sets, strict=True)
        ]
    elif options.label_lists is None:
        _require_labels(parsed, cells)
    names = _distinct(sets)
    type, plain = _read_as(names, options.label_type)
    forms = [label_form(name, type) for name in plain]
    if options.merge_labels:
        _, first = np.unique(forms, return_index=True)
        distinct = [forms[at] for at in sorted(first.tolist())]
        counts = _counts(parsed, sets, dict(zip(names, forms, strict=True)))
        to = dict(
            zip(
                distinct,
                merged(distinct, [counts.get(each, 0) for each in distinct], options.merge_labels),
                strict=True,
            )
        )
        forms = [to[form] for form in forms]
    into_sets = parsed.label_indptr is not None or options.label_lists == "read"
    if forms != parsed.labels or any(len(each) != 1 for each in sets) or into_sets != (parsed.label_indptr is not None):
        parsed = _renamed(parsed, sets, dict(zip(names, forms, strict=True)), into_sets)
    parsed = replace(parsed, label_type=type)
    return parsed if options.without_label == "refuse" else _with_labels(parsed, options)


def with_labels_of(parsed: Parsed, labels: Sequence[str], kinds: Collection[Likeness]) -> Parsed:
    """Rows whose labels are those of a dataset where they differ from one in these kinds alone."""
    form = known_forms(parsed.labels, labels, kinds)
    if all(name == kept for name, kept in form.items()):
        return parsed
    return _renamed(parsed, [[name] for name in parsed.labels], form, parsed.label_indptr is not None)


def known_forms(names: Collection[str], labels: Sequence[str], kinds: Collection[Likeness]) -> dict[str, str]:
    """What labels become among those of a dataset: the one that each differs from in these kinds alone, else itself."""
    known = set(labels)
    new = [name for name in dict.fromkeys(names) if name not in known]
    form = {name: name for name in names}
    if kinds and new:
        to = merged([*labels, *new], [1] * len(labels) + [0] * len(new), kinds)[len(labels) :]
        form |= dict(zip(new, to, strict=True))
    return form


def label_type(names: Iterable[str]) -> LabelType:
    """The type of labels: boolean or number where all of them are, else text."""
    present = [name for name in names if name]
    kind = column_type(present)
    if kind == "number" and not all(map(whole_number, present)):
        return "text"
    return kind if kind in ("boolean", "number") else "text"


def label_form(name: str, type: LabelType) -> str:
    """What one label is called among labels of a type: `7.0` is 7 among numbers, `True` is true among booleans.

    Integers lose the zeros of `007`, too; a text, and what is none of the type, stays as it is.
    """
    name = normalized(name)
    if type == "text":
        return name
    if type == "integer":
        return whole_number(name) or name
    found = canonical(name, type)
    return found if type == "boolean" or whole_number(found) else name


def looks_like_list(cell: str) -> bool:
    """Whether a label is what programs write of a list: `[a, b]`, `{'a'}`, `array(['a'])`, `<uri> <uri>`."""
    return any(form.fullmatch(cell) for form in (_LIST, _URIS, _CALL, _QUOTED_LIST, _CUT_LIST))


def joined_by(labels: Collection[str]) -> tuple[str, list[str]] | None:
    """The separator by which labels look joined to sets, and those that have it; None if none does.

    Names have commas and slashes, too, as "Cooks, other": all that these part must be labels of other rows, and most of
    what follows one must also come first or alone.
    """
    for mark in (*SEPARATORS, "&&", ",", "/"):
        parts = {label: [part.strip() for part in label.split(mark)] for label in labels if mark in label}
        whole = [label for label in labels if label not in parts]
        times = Counter(part for each in parts.values() for part in set(each))
        times.update(whole)
        in_names = mark in (",", "/")
        enough = all if in_names else any
        found = [label for label, each in parts.items() if all(each) and enough(times[part] > 1 for part in each)]
        if in_names:
            later = {part for each in parts.values() for part in each[1:]}
            alone = later.intersection({*whole, *(each[0] for each in parts.values())})
            if 2 * len(alone) < len(later):
                continue
        if len(found) > 1 and 2 * len(found) > len(parts):
            return mark, found
    return None


def _read_as(names: Sequence[str], type: LabelType | None) -> tuple[LabelType, Sequence[str]]:
    """Return the type of a file's labels, and the labels; angle brackets go where all labels are URIs in brackets."""
    matches = [_URI.fullmatch(name) for name in names]
    if matches and all(matches):  # no URI has angle brackets of its own
        names = [name[1:-1] for name in names]
    return type or label_type(names), names


def _require_labels(parsed: Parsed, cells: Sequence[str]) -> None:
    """Refuse labels that are all lists, or lists cut at commas."""
    names = [name for name in parsed.labels if name]
    if cells and all(looks_like_list(name) or _URI.fullmatch(name) for name in names):
        first = f"{counted(len(names), 'label')}, such as '{shorten(cells[0])}', look like lists"
        raise row_error(
            1,
            f"{first}: pass label_lists=read to read them as sets, or label_lists=keep to leave them unchanged",
            "label",
        )
    if parsed.label_indptr is not None:
        cut = [name for name in names if _CUT.fullmatch(name) and name[0] not in name[1:]]
        ends = [name for name in names if name[-1] in "])}" and not any(mark in name for mark in "[({")]
        if cut and ends:
            first = f"'{shorten(cut[0])}' and '{shorten(ends[0])}' are pieces of a list"
            raise row_error(1, f"{first}: pass label_lists=read instead of label_separator", "label")


def _members(cell: str) -> list[str]:
    """The labels in a cell that looks like a list; raises FormatError if it cannot be read as one."""
    if _URIS.fullmatch(cell) or _URI.fullmatch(cell):
        return _URI.findall(cell)
    members = _listed(cell)
    if members is None:
        raise row_error(
            1,
            f'\'{shorten(cell)}\' cannot be read as a list of labels: write it as ["a", "b"], or pass '
            "label_lists=keep to leave labels unchanged",
            "label",
        )
    found = [normalized(member) for member in members]
    return [each for each in found if each]


def _listed(cell: str) -> list[str] | None:
    """The elements of a list as programs write it; None where there is no safe reading."""
    call = _CALL.fullmatch(cell)
    if call is not None:
        cell = call[1]
    if cell[0] in "\"'":
        cell = f"[{cell}]"
    if cell[-1] not in "])}":
        return None
    inner = "" if cell.endswith("set()") else cell[1:-1]
    if _ROW.fullmatch(inner):
        return [single or double for single, double in _STRING.findall(inner)]
    if _NUMBERS.fullmatch(inner):
        return inner.split()
    given = _value(cell) if inner.strip() else []
    if isinstance(given, dict) and given.keys() == {"choices"}:  # a cell of Label Studio's
        given = given["choices"]
    if isinstance(given, (list, tuple, set)):
        if not all(isinstance(each, (str, int, float)) for each in given):
            return None
        return [str(each).lower() if isinstance(each, bool) else str(each) for each in given]
    if given is not None or re.search(r"[\[\]{}]", inner):
        return None
    members = [each.strip() for each in inner.split(",")]
    if any((each[:1] in ("'", '"')) != (each[-1:] in ("'", '"')) for each in members):
        return None
    return [each.strip("'\"") for each in members]


def _value(cell: str) -> Any:
    """What a cell is in JSON or Python; None for anything else."""
    with suppress(ValueError, RecursionError):
        return json.loads(cell)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(cell)
    return None


def _distinct(sets: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for members in sets for name in members))


def _counts(parsed: Parsed, sets: Sequence[Sequence[str]], form: dict[str, str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    per_name = np.bincount(np.asarray(parsed.y), minlength=len(parsed.labels)).tolist()
    for members, count in zip(sets, per_name, strict=True):
        for name in members:
            counts[form[name]] = counts.get(form[name], 0) + count
    return counts


def _renamed(parsed: Parsed, sets: Sequence[Sequence[str]], form: dict[str, str], into_sets: bool) -> Parsed:
    """Rows of which each label is now the forms of its members."""
    for name in form.values():
        detail = label_problem(name)
        if detail is not None:
            raise row_error(1, detail, "label")
    labels = sorted(set(form.values()))
    place = {name: at for at, name in enumerate(labels)}
    members = [sorted({place[form[name]] for name in each}) for each in sets]
    y = np.asarray(parsed.y)
    if not into_sets:
        # -1 of a row without a label, which is left out
        to = np.array([each[0] if each else -1 for each in members], dtype=np.int32)
        return replace(parsed, labels=labels, y=to[y])
    indptr = np.arange(len(y) + 1, dtype=np.int64) if parsed.label_indptr is None else np.asarray(parsed.label_indptr)
    row = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    widths = np.array([len(each) for each in members], dtype=np.int64)
    flat = np.array([at for each in members for at in each], dtype=np.int64)
    begin = np.cumsum(widths) - widths
    of_row = widths[y]
    offsets = np.arange(int(of_row.sum())) - np.repeat(np.cumsum(of_row) - of_row, of_row)
    found = flat[np.repeat(begin[y], of_row) + offsets]
    width = max(1, len(labels))
    keys = np.unique(np.repeat(row, of_row) * width + found)
    row, y = np.divmod(keys, width)
    counts = np.bincount(row, minlength=len(indptr) - 1)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(parsed, labels=labels, y=y.astype(np.int32), label_indptr=ends)


def _with_labels(parsed: Parsed, options: ImportOptions) -> Parsed:
    """The rows that have labels, or with `only` the others, as rows to be answered."""
    y = np.asarray(parsed.y)
    labelled = y >= 0 if parsed.label_indptr is None else np.diff(parsed.label_indptr) > 0
    only = options.without_label == "only"
    rows = np.flatnonzero(~labelled if only else labelled)
    if len(rows) == 0:
        raise row_error(1, "all rows have labels" if only else "no row has a label", "label")
    if len(rows) == parsed.n_rows and not only:
        return parsed
    kept = _chosen(parsed, rows)
    if only:
        empty = np.zeros(len(rows) + 1, dtype=np.int64)
        kept = replace(kept, labels=[], y=np.empty(0, dtype=np.int32), label_indptr=empty)
    return replace(kept, n_left_out=parsed.n_rows - len(rows))


def _chosen(parsed: Parsed, rows: npt.NDArray[np.int64]) -> Parsed:
    y, indptr = np.asarray(parsed.y), parsed.label_indptr
    if indptr is None:
        y = y[rows]
    else:
        lengths = np.diff(indptr)
        kept = np.zeros(len(lengths), dtype=bool)
        kept[rows] = True
        y = y[np.repeat(kept, lengths)]
        indptr = np.concatenate([[0], np.cumsum(lengths[rows])]).astype(np.int64)
    return replace(
        parsed,
        y=y,
        label_indptr=indptr,
        split=None if parsed.split is None else parsed.split[rows],
        X=None if parsed.X is None else parsed.X[rows],
        texts=None if parsed.texts is None else _texts(parsed.texts, rows),
        weights=None if parsed.weights is None else parsed.weights[rows],
        ids=None if parsed.ids is None else _texts(parsed.ids, rows),
    )


def _texts(texts: Texts, rows: npt.NDArray[np.int64]) -> Texts:
    begin, lengths = texts.offsets[rows], np.diff(texts.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    pieces = [texts.blob[at : at + length] for at, length in zip(begin.tolist(), lengths.tolist(), strict=True)]
    sizes = None if texts.sizes is None else texts.sizes[rows]
    return Texts(np.concatenate([np.empty(0, np.uint8), *pieces]), offsets, sizes)
