"""A parsed file: labels with a sparse matrix or texts, and the errors of faulty files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TableColumns
from app.datasets.statistics_schemas import LabelType
from app.plurals import counted

Kind = Literal["text", "sparse", "table"]
# faults that an option of the import keeps away: in a column of numbers a text, a number with a comma, an empty cell;
# a key of JSON that nothing was said of; a row without a label
Cause = Literal["text", "decimal_comma", "empty", "unknown_key", "no_label"]

MAX_REPORTED = 20
MAX_LISTED = 100_000
MAX_SHOWN = 40


@dataclass(frozen=True)
class RowError:
    """One thing wrong with a file: `row` is a 1-based line number, `column` a column's name or None.

    `cause` is there where an option of the import keeps such faults away.
    """

    row: int
    column: str | None
    detail: str
    cause: Cause | None = None


class FormatError(Exception):
    """A file does not conform to its format.

    Attributes
    ----------
    errors : list of RowError
        The first 20, by line.
    report : list of RowError
        The first 100,000.
    n_errors : int
        How many there are in all.
    """

    def __init__(self, errors: Iterable[RowError], n_errors: int | None = None) -> None:
        self.report = list(errors)[:MAX_LISTED]
        self.errors = self.report[:MAX_REPORTED]
        self.n_errors = len(self.report) if n_errors is None else n_errors
        first = self.errors[0]
        super().__init__(f"{counted(self.n_errors, 'error')}; line {first.row}: {first.detail}")


class Problems:
    """Collects row errors of a whole file and keeps the first 100,000 by line."""

    def __init__(self) -> None:
        self._errors: list[RowError] = []
        self._n_errors = 0

    def add(self, row: int, detail: str, column: str | None = None, cause: Cause | None = None) -> None:
        """Note one error."""
        self._n_errors += 1
        self._errors.append(RowError(row, None if column is None else shorten(column), detail, cause))
        if len(self._errors) > 2 * MAX_LISTED:
            self._keep_first()

    def uncounted(self, n_errors: int) -> None:
        """Count errors that were seen and are not listed."""
        self._n_errors += n_errors

    def __bool__(self) -> bool:
        return self._n_errors > 0

    def raise_if_any(self) -> None:
        """Raise FormatError if anything was noted."""
        if self._n_errors:
            self._keep_first()
            raise FormatError(self._errors, self._n_errors)

    def _keep_first(self) -> None:
        self._errors = sorted(self._errors, key=lambda error: error.row)[:MAX_LISTED]


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts in two arrays: UTF-8 bytes `blob` (uint8) and `offsets` (int64, n + 1), decoded one at a time.

    Texts that were joined from several columns have `sizes` (int64, shape (n, n_columns)): the bytes of each column's
    text, 0 where it is empty. A line break follows each text that is not empty, but the last.
    """

    blob: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        if not -len(self) <= i < len(self):
            raise IndexError(f"text {i} of {len(self)}")
        i %= len(self)
        return self.blob[self.offsets[i] : self.offsets[i + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for i in range(len(self)):
            yield self[i]

    @property
    def has_fields(self) -> bool:
        """Whether each text has its columns' texts apart."""
        return self.sizes is not None

    def fields(self, i: int) -> tuple[str, ...]:
        """The texts of each column that text i was joined from."""
        assert self.sizes is not None
        text, at, found = self.blob[self.offsets[i] : self.offsets[i + 1]].tobytes(), 0, []
        for size in self.sizes[i].tolist():
            found.append(text[at : at + size].decode())
            at += size + 1 if size else 0
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Parsed:
    """A file's rows as arrays.

    Attributes
    ----------
    kind : "text", "sparse" or "table"
        Which of `texts` and `X` is there; a table has `X` and, if it has columns of texts, `texts`.
    labels : list of str
        Distinct label names, sorted.
    y : int32 array, shape (n,) or (n_labels,)
        Index into `labels` of each row or, where rows have sets, of all their labels, row after row.
    split : int8 array, shape (n,), or None
        0 train, 1 test, 2 validation; None where the file has no split.
    X : csr_matrix, shape (n, n_features), float64, or None
        Sorted indices, no duplicates, no stored zeros. Of a table first its numbers, NaN where one is missing, and then
        a 1 for the level of each category.
    texts : Texts or None
        n texts.
    feature_names : list of str or None
        Names of X's columns where the file names them.
    weights : float64 array, shape (n,), or None
        Weights of the rows, positive and finite; None where the file has none.
    label_indptr : int64 array, shape (n + 1,), or None
        Where the labels of each row begin in `y`; None where each row has one.
    columns : TableColumns or None
        Columns of a table, and which of them were inferred from their values.
    ids : Texts or None
        What the file calls its rows; None where it does not.
    n_left_out: int
        Rows of the file that are not here: they have no label, or with `without_label=only` have one.
    n_other_languages: int
        Rows of the file that are not here: their texts are in other languages than those asked for.
    label_type: str or None
        How its labels are read, as text, boolean, number or integer; None where nobody knows.
    origins: int64 array, shape (n + 1,), or None
        The place of each row among all rows that the dataset ever had, and last the number of these; None where no row
        was deleted.
    """

    kind: Kind
    labels: list[str]
    y: npt.NDArray[np.int32]
    split: npt.NDArray[np.int8] | None = None
    X: csr_matrix[np.float64] | None = None
    texts: Texts | None = None
    feature_names: list[str] | None = None
    weights: npt.NDArray[np.float64] | None = None
    label_indptr: npt.NDArray[np.int64] | None = None
    columns: TableColumns | None = None
    ids: Texts | None = None
    n_left_out: int = 0
    n_other_languages: int = 0
    label_type: LabelType | None = None
    origins: npt.NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y) if self.label_indptr is None else len(self.label_indptr) - 1


def shorten(value: str | bytes) -> str:
    """At most 40 printable characters of what a file holds, for use in a message."""
    text = value[: 4 * MAX_SHOWN + 4].decode("utf-8", "replace") if isinstance(value, bytes) else value
    text = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def row_error(row: int, detail: str, column: str | None = None) -> FormatError:
    """A FormatError of one row."""
    return FormatError([RowError(row, None if column is None else shorten(column), detail)])
