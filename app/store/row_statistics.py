"""Statistics of a dataset's rows, computed at import: parts, columns, and how lengths and features are spread."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import ColumnSummary
from app.datasets.statistics_schemas import (
    DatasetStatistics,
    Histogram,
    LabelsAlike,
    LabelsPerRow,
    Lengths,
    WeightRange,
)
from app.formats.labels import PARTS
from app.formats.likeness import similar_labels
from app.formats.table import Parsed
from app.store.corpus import MOST_LISTED, ClassCounts
from app.store.languages import languages
from app.store.part_shift import part_shift
from app.store.row_checks import Counted, Found, number_scales, repetitions, warnings_of, widths

_MOST_ALIKE = 100


def statistics_of(parsed: Parsed) -> DatasetStatistics:
    """Statistics of parsed rows; of many labels only the first are listed."""
    counts = ClassCounts.from_rows(parsed)
    part = np.zeros(parsed.n_rows, np.int8) if parsed.split is None else parsed.split
    n_train, n_test, n_validation = np.bincount(part, minlength=3).tolist()
    sizes = None if parsed.label_indptr is None else np.diff(parsed.label_indptr)
    test_only = counts.test_only
    lengths = widths(parsed)
    weights = parsed.weights
    found_languages = None if parsed.texts is None else languages(parsed.texts)
    numbers = None if parsed.X is None or parsed.texts is not None else number_scales(parsed.X, parsed.feature_names)
    groups = similar_labels(parsed.labels)
    found = Found(repetitions(parsed), part_shift(parsed, counts.train, counts.test), found_languages, numbers, groups)
    return DatasetStatistics(
        n_rows=parsed.n_rows,
        n_train=n_train,
        n_test=n_test,
        n_validation=n_validation,
        n_classes=len(parsed.labels),
        n_features=None if parsed.X is None else int(parsed.X.shape[1]),
        nnz=None if parsed.X is None else int(parsed.X.nnz),
        empty_rows=int((lengths == 0).sum()),
        left_out_rows=parsed.n_left_out,
        deleted_rows=0 if parsed.origins is None else int(parsed.origins[-1]) - parsed.n_rows,
        labels_alike=[LabelsAlike(labels=list(labels), kinds=list(kinds)) for labels, kinds in groups[:_MOST_ALIKE]],
        n_labels_alike=len(groups),
        classes=counts.listed(0, MOST_LISTED),
        lengths=Lengths(least=int(lengths.min()), median=float(np.median(lengths)), most=int(lengths.max())),
        length_counts=by_part(lengths, parsed.split),
        label_counts=None if sizes is None else by_part(sizes, parsed.split),
        feature_counts=None if parsed.X is None else feature_rows(parsed.X),
        columns=None if parsed.columns is None else summaries(parsed),
        numbers=found.numbers,
        repetitions=found.repetitions,
        shift=found.shift,
        languages=found.languages,
        warnings=warnings_of(parsed, Counted(counts.labels, counts.train, counts.test), found),
        weights=None
        if weights is None
        else WeightRange(least=float(weights.min()), most=float(weights.max()), mean=float(weights.mean())),
        labels_per_row=None
        if sizes is None
        else LabelsPerRow(least=int(sizes.min()), most=int(sizes.max()), mean=float(sizes.mean())),
        n_test_only_labels=int(test_only.sum()),
        test_only_labels=[parsed.labels[c] for c in np.flatnonzero(test_only)[:MOST_LISTED]],
    )


_MOST_BINS = 30
_BLOCK = 1 << 22


def by_part(numbers: NDArray[np.int64], split: NDArray[np.int8] | None) -> Histogram:
    """How many rows of each part have how much.

    Parameters
    ----------
    numbers : int64 array, shape (n_rows,)
        0 or more.
    split : int8 array, shape (n_rows,), or None
        0 train, 1 test, 2 validation; None where all rows are training rows.
    """
    edges = _edges(numbers)
    parts = {"train": numbers} if split is None else {name: numbers[split == at] for at, name in enumerate(PARTS)}
    counts = {name: np.histogram(part, edges)[0].tolist() for name, part in parts.items() if len(part)}
    return Histogram(edges=edges.tolist(), counts=counts)


def feature_rows(X: csr_matrix) -> Histogram:
    """How many features are not zero in how many rows.

    Parameters
    ----------
    X : csr_matrix, shape (n_rows, n_features)
    """
    width = X.shape[1]
    if width > max(len(X.indices), _BLOCK):
        # features that no row has cost nothing
        rows = np.unique(X.indices, return_counts=True)[1]
    else:
        rows = np.zeros(width, np.int64)
        for begin in range(0, len(X.indices), _BLOCK):  # bincount copies what it is given into 64 bits
            rows += np.bincount(X.indices[begin : begin + _BLOCK], minlength=width)
    absent = width - len(rows)
    edges = _edges(np.append(rows, 0) if absent else rows)
    counts = np.histogram(rows, edges)[0]
    counts[:1] += absent
    return Histogram(edges=edges.tolist(), counts={"features": counts.tolist()})


def _edges(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Edges of at most ``_MOST_BINS`` intervals: of one number each, or ever wider ones where there are too many."""
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if most - least < _MOST_BINS:
        return np.arange(least, most + 2)
    edges = np.geomspace(max(least, 1), most + 1, _MOST_BINS + (least > 0)).round().astype(np.int64)
    return np.unique(edges if least > 0 else np.append(0, edges))


def summaries(parsed: Parsed) -> list[ColumnSummary]:
    """Each column of a file, as it was read: texts, numbers, categories, and those that were left out.

    Raises
    ------
    ValueError
        Nothing is known of the columns.
    """
    columns = parsed.columns
    if columns is None:
        raise ValueError("the columns are unknown")
    found = [ColumnSummary(name=name, role="text") for name in columns.texts]
    if parsed.X is not None:
        by_column = parsed.X.tocsc()
        counts = np.diff(by_column.indptr)
        for place, name in enumerate(columns.numbers):
            values = by_column.data[by_column.indptr[place] : by_column.indptr[place + 1]]
            found.append(_number(name, values, parsed.n_rows))
        levels = [name.partition("=") for name in (parsed.feature_names or [])[len(columns.numbers) :]]
        for name in columns.categories:
            own = [(level, counts[len(columns.numbers) + at]) for at, (of, _, level) in enumerate(levels) if of == name]
            missing = sum(int(count) for level, count in own if not level)
            n_levels = sum(1 for level, count in own if level and count)
            found.append(ColumnSummary(name=name, role="category", missing=missing, levels=n_levels))
    return found + [ColumnSummary(name=name, role="left out", why=why) for name, why in columns.left_out.items()]


def _number(name: str, values: np.ndarray, n_rows: int) -> ColumnSummary:
    """Least, most and mean of a column with nonzero values."""
    there = values[~np.isnan(values)]
    n_missing, n_zeros = len(values) - len(there), n_rows - len(values)
    if not len(there) + n_zeros:
        return ColumnSummary(name=name, role="number", missing=n_missing)
    least, most = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
    least, most = (min(least, 0.0), max(most, 0.0)) if n_zeros else (least, most)
    mean = float(there.sum() / (len(there) + n_zeros))
    return ColumnSummary(name=name, role="number", missing=n_missing, least=least, most=most, mean=mean)
