"""Rows that were appended to a dataset: the version before, and a segment of new rows after it."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from app.datasets.recipe_schemas import TableColumns
from app.formats.labels import PARTS, TRAIN
from app.formats.table import Parsed, Texts, shorten
from app.formats.text_rows import reordered
from app.plurals import counted


class DoesNotFitError(ValueError):
    """The new rows are of another kind than the dataset's rows."""


class SegmentedTexts(Sequence[str]):
    """The texts of all segments, one after another; nothing is copied."""

    def __init__(self, segments: Sequence[Texts]) -> None:
        self.segments = segments
        self._ends = list(accumulate(len(segment) for segment in segments))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        if not -len(self) <= row < len(self):
            raise IndexError(f"text {row} of {len(self)}")
        row %= len(self)
        at = bisect_right(self._ends, row)
        return self.segments[at][row - (self._ends[at - 1] if at else 0)]

    def __iter__(self) -> Iterator[str]:
        for segment in self.segments:
            yield from segment

    @property
    def has_fields(self) -> bool:
        """Whether all segments have their columns' texts apart."""
        return all(segment.has_fields for segment in self.segments)

    def fields(self, row: int) -> tuple[str, ...]:
        """The texts of each column that a text was joined from."""
        at = bisect_right(self._ends, row)
        return self.segments[at].fields(row - (self._ends[at - 1] if at else 0))


def joined_texts(segments: Sequence[Texts]) -> Texts:
    """The same texts in one pair of arrays."""
    starts = np.cumsum([0, *(len(segment.blob) for segment in segments)])
    offsets = [segment.offsets[1:] + start for segment, start in zip(segments, starts, strict=False)]
    sizes = [segment.sizes for segment in segments if segment.sizes is not None]
    return Texts(
        np.concatenate([segment.blob for segment in segments]),
        np.concatenate([[0], *offsets]),
        np.concatenate(sizes) if len(sizes) == len(segments) else None,
    )


def stacked(segments: Sequence[csr_matrix]) -> csr_matrix:
    """The matrices, all of one width, one below the other."""
    if len(segments) == 1:
        return segments[0]
    X = vstack(segments, format="csr")
    X.has_canonical_format = True
    return csr_matrix(X)


@dataclass(frozen=True, eq=False)
class Extended:
    """All rows of a version, and the new ones among them.

    Attributes
    ----------
    X, texts : csr_matrix or Texts
        Of the new rows; columns are those of the whole.
    """

    whole: Parsed
    X: csr_matrix | None
    texts: Texts | None


def extended(
    old: Parsed, old_segments: Sequence[csr_matrix | Texts], new: Parsed, part: str | None, same_columns: bool
) -> Extended:
    """Put new rows below old ones.

    Parameters
    ----------
    old : Parsed
        Its rows, without X and texts.
    old_segments : sequence of csr_matrix or Texts
    part : str or None
        Where the new rows belong if they have no split of their own; None: the training part.
    same_columns : bool
        Whether the new rows must have the named features of the old, no more and no fewer.

    Raises
    ------
    DoesNotFitError
        One has texts and the other numbers, one labels and the other sets, one names of features and the other none; or
        both rows and request say to which part they belong.
    """
    _check_fit(old, new, part, same_columns)
    labels = sorted({*old.labels, *new.labels})
    place = {label: at for at, label in enumerate(labels)}
    y = np.concatenate([_moved(rows, place) for rows in (old, new)])
    indptr = None
    if old.label_indptr is not None and new.label_indptr is not None:
        indptr = np.concatenate([old.label_indptr, new.label_indptr[1:] + old.label_indptr[-1]]).astype(np.int64)
    weights = None
    if old.weights is not None or new.weights is not None:
        weights = np.concatenate([_weights(old), _weights(new)])
    split = _split(old, new, part)
    texts, all_rows, names, X = None, None, None, None
    if new.texts is not None:
        if new.texts.has_fields and old.columns is not None and new.columns is not None:
            order = [new.columns.texts.index(name) for name in old.columns.texts]
            new = replace(new, texts=reordered(new.texts, order)) if order != sorted(order) else new
        assert new.texts is not None
        texts = joined_texts([*(each for each in old_segments if isinstance(each, Texts)), new.texts])
    if new.X is not None:
        matrices = [each for each in old_segments if isinstance(each, csr_matrix)]
        names, X = _columns(old, new, matrices[0].shape[1])
        all_rows = stacked([*(_widened(matrix, X.shape[1]) for matrix in matrices), X])
    ids = None if old.ids is None and new.ids is None else joined_texts([_ids(old), _ids(new)])
    columns = _reported(old, new)
    whole = Parsed(
        old.kind, labels, y, split, all_rows, texts, names, weights, indptr, columns, ids, label_type=old.label_type,
        origins=_origins(old, new), n_left_out=new.n_left_out, n_other_languages=new.n_other_languages,
    )  # fmt: skip
    return Extended(whole, X, new.texts)


