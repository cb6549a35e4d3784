"""Rows with other labels, or without some rows; all else is what it was."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
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
    parsed = _labelled(old, names, y, indptr)
    texts = [each for each in segments if isinstance(each, Texts)]
    matrices = [each for each in segments if isinstance(each, csr_matrix)]
    return replace(parsed, texts=joined_texts(texts) if texts else None, X=stacked(matrices) if matrices else None)


def corrected(rows: Parsed, n_old: int) -> tuple[Parsed, list[int]]:
    """Let new rows correct old ones with the same id, text and numbers.

    Parameters
    ----------
    rows : Parsed
        The old rows, and the new ones below them.
    n_old : int
        How many are old.

    Returns
    -------
    rows : Parsed
        All rows with the labels of the new, without the new rows that corrected old ones.
    new : list of int
        The numbers that those had.
    """
    by_id: dict[str, list[int]] = {}
    ids = list(rows.ids or ())
    for row, id in enumerate(ids[:n_old]):
        by_id.setdefault(id, []).append(row)
    pairs = [
        (old, new)
        for new, id in enumerate(ids[n_old:], n_old)
        for old in (by_id.get(id, ()) if id else ())
        if _same_content(rows, old, new)
    ]
    if not pairs:
        return rows, []
    labels = {old: _names(rows, new) for old, new in pairs}
    replaced = sorted({new for _, new in pairs})
    segments = [each for each in (rows.X, rows.texts) if each is not None]
    return without(relabelled(rows, segments, labels), replaced), replaced


def _same_content(rows: Parsed, one: int, other: int) -> bool:
    if rows.texts is not None and rows.texts[one] != rows.texts[other]:
        return False
    if rows.X is None:
        return True
    first, second = (slice(*rows.X.indptr[row : row + 2]) for row in (one, other))
    return np.array_equal(rows.X.indices[first], rows.X.indices[second]) and np.array_equal(
        rows.X.data[first], rows.X.data[second], equal_nan=True
    )


def _names(rows: Parsed, row: int) -> list[str]:
    begin, end = (row, row + 1) if rows.label_indptr is None else rows.label_indptr[row : row + 2]
    return [rows.labels[label] for label in np.asarray(rows.y)[begin:end].tolist()]


def without(rows: Parsed, deleted: Collection[int]) -> Parsed:
    """All rows but some.

    Returns
    -------
    Parsed
        Its labels are those that some row has; ``origins`` is where its rows were.
    """
    kept = np.ones(rows.n_rows, bool)
    kept[list(deleted)] = False
    y, indptr = np.asarray(rows.y), rows.label_indptr
    if indptr is None:
        y = y[kept]
    else:
        sizes = np.diff(indptr)
        y = y[np.repeat(kept, sizes)]
        indptr = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    origins = np.arange(rows.n_rows + 1) if rows.origins is None else np.asarray(rows.origins)
    X = None
    if rows.X is not None:
        X = csr_matrix(rows.X[kept])
        X.has_canonical_format = True
    return replace(
        _labelled(rows, rows.labels, y, indptr),
        split=None if rows.split is None else np.asarray(rows.split)[kept],
        weights=None if rows.weights is None else np.asarray(rows.weights)[kept],
        origins=origins[np.append(kept, True)],
        texts=None if rows.texts is None else _some(rows.texts, kept),
        ids=None if rows.ids is None else _some(rows.ids, kept),
        X=X,
    )


def _labelled(rows: Parsed, names: list[str], y: NDArray[np.int32], indptr: NDArray[np.int64] | None) -> Parsed:
    """The rows with other labels, of which only those are left that some row has."""
    used, dense = np.unique(y, return_inverse=True)
    labels = [names[at] for at in used.tolist()]
    return replace(rows, labels=labels, y=dense.astype(np.int32), label_indptr=indptr)


def _some(texts: Texts, kept: NDArray[np.bool_]) -> Texts:
    sizes = np.diff(texts.offsets)
    blob = texts.blob[texts.offsets[0] : texts.offsets[-1]][np.repeat(kept, sizes)]
    offsets = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    return Texts(blob, offsets, None if texts.sizes is None else texts.sizes[kept])
