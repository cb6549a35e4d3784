"""Columns of categories, gathered while a file is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from app.formats.growing import Growing
from app.formats.labels import MAX_LABEL
from app.formats.row_groups import RowGroups
from app.formats.table import Problems, shorten


class Categories:
    """Rows' levels in each of some columns; a missing one is the level with an empty name.

    Parameters
    ----------
    columns : sequence of str
    keep_missing : bool
        Whether a level may be missing.
    missing : sequence of str
        What also says that it is.
    """

    def __init__(self, columns: Sequence[str], keep_missing: bool, missing: Sequence[str] = ()) -> None:
        self._columns = list(columns)
        self._keep_missing, self._missing = keep_missing, frozenset(missing)
        self._ids: list[dict[str, int]] = [{} for _ in columns]
        self._codes = [Growing(np.int32) for _ in columns]

    def add(
        self,
        column: int,
        codes: npt.NDArray[np.int64],
        names: Sequence[str | bytes],
        rows: npt.NDArray[np.int64],
        problems: Problems,
    ) -> None:
        """Append to a column rows of which row k has the level `names[codes[k]]` and stands on line `rows[k]`."""
        ids, groups = np.empty(len(names), dtype=np.int32), RowGroups(codes, rows)
        for k, name in enumerate(names):
            level = (name.decode("utf-8", "replace") if isinstance(name, bytes) else name).strip()
            level = "" if level in self._missing else level
            detail = None
            if not level and not self._keep_missing:
                detail = "the value is missing (missing=keep lets values be missing)"
            elif len(level) > MAX_LABEL:
                detail = f"'{shorten(level)}' has {len(level)} characters; a category has at most {MAX_LABEL}"
            if detail is not None:
                for row in groups.of(k):
                    problems.add(row, detail, self._columns[column])
            ids[k] = self._ids[column].setdefault(level, len(self._ids[column]))
        self._codes[column].extend(ids[codes])

    def beside(self, X: csr_matrix[np.float64], names: Sequence[str]) -> tuple[csr_matrix[np.float64], list[str]]:
        """The matrix of numbers with a column for each level on its right, and the names of all columns."""
        parts, all_names = [X], list(names)
        for column, ids, codes in zip(self._columns, self._ids, self._codes, strict=True):
            levels = sorted(ids)
            place = np.empty(len(levels), dtype=np.int32)
            place[[ids[level] for level in levels]] = np.arange(len(levels), dtype=np.int32)
            indices = place[codes.take()]
            shape = (len(indices), len(levels))
            indptr = np.arange(len(indices) + 1, dtype=np.int64)
            parts.append(csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape))
            all_names += [f"{column}={level}" for level in levels]
        wide = csr_matrix(hstack(parts, format="csr")) if len(parts) > 1 else X
        wide.has_canonical_format = True
        return wide, all_names