def _check_fit(old: Parsed, new: Parsed, part: str | None, same_columns: bool) -> None:
    if old.kind != new.kind:
        kinds = {"text": "texts", "sparse": "numbers", "table": "a table of several kinds of columns"}
        raise DoesNotFitError(f"the dataset has {kinds[old.kind]}, but the new rows have {kinds[new.kind]}")
    if (old.label_indptr is None) != (new.label_indptr is None):
        one, sets = "one label per row", "sets of labels"
        first, second = (one, sets) if old.label_indptr is None else (sets, one)
        raise DoesNotFitError(f"the dataset has {first}, but the new rows have {second}")
    if (old.feature_names is None) != (new.feature_names is None):
        detail = (
            "has feature names, but the new rows have none"
            if new.feature_names is None
            else "has no feature names, but the new rows have"
        )
        raise DoesNotFitError(f"the dataset {detail}")
    if part is not None and new.split is not None:
        raise DoesNotFitError(
            "the new rows have a split of their own, but the request also names a part: leave part out"
        )
    if old.columns is not None and new.columns is not None:
        for name in ("texts", "numbers", "categories"):
            before, after = set(getattr(old.columns, name)), set(getattr(new.columns, name))
            if before != after:
                raise DoesNotFitError(f"the {name} of the dataset differ from those of the new rows")
    elif same_columns and old.feature_names is not None and new.feature_names is not None:
        odd = sorted({*old.feature_names} ^ {*new.feature_names})
        if odd:
            whose = "the new rows lack" if odd[0] in old.feature_names else "the dataset lacks"
            raise DoesNotFitError(f"{counted(len(odd), 'column', 'is/are')} not in both; {whose} '{shorten(odd[0])}'")


def _moved(rows: Parsed, place: dict[str, int]) -> NDArray[np.int32]:
    return np.array([place[label] for label in rows.labels], np.int32)[np.asarray(rows.y)]


def _reported(old: Parsed, new: Parsed) -> TableColumns | None:
    """What is kept of the columns: a value may be missing where it might before."""
    if old.columns is None or new.columns is None:
        return old.columns
    left_out = new.columns.left_out | old.columns.left_out
    missing = old.columns.missing or new.columns.missing
    return old.columns.model_copy(update={"left_out": left_out, "missing": missing})


def _origins(old: Parsed, new: Parsed) -> NDArray[np.int64] | None:
    """New rows come after all that ever were, also after deleted ones."""
    if old.origins is None:
        return None
    return np.concatenate([old.origins[:-1], old.origins[-1] + np.arange(new.n_rows + 1)]).astype(np.int64)


def _ids(rows: Parsed) -> Texts:
    return Texts(np.empty(0, np.uint8), np.zeros(rows.n_rows + 1, np.int64)) if rows.ids is None else rows.ids


def _weights(rows: Parsed) -> NDArray[np.float64]:
    return np.ones(rows.n_rows) if rows.weights is None else np.asarray(rows.weights)


def _split(old: Parsed, new: Parsed, part: str | None) -> NDArray[np.int8] | None:
    if old.split is None and new.split is None and part in (None, "train"):
        return None
    before = np.full(old.n_rows, TRAIN, np.int8) if old.split is None else np.asarray(old.split)
    of_part = PARTS.index("train" if part is None else part)
    after = np.full(new.n_rows, of_part, np.int8) if new.split is None else new.split
    return np.concatenate([before, after])


def _columns(old: Parsed, new: Parsed, n_old: int) -> tuple[list[str] | None, csr_matrix]:
    """Names of all features, the old ones first, and the new rows' matrix with its columns moved there."""
    assert new.X is not None
    if old.feature_names is None or new.feature_names is None:
        return None, _widened(new.X, max(n_old, new.X.shape[1]))
    names = [*old.feature_names, *(name for name in new.feature_names if name not in set(old.feature_names))]
    place = {name: at for at, name in enumerate(names)}
    to = np.array([place[name] for name in new.feature_names], np.int32)
    X = csr_matrix((new.X.data, to[new.X.indices], new.X.indptr), shape=(new.X.shape[0], len(names)))
    X.sort_indices()
    X.has_canonical_format = True
    return names, X


def _widened(X: csr_matrix, width: int) -> csr_matrix:
    wide = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width), copy=False)
    wide.has_canonical_format = True
    return wide
