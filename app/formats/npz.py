"""NPZ files: a dense or sparse matrix or texts, with labels, as numpy and scipy save them; no pickles.

Arrays: `X` (n, d), or `data`, `indices`, `indptr` and `shape` as `scipy.sparse.save_npz` writes them, or `texts` (n,).
Labels are `label`, `labels`, `y` or what the options name: strings, or integers, which are indices into
`label_names` (or `names`) where that is there. Sets of labels are `label_indptr` (n + 1,) beside, or a matrix (n,
n_labels) of zeros and ones; of one column (n, 1) it is read as labels (n,). Booleans are called true and false. If
wanted `split` (train, test, validation, or 0, 1, 2), `weights`, `feature_names`; `id` and `ids` are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.schemas import ImportOptions
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, Splits, repeated_name
from app.formats.npz_arrays import read_arrays
from app.formats.npz_matrix import SPARSE, Array, dense_matrix, shape_error, sparse_matrix, text_of
from app.formats.plain_file import MostUnpacked
from app.formats.table import Parsed, Problems, row_error, shorten
from app.formats.text_rows import TextBlob
from app.formats.weights import Weights
from app.plurals import counted
from app.values import normalized, written

LABELS = ("label", "labels", "y")
_NAMES = ("label_names", "names")
_IGNORED = frozenset({"id", "ids"})
_KNOWN = frozenset(
    {
        "X",
        "texts",
        *SPARSE,
        "format",
        "_is_array",
        *LABELS,
        *_NAMES,
        "label_indptr",
        "split",
        "weights",
        "feature_names",
    }
)


def parse_npz(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read an NPZ file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_column` and `weight_column` are names of arrays.
    most : MostUnpacked
        What the arrays may come to.

    Returns
    -------
    Parsed
        Kind "text" if there are `texts`, else "sparse".

    Raises
    ------
    FormatError
        Arrays are missing, unknown, damaged, or do not fit one another; errors of rows count rows from 1.
    """
    named = {options.label_column} | ({options.weight_column} if options.weight_column else set())
    wanted = (_KNOWN | named) - set(options.ignore_columns)
    arrays = dict(read_arrays(path, most, frozenset(wanted)))
    unknown = sorted(arrays.keys() - wanted - _IGNORED - set(options.ignore_columns))
    if unknown:
        listed = ", ".join(f"'{shorten(name)}'" for name in unknown[:3])
        raise row_error(
            1, f"{counted(len(unknown), 'unknown array')}: {listed} (leave arrays out with ignore_columns)", unknown[0]
        )
    arrays = {name: array for name, array in arrays.items() if name in wanted}
    size = path.stat().st_size
    X, texts = _rows_of(arrays, lambda total: most.check(total, size))
    n = X.shape[0] if X is not None else arrays["texts"].shape[0]
    if n == 0:
        raise row_error(1, "the matrix has no rows")
    problems, rows = Problems(), np.arange(1, n + 1, dtype=np.int64)
    if options.unlabelled:
        _check_unlabelled(arrays, options)
        labels: Labels | LabelSets = _sets([], np.zeros(n + 1, np.int64), rows, problems)
    else:
        labels = _labels(arrays, options, rows, problems)
    split = _split(arrays, rows, problems)
    weights = _weights(arrays, options, rows, problems)
    matrix = None if X is None else _checked(X, rows, problems)
    problems.raise_if_any()
    label_names, y, indptr = build_labels(labels)
    if texts is not None:
        return Parsed("text", label_names, y, split, texts=texts.build(), weights=weights, label_indptr=indptr)
    assert matrix is not None
    names = _feature_names(arrays, matrix.shape[1])
    return Parsed("sparse", label_names, y, split, matrix, feature_names=names, weights=weights, label_indptr=indptr)


def _rows_of(
    arrays: Mapping[str, Array], check: Callable[[int], None]
) -> tuple[csr_matrix[np.float64] | None, TextBlob | None]:
    given = [name for name in ("X", "texts") if name in arrays] + [name for name in ("data",) if name in arrays]
    if len(given) != 1:
        found = " and ".join(given) or "none of these"
        raise row_error(1, f"expected X, or texts, or data with indices, indptr and shape; the file has {found}")
    if given == ["texts"]:
        return None, _texts(arrays["texts"])
    if given == ["X"]:
        return dense_matrix(arrays["X"]), None
    return sparse_matrix(arrays, check), None


def _texts(array: Array) -> TextBlob:
    if array.ndim != 1 or array.dtype.kind != "U":
        raise shape_error("texts", array, "(n,) of strings")
    texts = TextBlob()
    encoded = [text.encode("utf-8", "replace") for text in array.tolist()]
    texts.add(np.frombuffer(b"".join(encoded), np.uint8), np.array([len(text) for text in encoded], np.int64))
    return texts


def _checked(X: csr_matrix[np.float64], rows: npt.NDArray[np.int64], problems: Problems) -> csr_matrix[np.float64]:
    for at in np.flatnonzero(~np.isfinite(X.data)).tolist():
        row = int(np.searchsorted(X.indptr, at, "right")) - 1
        problems.add(int(rows[row]), f"{X.data[at]} is not a finite number", f"column {X.indices[at]}")
    return X


def _check_unlabelled(arrays: Mapping[str, Array], options: ImportOptions) -> None:
    """Refuse labels in a file that should have none, unless other columns are ignored."""
    own = next((name for name in (options.label_column, *LABELS) if name in arrays), None)
    if own is not None and options.other_columns != "ignore":
        detail = "unlabelled is set, but the file has labels: leave unlabelled out, or name the array in ignore_columns"
        raise row_error(1, detail, own)


