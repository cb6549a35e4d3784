"""Levels of categories as features of their own: rare ones of a category are one together, and so are new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.features.names import pack_names, unpack_names

_OTHERS = "(others)"


class CategoryLevels:
    """Which feature stands for a level.

    Parameters
    ----------
    columns : sequence of str
    names : sequence of str
        Of the levels that have a feature of their own, ``column=level``.
    folded : bool array, shape (n_columns,)
        Whether a column has a feature for all other levels.
    """

    def __init__(self, columns: Sequence[str], names: Sequence[str], folded: npt.NDArray[np.bool_]) -> None:
        self._columns, self._names, self._folded = list(columns), list(names), folded
        self._places = {name: place for place, name in enumerate(names)}
        others = np.cumsum(folded) - 1 + len(names)
        self._others = {name: int(at) for name, at, has in zip(columns, others, folded, strict=True) if has}

    @classmethod
    def fit(
        cls, columns: Sequence[str], names: Sequence[str], X: csr_matrix[np.float64], min_rows: int
    ) -> CategoryLevels:
        """Learn from rows X, shape (n, n_levels), with a 1 for each level; `names` are those of its columns."""
        counts = np.bincount(X.indices, minlength=X.shape[1])
        rare = {name.partition("=")[0] for name, n in zip(names, counts.tolist(), strict=True) if 0 < n < min_rows}
        kept = [name for name, n in zip(names, counts.tolist(), strict=True) if n >= min_rows]
        return cls(columns, kept, np.array([column in rare for column in columns], dtype=bool))

    @classmethod
    def from_arrays(cls, columns: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> CategoryLevels:
        """The levels whose `arrays` these are."""
        packed = {"names_blob": arrays["levels_blob"], "names_offsets": arrays["levels_offsets"]}
        return cls(columns, unpack_names(packed), np.asarray(arrays["folded"]))

    @property
    def n_features(self) -> int:
        """Levels with a feature of their own, and one for the others of each column that has some."""
        return len(self._names) + len(self._others)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`levels_blob` (uint8) and `levels_offsets` (int64) of names; `folded` (bool, n_columns)."""
        packed = pack_names(self._names)
        return {
            "levels_blob": packed["names_blob"],
            "levels_offsets": packed["names_offsets"],
            "folded": self._folded,
        }

    def names(self) -> list[str]:
        """Name of each feature."""
        return [*self._names, *(f"{column}={_OTHERS}" for column in self._others)]

    def places(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The feature of each level `column=level`; -1 of one that brings nothing."""
        found = (self._places.get(name, self._others.get(name.partition("=")[0], -1)) for name in names)
        return np.fromiter(found, np.int64, len(names))
