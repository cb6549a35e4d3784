"""A dataset's rows on disk: plain arrays, memory-mapped, and how many carry which label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TableColumns
from app.datasets.statistics_schemas import ClassCount, LabelType
from app.features.names import pack_names
from app.formats.labels import PARTS
from app.formats.table import Kind, Parsed, Texts
from app.store.files import Files
from app.store.segments import Extended, SegmentedTexts, stacked

# labels that statistics list, and up to which a manifest holds them
MOST_LISTED = 1000
# a version of more is written as a whole and shares none
_MOST_SEGMENTS = 16


@dataclass(frozen=True, eq=False)
class Corpus:
    """The rows of one dataset.

    Attributes
    ----------
    kind : "text", "sparse" or "table"
        Which of ``texts`` and ``X`` is there; a table has ``X`` and perhaps ``texts``.
    labels : sequence of str
        Distinct label names, sorted.
    y : int32 array, shape (n_rows,) or (n_labels,)
        Index into ``labels`` of each row or, where rows have sets, of all their labels, row after row.
    split : int8 array, shape (n_rows,), or None
        0 train, 1 test, 2 validation.
    segments : tuple of csr_matrix of float64, shape (any, n_features)
        The rows of X, one below the other; more than one where rows were appended.
    texts : Texts or SegmentedTexts or None
    weights : float64 array, shape (n_rows,), or None
        Weights of the rows; None where the file gave none, and in corpora written before files could.
    label_indptr : int64 array, shape (n_rows + 1,), or None
        Where the labels of each row begin in ``y``; None where each row has one.
    columns : TableColumns or None
        Columns of a table, and which of them were inferred from their values.
    ids : Texts or None
        What the file calls its rows.
    label_type : str or None
        How labels are read: as text, boolean, number or integer. None of those that an earlier version imported.
    origins : int64 array, shape (n_rows + 1,), or None
        The place of each row among all rows that the dataset ever had, and last the number of these; None where no row
        was deleted.
    """

    kind: Kind
    labels: Sequence[str]
    y: NDArray[np.int32]
    split: NDArray[np.int8] | None
    segments: tuple[csr_matrix, ...]
    texts: Texts | SegmentedTexts | None
    feature_names: list[str] | None
    weights: NDArray[np.float64] | None = None
    label_indptr: NDArray[np.int64] | None = None
    columns: TableColumns | None = None
    ids: Texts | None = None
    label_type: LabelType | None = None
    origins: NDArray[np.int64] | None = None

    @cached_property
    def X(self) -> csr_matrix | None:  # noqa: N802 - the field's name of it
        """All rows; of several segments a copy in memory."""
        return stacked(self.segments) if self.segments else None

    @property
    def n_rows(self) -> int:
        return len(self.y) if self.label_indptr is None else len(self.label_indptr) - 1

    def names(self, row: int, limit: int | None = None) -> list[str]:
        """The labels of a row, or the first ``limit`` of them."""
        begin, end = (row, row + 1) if self.label_indptr is None else self.label_indptr[row : row + 2]
        end = end if limit is None else min(end, begin + limit)
        return [self.labels[label] for label in self.y[begin:end].tolist()]

    def features(self, row: int, limit: int | None = None) -> list[tuple[int, float]]:
        """The (index, value) pairs of a row, or the first ``limit`` of them."""
        for segment in self.segments:
            if row < segment.shape[0]:
                break
            row -= segment.shape[0]
        begin, end = (int(offset) for offset in segment.indptr[row : row + 2])
        end = end if limit is None else min(end, begin + limit)
        pairs = zip(segment.indices[begin:end].tolist(), segment.data[begin:end].tolist(), strict=True)
        return [(int(index), float(value)) for index, value in pairs]

    def record(self, row: int, limit: int | None = None) -> dict[str, float | str | None]:
        """The numbers and categories of a table's row, or the first ``limit`` of them; None for what is missing."""
        assert self.columns is not None
        numbers = self.columns.numbers
        reported: dict[str, float | str | None] = dict.fromkeys(numbers, 0.0)
        for index, value in self.features(row) if self.segments else ():
            if index < len(numbers):
                reported[numbers[index]] = None if np.isnan(value) else value
            else:
                column, _, level = (self.feature_names or ())[index].partition("=")
                reported[column] = level or None
        return dict(list(reported.items())[:limit])

    @property
    def parts(self) -> tuple[csr_matrix | Texts, ...]:
        """The segments of texts and numbers."""
        if self.texts is None:
            return self.segments
        texts = (self.texts,) if isinstance(self.texts, Texts) else tuple(self.texts.segments)
        return (*self.segments, *texts)

    def head(self) -> Parsed:
        """All but texts and numbers, as it was parsed."""
        return Parsed(
            self.kind,
            list(self.labels),
            self.y,
            self.split,
            feature_names=self.feature_names,
            weights=self.weights,
            label_indptr=self.label_indptr,
            columns=self.columns,
            ids=self.ids,
            label_type=self.label_type,
            origins=self.origins,
        )

    def present(self, of_all: NDArray[Any]) -> NDArray[Any]:
        """Of an array with a value for each row that the dataset ever had, the values of the rows that it has."""
        return of_all if self.origins is None else of_all[np.asarray(self.origins[:-1])]

    def places_in(self, other: "Corpus") -> NDArray[np.int64]:
        """The number of each row in another version of the dataset, shape (n_rows,); -1 where that lacks it."""
        own, others = _origins(self), _origins(other)
        at = np.minimum(np.searchsorted(others, own), max(len(others) - 1, 0))
        return np.where(others[at] == own, at, -1)