def _labels(
    arrays: Mapping[str, Array], options: ImportOptions, rows: npt.NDArray[np.int64], problems: Problems
) -> Labels | LabelSets:
    key = next((name for name in (options.label_column, *LABELS) if name in arrays), None)
    if key is None:
        found = ", ".join(f"'{shorten(name)}'" for name in sorted(arrays)[:8])
        looked_for = ", ".join(f"'{shorten(name)}'" for name in dict.fromkeys([options.label_column, *LABELS]))
        second = "Labels may be in a second file (in the terminal: --labels)"
        detail = f"no array of labels ({looked_for}); the file has {found}. {second}"
        raise row_error(1, detail)
    array = arrays[key]
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    names = _names(arrays)
    if array.ndim == 2 and array.dtype.kind in "biuf":
        if len(array) != len(rows):
            raise shape_error(key, array, f"({len(rows)}, n_labels)")
        if not np.isin(array, (0, 1)).all():
            raise row_error(int(np.flatnonzero(~np.isin(array, (0, 1)).all(1))[0]) + 1, "expected zeros and ones", key)
        row, members = np.nonzero(array)
        return _sets(_label_names(members, names, key), np.searchsorted(row, np.arange(len(rows) + 1)), rows, problems)
    if array.ndim != 1 or array.dtype.kind not in "biuSU":
        raise shape_error(key, array, "a list of strings or integers, or a matrix of zeros and ones")
    if "label_indptr" in arrays:
        indptr = arrays["label_indptr"]
        if indptr.dtype.kind not in "iu" or indptr.shape != (len(rows) + 1,):
            raise shape_error("label_indptr", indptr, f"({len(rows) + 1},) of integers")
        if indptr[0] != 0 or indptr[-1] != len(array) or (indptr[1:] < indptr[:-1]).any():
            raise row_error(1, "expected increasing offsets from 0 to the number of labels", "label_indptr")
        return _sets(_label_names(array, names, key), indptr, rows, problems)
    if len(array) != len(rows):
        raise shape_error(key, array, f"({len(rows)},), as many as rows")
    one = Labels()
    values, codes = np.unique(array, return_inverse=True)
    one.add(codes.astype(np.int64), _label_names(values, names, key), rows, problems)
    return one


def _sets(names: list[str], indptr: Array, rows: npt.NDArray[np.int64], problems: Problems) -> LabelSets:
    ends = indptr.tolist()
    sets = LabelSets()
    sets.add_sets(np.arange(len(rows)), [names[ends[k] : ends[k + 1]] for k in range(len(rows))], rows, problems)
    return sets


def _names(arrays: Mapping[str, Array]) -> list[str] | None:
    key = next((name for name in _NAMES if name in arrays), None)
    if key is None:
        return None
    if arrays[key].ndim != 1:
        raise shape_error(key, arrays[key], "a list of strings")
    names = [text_of(name, key) for name in arrays[key].tolist()]
    twice = repeated_name(names)
    if twice is not None:
        raise row_error(1, f"two labels are named '{shorten(twice)}'", key)
    return names


def _label_names(array: Array, names: list[str] | None, key: str) -> list[str]:
    """Labels as strings: as they are, or the names that integers index."""
    if array.dtype.kind in "SU":
        return [text_of(name, key) for name in array.tolist()]
    if names is None:
        return [written(label) for label in array.tolist()]
    if len(array) and not (int(array.min()) >= 0 and int(array.max()) < len(names)):
        raise row_error(1, f"a label is not between 0 and {len(names) - 1}, the range of the names", key)
    return [names[int(label)] for label in array.tolist()]


def _split(arrays: Mapping[str, Array], rows: npt.NDArray[np.int64], problems: Problems) -> npt.NDArray[np.int8] | None:
    if "split" not in arrays:
        return None
    array = arrays["split"]
    if array.shape != (len(rows),) or array.dtype.kind not in "biuSU":
        raise shape_error("split", array, f"({len(rows)},) of strings or integers")
    values, codes = np.unique(array, return_inverse=True)
    words = {"0": "train", "1": "test", "2": "validation", "True": "test", "False": "train"}
    names = [text_of(value, "split") for value in values.tolist()]
    splits = Splits()
    splits.add(codes.astype(np.int64), [words.get(name, name) for name in names], rows, problems)
    return splits.build()


def _weights(
    arrays: Mapping[str, Array], options: ImportOptions, rows: npt.NDArray[np.int64], problems: Problems
) -> npt.NDArray[np.float64] | None:
    key = options.weight_column or "weights"
    if key not in arrays:
        if options.weight_column is not None:
            raise row_error(1, f"no array '{shorten(key)}' of weights")
        return None
    array = arrays[key]
    if array.shape != (len(rows),) or array.dtype.kind not in "iuf":
        raise shape_error(key, array, f"({len(rows)},) of numbers")
    weights = Weights(key)
    weights.add(array.astype(np.float64), rows, problems)
    return weights.build()


def _feature_names(arrays: Mapping[str, Array], n_features: int) -> list[str] | None:
    if "feature_names" not in arrays:
        return None
    array = arrays["feature_names"]
    names = [normalized(text_of(name, "feature_names")) for name in array.tolist()] if array.ndim == 1 else []
    if len(names) != n_features or len(set(names)) != len(names):
        raise shape_error("feature_names", array, f"{n_features} different strings")
    return names
