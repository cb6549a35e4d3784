"""Columns of categories, gathered while a file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from app.datasets.schemas import ImportOptions
from app.formats.growing import Growing
from app.formats.label_names import MAX_LABEL
from app.formats.row_groups import RowGroups
from app.formats.table import Problems, shorten
from app.values import ColumnType, canonical, column_type, normalized


class Categories:
    """Rows' levels in each of some columns; a missing one is the level with an empty name.

    Parameters
    ----------
    options : ImportOptions
        Whether a level may be missing, what also says that it is, and the types of columns that are known.
    """

    def __init__(self, columns: Sequence[str], options: ImportOptions) -> None:
        self._columns = list(columns)
        self._keep_missing, self._missing = options.missing == "keep", frozenset(options.missing_values)
        self._given = options.types
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
        """Append to a column rows of which row k has the level `names[codes[k]]` and is on line `rows[k]`."""
        ids, groups = np.empty(len(names), dtype=np.int32), RowGroups(codes, rows)
        for k, name in enumerate(names):
            level = normalized(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)
            level = "" if level in self._missing else level
            detail = None
            if not level and not self._keep_missing:
                detail = "the value is missing (pass missing=keep to allow missing values)"
            elif len(level) > MAX_LABEL:
                detail = f"'{shorten(level)}' has {len(level)} characters; a category has at most {MAX_LABEL}"
            if detail is not None:
                for row in groups.rows_with(k):
                    problems.add(row, detail, self._columns[column])
            ids[k] = self._ids[column].setdefault(level, len(self._ids[column]))
        self._codes[column].extend(ids[codes])

    def types(self) -> Mapping[str, ColumnType]:
        """The type of each column: the one given, or that of all its values."""
        found = {}
        for column, ids in zip(self._columns, self._ids, strict=True):
            found[column] = self._given.get(column) or column_type(ids)
        return found

    def beside(self, X: csr_matrix[np.float64], names: Sequence[str]) -> tuple[csr_matrix[np.float64], list[str]]:
        """The matrix of numbers with a column for each level on its right, and the names of all columns."""
        parts, all_names, types = [X], list(names), self.types()
        for column, ids, codes in zip(self._columns, self._ids, self._codes, strict=True):
            forms = [canonical(level, types[column]) for level in ids]
            levels = sorted(set(forms))
            at = {level: index for index, level in enumerate(levels)}
            place = np.array([at[form] for form in forms], dtype=np.int32)
            indices = place[codes.build()]
            shape = (len(indices), len(levels))
            indptr = np.arange(len(indices) + 1, dtype=np.int64)
            parts.append(csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape))
            all_names += [f"{column}={level}" for level in levels]
        wide = csr_matrix(hstack(parts, format="csr")) if len(parts) > 1 else X
        wide.has_canonical_format = True
        return wide, all_names