def save_corpus(files: Files, path: str, parsed: Parsed) -> None:
    """Write what was parsed into the new folder ``path``."""
    arrays = _segment(parsed.X, parsed.texts, 0)
    _save(files, path, parsed, arrays, {}, 1)


def save_extended(files: Files, path: str, old_path: str, extension: Extended) -> None:
    """Write rows that were appended into the new folder ``path``, which shares those of before with the old folder."""
    n_old = files.manifest(old_path).get("segments", 1)
    if n_old >= _MOST_SEGMENTS:
        save_corpus(files, path, extension.whole)
        return
    shared = _shared(extension.whole, n_old)
    arrays = _segment(extension.X, extension.texts, n_old)
    _save(files, path, extension.whole, arrays, dict.fromkeys(shared, old_path), n_old + 1)


def save_relabelled(files: Files, path: str, old_path: str, parsed: Parsed) -> None:
    """Write rows with other labels into the new folder ``path``, which shares texts or numbers with the old folder."""
    n_segments = files.manifest(old_path).get("segments", 1)
    _save(files, path, parsed, {}, dict.fromkeys(_shared(parsed, n_segments), old_path), n_segments)


def _shared(rows: Parsed, n_segments: int) -> list[str]:
    kinds: tuple[str, ...] = () if rows.X is None else ("data", "indices", "indptr")
    kinds += () if rows.texts is None else ("blob", "offsets")
    kinds += () if rows.texts is None or rows.texts.sizes is None else ("sizes",)
    return [_named(kind, number) for number in range(n_segments) for kind in kinds]


def _save(
    files: Files,
    path: str,
    parsed: Parsed,
    arrays: dict[str, NDArray[Any]],
    shared: Mapping[str, str],
    n_segments: int,
) -> None:
    arrays["y"] = parsed.y
    if parsed.split is not None:
        arrays["split"] = parsed.split
    if parsed.weights is not None:
        arrays["weights"] = parsed.weights
    if parsed.label_indptr is not None:
        arrays["label_indptr"] = parsed.label_indptr
    if parsed.origins is not None:
        arrays["origins"] = parsed.origins
    if parsed.ids is not None:
        arrays |= {"ids_blob": parsed.ids.blob, "ids_offsets": parsed.ids.offsets}
    many = len(parsed.labels) > MOST_LISTED
    if many:  # mapped, not read: a manifest that held them would be read by everyone who looks at one row
        packed = pack_names(parsed.labels)
        arrays |= {"labels_blob": packed["names_blob"], "labels_offsets": packed["names_offsets"]}
    files.save_arrays(
        path,
        arrays,
        {
            "format": 1,
            "kind": parsed.kind,
            "segments": n_segments,
            "labels": None if many else list(parsed.labels),
            "n_features": None if parsed.X is None else int(parsed.X.shape[1]),
            "feature_names": None if parsed.feature_names is None else list(parsed.feature_names),
            "label_type": parsed.label_type,
            "columns": None if parsed.columns is None else parsed.columns.model_dump(mode="json"),
        },
        shared,
    )


