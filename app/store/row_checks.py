"""Warnings about a dataset's rows (duplicates, leaks and other causes of misleading metrics), and their scales."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets.statistics_schemas import (
    ColumnSpread,
    DatasetWarning,
    Languages,
    NumberScales,
    PartShift,
    Repetitions,
)
from app.formats.label_forms import joined_by, looks_like_list
from app.formats.labels import TEST, TRAIN, VALIDATION
from app.formats.likeness import KINDS, Alike
from app.formats.table import Parsed, shorten
from app.plurals import counted
from app.store.row_keys import mixed, row_keys, sums
from solvers.numerics import number_scales as scales
from solvers.numerics.number_scales import scales_of

_SAMPLE = 5000
_MANY_DUPLICATES = 0.05
_LEAKING = 0.5
_DOMINANT = 0.95
_TOLD_APART = 0.65
_OTHER_SHARES = 0.1
# share of the texts from which on a language is many texts' own
MANY_TEXTS = 0.1
_SHORTEST_NAME = 3


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows by label and part, shape (n_classes,) each."""

    labels: Sequence[str]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


class Found(NamedTuple):
    """Findings about the rows."""

    repetitions: Repetitions
    shift: PartShift | None = None
    languages: Languages | None = None
    numbers: NumberScales | None = None
    alike: Sequence[Alike] = ()


def repetitions(parsed: Parsed) -> Repetitions:
    """Rows whose content is that of another row, whatever their labels.

    Contents are compared by hashes of 64 bits. A row without any content repeats none.
    """
    matrices = [] if parsed.X is None else [parsed.X]
    keys = row_keys(matrices, [] if parsed.texts is None else [parsed.texts], parsed.feature_names)
    rows = np.flatnonzero(keys)
    _, first, group = np.unique(keys[rows], return_index=True, return_inverse=True)
    sets = _label_keys(parsed)[rows]
    part = np.zeros(len(keys), np.int8) if parsed.split is None else parsed.split
    in_train = np.zeros(len(first), bool)
    in_train[group[part[rows] == TRAIN]] = True
    also = in_train[group]
    return Repetitions(
        duplicates=len(rows) - len(first),
        conflicting=int((sets != sets[first][group]).sum()),
        test_in_train=int((also & (part[rows] == TEST)).sum()),
        validation_in_train=int((also & (part[rows] == VALIDATION)).sum()),
    )


def warnings_of(parsed: Parsed, counts: Counted, found: Found) -> list[DatasetWarning]:
    """Warnings to consider before training on these rows, most important first."""
    return [DatasetWarning(code=code, detail=detail) for code, detail in _warnings(parsed, counts, found)]


def _warnings(parsed: Parsed, counts: Counted, found: Found) -> Iterator[tuple[str, str]]:
    yield from _of_repetitions(parsed, found.repetitions)
    if found.shift is not None:
        yield from _of_shift(found.shift)
    if found.languages is not None:
        yield from _of_languages(found.languages)
    if parsed.columns is None and found.numbers is not None and (reason := why_scaled(found.numbers)) is not None:
        yield (
            "numbers_scaled",
            f"{reason}; trainings scale the numbers unless columns.scaling says how, and the job shows the scaling",
        )
    yield from _of_ids(parsed)
    yield from _of_alike(found.alike)
    yield from _of_forms(parsed)
    yield from _of_labels(parsed, counts)
    yield from _of_texts(parsed)
    empty = int((widths(parsed) == 0).sum())
    if empty:
        yield "empty_rows", f"{counted(empty, 'row', 'has/have')} no content: a model can only guess the labels"


def _of_repetitions(parsed: Parsed, found: Repetitions) -> Iterator[tuple[str, str]]:
    n = parsed.n_rows
    n_test = 0 if parsed.split is None else int((parsed.split == TEST).sum())
    if found.test_in_train:
        share = found.test_in_train / n_test
        yield (
            "test_rows_in_training",
            f"{found.test_in_train:,} test rows ({share:.1%}) repeat the content of a training row: metrics on them "
            "will be too optimistic",
        )
    if found.validation_in_train:
        yield (
            "validation_rows_in_training",
            f"{found.validation_in_train:,} rows for validation repeat the content of a training row",
        )
    if found.duplicates >= _MANY_DUPLICATES * n:
        held_out = "; rows held out at random will repeat rows that were trained on" if parsed.split is None else ""
        yield "duplicates", f"{found.duplicates:,} rows ({found.duplicates / n:.0%}) repeat an earlier row{held_out}"
    if found.conflicting:
        yield (
            "conflicting_labels",
            f"{counted(found.conflicting, 'row', 'has/have')} the content of an earlier row but other labels",
        )


