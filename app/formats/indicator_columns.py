"""Labels that a table has as columns of 0 and 1, one column a label."""

from dataclasses import replace

import numpy as np

from app.datasets.schemas import ImportOptions
from app.formats.columns import indicator_columns
from app.formats.table import MAX_LISTED, FormatError, Parsed, RowError


def as_numbers(options: ImportOptions) -> ImportOptions:
    """Options by which the columns of labels are read as numbers of rows without labels."""
    return options.model_copy(update={"unlabelled": True})


def with_indicator_labels(parsed: Parsed, options: ImportOptions) -> Parsed:
    """Rows with the labels whose columns have a 1, without these columns among their features.

    Parameters
    ----------
    parsed : Parsed
        Read by :func:`as_numbers`.
    options : ImportOptions
        Their `label_columns` name the columns.

    Raises
    ------
    FormatError
        A value is neither 0 nor 1; its row is counted from 1, without the header.
    """
    assert parsed.X is not None
    assert parsed.feature_names is not None
    n_numbers = len(parsed.columns.numbers) if parsed.columns is not None else len(parsed.feature_names)
    names = indicator_columns(parsed.feature_names[:n_numbers], options)
    chosen = np.isin(np.array(parsed.feature_names, object), names)
    marks = parsed.X[:, np.flatnonzero(chosen)].tocsr()
    wrong = np.flatnonzero(marks.data != 1)
    if len(wrong):
        rows = np.searchsorted(marks.indptr, wrong, side="right")
        shown = [
            RowError(int(row), names[marks.indices[at]], f"{marks.data[at]:g}, expected 0 or 1")
            for row, at in zip(rows[:MAX_LISTED].tolist(), wrong[:MAX_LISTED].tolist(), strict=True)
        ]
        raise FormatError(shown, len(wrong))
    found = np.unique(marks.indices)
    labels = sorted(names[at] for at in found.tolist())
    place = np.zeros(len(names), np.int32)
    place[found] = [labels.index(names[at]) for at in found.tolist()]
    marks.indices = place[marks.indices]
    marks.sort_indices()
    y, indptr = np.asarray(marks.indices, np.int32), np.asarray(marks.indptr, np.int64)
    left = np.flatnonzero(~chosen)
    columns = parsed.columns
    if columns is not None:
        columns = columns.model_copy(update={"numbers": tuple(n for n in columns.numbers if n not in set(names))})
    if len(left):
        kept = [parsed.feature_names[at] for at in left.tolist()]
        X = parsed.X[:, left].tocsr()
        return replace(parsed, labels=labels, y=y, label_indptr=indptr, X=X, feature_names=kept, columns=columns)
    columns = columns if columns is not None and columns.inferred else None
    bare = replace(parsed, kind="text", X=None, feature_names=None, columns=columns)
    return replace(bare, labels=labels, y=y, label_indptr=indptr)