def _segment(X: csr_matrix | None, texts: Texts | None, number: int) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    if texts is not None:
        arrays |= {"blob": texts.blob, "offsets": texts.offsets}
        arrays |= {} if texts.sizes is None else {"sizes": texts.sizes}
    if X is not None:
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {_named(kind, number): array for kind, array in arrays.items()}


def _named(kind: str, number: int) -> str:
    return kind if number == 0 else f"{kind}-{number}"


def open_corpus(files: Files, path: str) -> Corpus:
    """The rows in the folder ``path``, memory-mapped."""
    arrays, manifest = files.load_arrays(path)
    numbers = range(manifest.get("segments", 1))
    matrices: tuple[csr_matrix, ...] = ()
    texts: Texts | SegmentedTexts | None = None
    if "data" in arrays:
        matrices = tuple(_matrix(arrays, number, manifest["n_features"]) for number in numbers)
    if "blob" in arrays:
        pieces = [
            Texts(
                arrays[_named("blob", number)], arrays[_named("offsets", number)], arrays.get(_named("sizes", number))
            )
            for number in numbers
        ]
        texts = pieces[0] if len(pieces) == 1 else SegmentedTexts(pieces)
    named, columns = manifest["labels"], manifest.get("columns")
    return Corpus(
        manifest["kind"],
        cast("Sequence[str]", Texts(arrays["labels_blob"], arrays["labels_offsets"])) if named is None else named,
        arrays["y"],
        arrays.get("split"),
        matrices,
        texts,
        manifest["feature_names"],
        arrays.get("weights"),
        arrays.get("label_indptr"),
        None if columns is None else TableColumns.model_validate(columns),
        Texts(arrays["ids_blob"], arrays["ids_offsets"]) if "ids_blob" in arrays else None,
        manifest.get("label_type"),
        arrays.get("origins"),
    )


def _origins(corpus: Corpus) -> NDArray[np.int64]:
    return np.arange(corpus.n_rows) if corpus.origins is None else np.asarray(corpus.origins[:-1])


def _matrix(arrays: Mapping[str, NDArray[Any]], number: int, n_features: int) -> csr_matrix:
    data, indices, indptr = (arrays[_named(kind, number)] for kind in ("data", "indices", "indptr"))
    X = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_features), copy=False)
    # Parsers write canonical matrices only; the check would read the whole file.
    X.has_canonical_format = True
    return X


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """How many rows carry each label.

    Attributes
    ----------
    train, test, validation : int64 arrays, shape (n_classes,)
    order : int64 array, shape (n_classes,)
        The labels' indices, by falling number of rows.
    """

    labels: Sequence[str]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    validation: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Parsed | Corpus) -> "ClassCounts":
        """Counted over rows; without a split every row counts as a training row."""
        n_classes, y = len(rows.labels), np.asarray(rows.y)
        part = np.zeros(rows.n_rows, np.int8) if rows.split is None else np.asarray(rows.split)
        of_label = part if rows.label_indptr is None else np.repeat(part, np.diff(rows.label_indptr))
        train, test, validation = (np.bincount(y[of_label == one], minlength=n_classes) for one in range(3))
        return cls(rows.labels, train, test, validation, _falling(train + test + validation))

    @classmethod
    def of_listed(cls, classes: Sequence[ClassCount]) -> "ClassCounts":
        """Those of a complete list."""
        ascending = sorted(classes, key=lambda count: count.label)
        train, test, validation = (np.array([getattr(count, part) for count in ascending], np.int64) for part in PARTS)
        labels = [count.label for count in ascending]
        return cls(labels, train, test, validation, _falling(train + test + validation))

    def named(self, chosen: NDArray[np.bool_]) -> list[str]:
        """The labels where ``chosen``, shape (n_classes,), is True."""
        return [self.labels[label] for label in np.flatnonzero(chosen).tolist()]

    def listed(self, begin: int = 0, end: int | None = None) -> list[ClassCount]:
        """Those from ``begin`` to ``end``, by falling number of rows."""
        chosen = self.order[begin:end]
        counts = (self.train[chosen], self.test[chosen], self.validation[chosen])
        return [
            ClassCount(label=self.labels[label], train=train, test=test, validation=validation)
            for label, train, test, validation in zip(chosen.tolist(), *(part.tolist() for part in counts), strict=True)
        ]

    @property
    def test_only(self) -> NDArray[np.bool_]:
        """Which labels test rows carry and no training row."""
        return np.asarray((self.train == 0) & (self.test > 0))


def _falling(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.argsort(-counts, kind="stable")
