"""Rows whose labels are in another file: PECOS's and the Extreme Classification Repository's, two files of an archive.

The files are known by their folder (`features`, `labels`, `names`), or by their names: labels have `Y`, `lbl` or
`labels` between dots, dashes or underscores, as `Y.trn.npz`, `trn_lbl_mat.txt` or `train_labels.txt`; names of labels
are `output-items.txt`. Features are a file of any format, a matrix as text (`rows columns`, then `index:value ...`
from 0), or texts, one per line. Labels are a matrix of the same kinds, of which each column that is not 0 is a label;
lines of labels with blanks or `label_separator` between; or JSON lines of `uid` or `title`, one for each label of rows
that have numbers of labels in `target_ind`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import orjson
from scipy.sparse import csr_matrix

from app.datasets.formats import EXTENSIONS, FORMATS
from app.datasets.schemas import ImportOptions
from app.formats.archives import Archive
from app.formats.detection import binary_format, recognised
from app.formats.inference import first_values
from app.formats.label_sets import LabelSets
from app.formats.labels import repeated_name
from app.formats.matrix import MAX_INDEX
from app.formats.npz import LABELS
from app.formats.npz_arrays import read_arrays
from app.formats.npz_matrix import SPARSE, sparse_matrix
from app.formats.plain_file import MostUnpacked, plain_file
from app.formats.svmlight import read_rows
from app.formats.table import FormatError, Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextRows
from app.formats.window import BOM, MAX_RECORD_BYTES, NOT_UTF8
from app.plurals import counted

_LABELS = re.compile(r"(?:^|[._-])(?:y|lbl|labels?)(?:[._-]|$)", re.IGNORECASE)
_NAMES = re.compile(r"^output-items\b|label[-_]?names", re.IGNORECASE)
_ROLES = ("features", "labels", "names")
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$", re.IGNORECASE)
_ENDINGS = {"", "txt"} | {ending for ending, name in EXTENSIONS.items() if name not in ("arff", "archive", "marc")}
_COUNTS = re.compile(rb"(\d{1,15}) +(\d{1,15})\s*")
_HEAD_BYTES = 1 << 16
_HEAD_LINES = 20
_OWN_LABELS = (
    "the rows have labels of their own, {}; a file of labels (--labels) is for rows without: leave out that file, or "
    "the labels of the rows"
)
# the raw texts of the Extreme Classification Repository
_TARGETS, _WEIGHTS, _TEXTS = "target_ind", "target_rel", ("title", "content")


class Roles(NamedTuple):
    """What each file of an archive is; None where there is none."""

    features: str
    labels: str | None
    names: str | None


def roles_of(names: Sequence[str]) -> Roles | None:
    """The files of rows with separate labels; None where the archive is another."""
    found: dict[str, list[str]] = {role: [] for role in _ROLES}
    for name in names:
        path = PurePosixPath(name)
        if _ending(name) not in _ENDINGS:
            return None
        folder = path.parent.name
        by_name = "names" if _NAMES.search(path.name) else "labels" if _LABELS.search(path.name) else "features"
        found[folder if folder in _ROLES else by_name].append(name)
    features, labels, of_labels = (found[role] for role in _ROLES)
    if len(features) != 1 or len(labels) > 1 or len(of_labels) > 1 or not labels + of_labels:
        return None
    return Roles(features[0], *(each[0] if each else None for each in (labels, of_labels)))


def parse_separate_labels(archive: Archive, roles: Roles, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read features and labels.

    Parameters
    ----------
    options : ImportOptions
        `label_separator` is between the labels of a line; others are those of the features' format.
    most : MostUnpacked
        What each file may come to.

    Returns
    -------
    Parsed
        What the features are, with sets of labels.

    Raises
    ------
    FormatError
        A file breaks its format, or the files have other numbers of rows or labels; errors begin with the file's name.
    """
    with ExitStack() as stack:
        paths = [None if name is None else stack.enter_context(_extracted(archive, name, most)) for name in roles]
        features, labels, names = paths
        assert features is not None
        with _naming(roles.names):
            of_columns = None if names is None else _names(names)
        with _naming(roles.labels):
            if labels is not None and _head(labels).lstrip().startswith(b"{"):
                of_columns, labels = _json_names(labels), None
        with _naming(roles.features):
            parsed = _features(features, roles.features, labels is None, options, most)
        if labels is None:
            return _named(parsed, of_columns or [])
        with _naming(roles.labels):
            return _with_labels(parsed, labels, of_columns, options, most)


def _named(parsed: Parsed, of_columns: Sequence[str]) -> Parsed:
    """Rows of which each label is the number of a name."""
    members = _named_by_number(parsed.labels, of_columns)
    if parsed.label_indptr is None:
        parsed = replace(parsed, label_indptr=np.arange(len(parsed.y) + 1, dtype=np.int64))
    assert parsed.label_indptr is not None
    return _replaced(parsed, [members[at] for at in parsed.y.tolist()], parsed.label_indptr.tolist())


