"""Rows with other labels: those of some rows are replaced, and all else is what it was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from app.formats.table import Parsed, Texts
from app.store.segments import joined_texts, stacked


def relabelled(old: Parsed, segments: Sequence[csr_matrix | Texts], corrections: Mapping[int, Sequence[str]]) -> Parsed:
    """All rows with their labels corrected.

    Parameters
    ----------
    old : Parsed
        The rows, without X and texts.
    segments : sequence of csr_matrix or Texts
        Those.
    corrections : mapping of int to sequence of str
        All labels of a row; one where ``old`` has one a row.

    Returns
    -------
    Parsed
        Its labels are those that some row has.
    """
    names = sorted({*old.labels, *(label for given in corrections.values() for label in given)})
    place = {label: at for at, label in enumerate(names)}
    y = np.array([place[label] for label in old.labels], np.int32)[np.asarray(old.y)]
    indptr = old.label_indptr
    if indptr is None:
        for row, (label,) in corrections.items():
            y[row] = place[label]
    else:
        rows = np.split(y, indptr[1:-1])
        for row, given in corrections.items():
            rows[row] = np.array([place[label] for label in given], np.int32)
        y = np.concatenate([np.empty(0, np.int32), *rows])
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    used, dense = np.unique(y, return_inverse=True)
    labels = [names[at] for at in used.tolist()]
    parsed = replace(old, labels=labels, y=dense.astype(np.int32), label_indptr=indptr)
    texts = [each for each in segments if isinstance(each, Texts)]
    matrices = [each for each in segments if isinstance(each, csr_matrix)]
    return replace(parsed, texts=joined_texts(texts) if texts else None, X=stacked(matrices) if matrices else None)