def _of_ids(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Ids that several rows have."""
    if parsed.ids is None:
        return
    keys = row_keys([], [parsed.ids])
    given = np.flatnonzero(keys)
    _, first = np.unique(keys[given], return_index=True)
    repeated = np.setdiff1d(given, given[first])
    if len(repeated):
        shown = f"'{shorten(parsed.ids[int(repeated[0])])}'"
        yield (
            "ids_repeated",
            f"{counted(len(repeated), 'row', 'has/have')} the id of an earlier row, such as {shown}: a correction by "
            "id changes all rows with that id",
        )


def _of_alike(groups: Sequence[Alike]) -> Iterator[tuple[str, str]]:
    """Labels that a reader would consider the same."""
    if not groups:
        return
    kinds = [kind for kind in KINDS if any(kind in group.kinds for group in groups)]
    looks = "looks" if len(groups) == 1 else "look"
    yield (
        "labels_alike",
        f"{counted(len(groups), 'group')} of labels {looks} alike, such as {', '.join(map(_beside, groups[:3]))}: "
        f"upload with merge_labels={' and merge_labels='.join(kinds)} to merge each group into one label",
    )


def _beside(group: Alike) -> str:
    """Labels of a group; who sees no difference between two of them sees their code points."""
    shown = ascii if "unicode" in group.kinds else repr
    return " and ".join(map(shown, group.labels[:3]))


def _look(n: int) -> str:
    return "looks like" if n == 1 else "look like"


def _of_forms(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Labels that look like lists, and rows that were left out."""
    lists = [label for label in parsed.labels if looks_like_list(label)]
    if lists:
        yield (
            "labels_like_lists",
            f"{counted(len(lists), 'label')}, such as '{shorten(lists[0])}', {_look(len(lists))} lists: upload with "
            "label_lists=read to read them as sets of labels",
        )
    joined = joined_by(parsed.labels) if parsed.label_indptr is None and not lists else None
    if joined is not None:
        mark = joined[0]
        yield (
            "labels_joined",
            f"{counted(len(joined[1]), 'label')}, such as '{shorten(joined[1][0])}', {_look(len(joined[1]))} several "
            f"labels with '{mark}' between them: upload with label_separator={mark} to read them as sets of labels",
        )
    if parsed.n_left_out:
        yield (
            "rows_left_out",
            f"{counted(parsed.n_left_out, 'row', 'of the file', 'was/were')} left out by without_label",
        )
    if parsed.n_other_languages:
        left_out = counted(parsed.n_other_languages, "row", "was/were")
        yield "rows_in_other_languages", f"{left_out} left out by languages: texts in other languages"


def _of_shift(shift: PartShift) -> Iterator[tuple[str, str]]:
    """Warn if test rows have another source than training rows."""
    if shift.auc is not None and shift.auc >= max(_TOLD_APART, shift.auc_by_chance or 0.0):
        yield (
            "test_rows_drawn_otherwise",
            f"test rows differ from training rows (AUC {shift.auc:.2f}; 0.50 is chance), as if from another time or "
            "source: expect worse metrics than on rows held out at random",
        )
    if shift.label_variation - shift.label_variation_by_chance >= _OTHER_SHARES:
        yield (
            "test_labels_drawn_otherwise",
            f"labels have other shares in the test part than in training: {shift.label_variation:.0%} of either would "
            f"have to change, where chance makes it {shift.label_variation_by_chance:.0%}",
        )


def _of_languages(found: Languages) -> Iterator[tuple[str, str]]:
    """Warn if texts are in several languages with a large share each, or their language is not clear."""
    if not found.shares:
        yield (
            "language_unclear",
            "the language of the texts is not clear, as with short texts in several languages, names or codes: stems "
            "and stop words cannot be checked against it; set text.language where its letter case matters (tr, az, lt)",
        )
    many = [each for each in found.shares if each.share >= MANY_TEXTS and each.language != "other"]
    if len(many) > 1:
        named = ", ".join(f"{each.language} {each.share:.0%}" for each in many)
        yield (
            "several_languages",
            f"the texts are in several languages ({named}): train with by_language (--text-by-language) for a model of "
            "each, or keep rows in one with --languages; otherwise labels may depend on the language",
        )


def _of_labels(parsed: Parsed, counts: Counted) -> Iterator[tuple[str, str]]:
    rows = counts.train + counts.test
    single = np.flatnonzero(rows == 1)
    if len(single):
        yield (
            "labels_with_one_row",
            f"{counted(len(single), 'label', 'has/have')} one row{'' if len(single) == 1 else ' each'}, such as "
            f"{_named(counts.labels, single)}: such labels cannot be both trained on and tested",
        )
    unseen = np.flatnonzero((counts.train == 0) & (counts.test > 0))
    if len(unseen):
        named = _named(counts.labels, unseen)
        yield (
            "labels_in_test_alone",
            f"{counted(len(unseen), 'label', 'is/are')} in the test part and not in training, such as {named}",
        )
    if len(counts.labels) == 1:
        yield (
            "one_label",
            f"all rows have the label {_named(counts.labels, np.array([0]))}: there is nothing to distinguish",
        )
    elif parsed.label_indptr is None and rows.max() >= _DOMINANT * rows.sum():
        most = int(rows.argmax())
        yield (
            "one_label_dominates",
            f"{rows[most] / rows.sum():.1%} of the rows have the label {_named(counts.labels, [most])}",
        )


def _of_texts(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Whether texts have the names of their labels in them, counted over rows drawn evenly."""
    if parsed.texts is None or len(parsed.labels) < 2:
        return
    rows = np.unique(np.linspace(0, parsed.n_rows - 1, min(parsed.n_rows, _SAMPLE)).astype(np.int64))
    patterns: dict[int, re.Pattern[str] | None] = {}
    tried = leaking = 0
    for row in rows.tolist():
        begin, end = (row, row + 1) if parsed.label_indptr is None else parsed.label_indptr[row : row + 2]
        text = None
        for label in parsed.y[begin:end].tolist():
            pattern = patterns.setdefault(label, _pattern(parsed.labels[label]))
            if pattern is None:
                continue
            text = parsed.texts[row].casefold() if text is None else text
            tried += 1
            leaking += pattern.search(text) is not None
    if tried and leaking >= _LEAKING * tried and leaking > 1:
        yield (
            "label_in_text",
            f"in {leaking / tried:.0%} of the sampled rows the text contains the name of its label: a model will "
            "learn to find the name, and fail on texts without it",
        )


def _pattern(label: str) -> re.Pattern[str] | None:
    name = label.casefold()
    if len(name) < _SHORTEST_NAME or not any(map(str.isalpha, name)):
        return None
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _named(labels: Sequence[str], chosen: NDArray[np.int64] | Sequence[int]) -> str:
    return ", ".join(f"'{shorten(labels[int(at)])}'" for at in chosen[:3])


def widths(parsed: Parsed) -> NDArray[np.int64]:
    """How long rows are, shape (n,): bytes of text, and features that are not zero."""
    found = np.zeros(parsed.n_rows, np.int64) if parsed.X is None else np.diff(parsed.X.indptr).astype(np.int64)
    return found if parsed.texts is None else found + np.diff(parsed.texts.offsets)


def _label_keys(parsed: Parsed) -> NDArray[np.uint64]:
    if parsed.label_indptr is None:
        return parsed.y.astype(np.uint64)
    return sums(mixed(parsed.y.astype(np.uint64) + np.uint64(1)), parsed.label_indptr)


def number_scales(X: csr_matrix, names: Sequence[str] | None) -> NumberScales:
    """The largest number and, of dense columns, the smallest and the largest standard deviation.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_rows, n_features)
        NaN is a missing number, and is left out.
    names : sequence of str, optional
        Of all columns.
    """
    found = scales_of(X)
    least, most = (
        None
        if spread is None
        else ColumnSpread(
            column=str(spread.column) if names is None else names[spread.column], deviation=spread.deviation
        )
        for spread in (found.least, found.most)
    )
    return NumberScales(largest=found.largest, least_spread=least, most_spread=most)


def why_scaled(numbers: NumberScales) -> str | None:
    """Why numbers are scaled by default; None where they are taken as they are."""
    least, most = (
        None if spread is None else (spread.column, spread.deviation)
        for spread in (numbers.least_spread, numbers.most_spread)
    )
    return scales.why_scaled(numbers.largest, least, most)