def _with_labels(
    parsed: Parsed, path: Path, of_columns: Sequence[str] | None, options: ImportOptions, most: MostUnpacked
) -> Parsed:
    head = _head(path)
    if binary_format(head) == "npz":
        Y = _npz_matrix(path, most)
    elif _declares_rows(head, parsed.n_rows):
        Y = _text_matrix(path)
    else:
        sets = [line.split(options.label_separator) for line in _lines(path)]
        sets = [[name for name in map(str.strip, names) if name] for names in sets]
        _check_rows(parsed.n_rows, len(sets))
        names = [name for names in sets for name in names]
        if of_columns is not None:
            names = _named_by_number(names, of_columns)
        return _replaced(parsed, names, np.cumsum([0, *map(len, sets)]).tolist())
    _check_rows(parsed.n_rows, Y.shape[0])
    if of_columns is not None and len(of_columns) != Y.shape[1]:
        raise row_error(1, f"the labels have {Y.shape[1]:,} columns, and their file of names {len(of_columns):,} lines")
    columns = Y.indices.tolist()
    names = [str(at) for at in columns] if of_columns is None else [of_columns[at] for at in columns]
    return _replaced(parsed, names, Y.indptr.tolist())


def _declares_rows(head: bytes, n_rows: int) -> bool:
    """Whether the first line has the shape of a matrix as text, and not two labels."""
    first, _, rest = head.partition(b"\n")
    counts = _COUNTS.fullmatch(first)
    return counts is not None and (int(counts[1]) == n_rows or b":" in rest.partition(b"\n")[0])


def _named_by_number(names: Sequence[str], of_columns: Sequence[str]) -> list[str]:
    wrong = next((name for name in names if not (name.isdecimal() and int(name) < len(of_columns))), None)
    if wrong is not None:
        detail = f"the label '{shorten(wrong)}' is not a number from 0 to {len(of_columns) - 1}, the range of the names"
        raise row_error(1, detail, "label")
    return [of_columns[int(name)] for name in names]


def _replaced(parsed: Parsed, names: Sequence[str], ends: Sequence[int]) -> Parsed:
    """The rows with other labels, of which row k has those from `ends[k]`."""
    n, problems, sets = len(ends) - 1, Problems(), LabelSets()
    rows = np.arange(1, n + 1, dtype=np.int64)
    sets.add_sets(np.arange(n), [names[ends[k] : ends[k + 1]] for k in range(n)], rows, problems)
    problems.raise_if_any()
    labels, y, indptr = sets.build()
    return replace(parsed, labels=labels, y=y, label_indptr=indptr)


def _check_rows(n_features: int, n_labels: int) -> None:
    if n_features != n_labels:
        detail = f"the features have {counted(n_features, 'row')}, and the labels {n_labels:,}"
        raise row_error(1, f"{detail}: are both files of the same part (train, test)?")


