"""Statistics of a dataset's rows, computed at import."""

import numpy as np

from app.datasets.statistics_schemas import DatasetStatistics, LabelsAlike, LabelsPerRow, Lengths, WeightRange
from app.formats.likeness import similar_labels
from app.formats.table import Parsed
from app.store.column_summaries import summaries
from app.store.corpus import MOST_LISTED, ClassCounts
from app.store.distributions import by_part, feature_rows
from app.store.languages import languages
from app.store.number_scales import number_scales
from app.store.part_shift import part_shift
from app.store.row_checks import Counted, Found, repetitions, warnings_of, widths

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