def _features(path: Path, name: str, with_labels: bool, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """The rows, with the labels that they have, or without."""
    head = _head(path)
    given = options.model_copy(update={"unlabelled": not with_labels, "label_separator": None})
    format = binary_format(head) or EXTENSIONS.get(_ending(name))
    if format == "jsonl" and f'"{_TARGETS}"'.encode() in head:
        raw = {
            "label_column": _TARGETS,
            "text_columns": options.text_columns or _TEXTS,
            "id_column": options.id_column or "uid",
            "ignore_columns": (*options.ignore_columns, _WEIGHTS, *(() if with_labels else (_TARGETS,))),
        }
        given = given.model_copy(update=raw)
    if with_labels and format != "jsonl":
        raise row_error(1, "the rows have no numbers of labels: add the file of labels, as Y.trn.npz")
    if format is not None:
        if format == "npz" and not with_labels:  # which reads no labels where the options say that there are none
            own = {options.label_column, *LABELS} & read_arrays(path, most, frozenset()).keys()
            if own:
                raise row_error(1, _OWN_LABELS.format(f"in the array '{shorten(min(own))}'"))
        try:
            return FORMATS[format].read(path, given, most)
        except FormatError:
            where = None if with_labels else _own_labels(path, format, options, most)
            if where is None:
                raise
            raise row_error(1, _OWN_LABELS.format(where)) from None
    if _COUNTS.fullmatch(head.partition(b"\n")[0]):
        X = _text_matrix(path)
        n = X.shape[0]
        return Parsed("sparse", [], np.empty(0, np.int32), X=X, label_indptr=np.zeros(n + 1, np.int64))
    first = [line for line in head.decode("utf-8", "replace").splitlines() if line.strip()][:_HEAD_LINES]
    for found in recognised(first, options) if first else []:
        if "unlabelled" not in FORMATS[found].options:
            raise row_error(1, _OWN_LABELS.format(f"as files of the format {found} always have"))
    rows = TextRows()
    for number, line in enumerate(_lines(path), 1):
        rows.add(line, (), "", number)
    return rows.build()


def _own_labels(path: Path, format: str, options: ImportOptions, most: MostUnpacked) -> str | None:
    """Where the rows of a file have labels of their own; None if they have none."""
    try:
        if FORMATS[format].columns is not None:
            names = first_values(path, format, options, most)
            return f"in the column '{shorten(options.label_column)}'" if options.label_column in names else None
        separator = {"label_separator": FORMATS[format].fixed.get("label_separator", (None,))[0]}
        parsed = FORMATS[format].read(path, options.model_copy(update=separator), most)
    except FormatError:
        return None
    return f"such as '{shorten(parsed.labels[0])}'" if parsed.labels else None


def _npz_matrix(path: Path, most: MostUnpacked) -> csr_matrix[np.float64]:
    arrays = read_arrays(path, most, frozenset({*SPARSE, "format"}))
    if "data" not in arrays:
        raise row_error(1, "the labels are no sparse matrix: save it with scipy.sparse.save_npz")
    return sparse_matrix(arrays, lambda total: most.check(total, path.stat().st_size))


def _text_matrix(path: Path) -> csr_matrix[np.float64]:
    """A matrix as text: its shape, and then a row per line, which may be blank."""
    with path.open("rb") as file, tempfile.TemporaryFile() as labelled:
        header = file.readline(_HEAD_BYTES)
        counts = _COUNTS.fullmatch(header)
        assert counts is not None
        n_rows, n_columns = map(int, counts.groups())
        if not 1 <= n_columns <= MAX_INDEX:
            raise row_error(1, f"{counted(n_columns, 'column')}, expected 1 to {MAX_INDEX:,}")
        labelled.write(header)
        number = 1
        while line := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            if len(line) > MAX_RECORD_BYTES:
                raise row_error(number, f"a record is longer than {MAX_RECORD_BYTES} bytes")
            labelled.write(b"0 ")  # so that a blank line is a row
            labelled.write(line)
        labelled.flush()
        rows = Path(f"/proc/self/fd/{labelled.fileno()}")
        X = read_rows(rows, sets=False, zero_based=True, n_header_lines=1).X
    assert X is not None
    if X.shape[0] != n_rows:
        detail = f"the first line declares {counted(n_rows, 'row')}; the file has {X.shape[0]:,}"
        raise row_error(1, f"{detail}: the file may have been cut short")
    if X.shape[1] > n_columns:
        detail = f"the first line declares {counted(n_columns, 'column')}; the largest index is {X.shape[1] - 1:,}"
        raise row_error(1, f"{detail}; indices begin at 0")
    return csr_matrix((X.data, X.indices, X.indptr), shape=(n_rows, n_columns))


def _lines(path: Path) -> list[str]:
    found, number = [], 0
    with path.open("rb") as file:
        while line := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            if len(line) > MAX_RECORD_BYTES:
                raise row_error(number, f"a record is longer than {MAX_RECORD_BYTES} bytes")
            try:
                found.append((line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n").decode())
            except UnicodeDecodeError:
                raise row_error(number, f"not {NOT_UTF8}") from None
    return found


def _json_names(path: Path) -> list[str]:
    """The names of labels, of JSON lines with `uid`, or else `title`."""
    names = []
    for number, line in enumerate(_lines(path), 1):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise row_error(number, f"not valid JSON at character {error.pos + 1}") from None
        name = record.get("uid", record.get("title")) if isinstance(record, dict) else None
        if not isinstance(name, str | int):
            raise row_error(number, "a label has neither uid nor title")
        names.append(str(name))
    return _distinct(names)


def _names(path: Path) -> list[str]:
    """The names of labels, a different one on each line or in each JSON object."""
    head = _head(path)
    if head.lstrip().startswith(b"{"):
        return _json_names(path)
    binary = binary_format(head)
    if binary is not None:
        found = f"is of the format {binary}"
    elif _declares_rows(head, -1):
        found = "is a matrix"
    else:
        lines = _lines(path)
        twice = repeated_name(lines)
        if lines and twice is None:
            return lines
        found = "is empty" if twice is None else f"has '{shorten(twice)}' on several of its {len(lines):,} lines"
    detail = "expected names of labels, a different one on each line"
    raise row_error(1, f"{detail}; the file {found}: labels of rows belong in the file of labels (--labels)", "names")


def _distinct(names: list[str]) -> list[str]:
    """The names of labels; raises FormatError where two are the same."""
    twice = repeated_name(names)
    if twice is not None:
        raise row_error(1, f"two labels are named '{shorten(twice)}'")
    return names


@contextmanager
def _naming(file: str | None) -> Iterator[None]:
    """Errors within begin with the name of the file."""
    try:
        yield
    except FormatError as error:
        named = [replace(each, detail=f"'{shorten(file or '')}': {each.detail}") for each in error.report]
        raise FormatError(named, error.n_errors) from None


@contextmanager
def _extracted(archive: Archive, name: str, most: MostUnpacked) -> Iterator[Path]:
    with tempfile.TemporaryFile() as target:
        for block in archive.blocks(name):
            target.write(block)
        target.flush()
        opened = Path(f"/proc/self/fd/{target.fileno()}")
        with plain_file(opened, most, folder=Path(tempfile.gettempdir())) as path:
            yield path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).removeprefix(BOM)


def _ending(name: str) -> str:
    return PurePosixPath(_PACKED.sub("", name)).suffix.lower().removeprefix(".")
