"""Levels of categories as features of their own: rare ones of a category are one together, and so are new ones.

A level is found by the canonical form of its value, by the type of its column; models that an earlier version of these
rules has trained find it as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.features.names import pack_names, unpack_names

_OTHERS = "(others)"


class CategoryLevels:
    """Which feature encodes a level.

    Parameters
    ----------
    names : sequence of str
        Of the levels that have a feature of their own, ``column=level``.
    folded : bool array, shape (n_columns,)
        Whether a column has a feature for all other levels.
    rare : sequence of str, optional
        Names of the levels that training rows have and that are no feature of their own; None where nobody kept them.
    """

    def __init__(
        self,
        columns: Sequence[str],
        names: Sequence[str],
        folded: npt.NDArray[np.bool_],
        rare: Sequence[str] | None = None,
    ) -> None:
        self._columns, self._names, self._folded = list(columns), list(names), folded
        self._rare = None if rare is None else frozenset(rare)
        self._places = {name: place for place, name in enumerate(names)}
        others = np.cumsum(folded) - 1 + len(names)
        self._others = {name: int(at) for name, at, has in zip(columns, others, folded, strict=True) if has}

    @classmethod
    def fit(
        cls, columns: Sequence[str], names: Sequence[str], X: csr_matrix[np.float64], min_rows: int
    ) -> CategoryLevels:
        """Learn from rows X, shape (n, n_levels), with a 1 for each level; `names` are those of its columns."""
        counts: Counter[str] = Counter()
        for name, n in zip(names, np.bincount(X.indices, minlength=X.shape[1]).tolist(), strict=True):
            counts[name] += n  # two names may have one canonical form
        rare = [name for name, n in counts.items() if 0 < n < min_rows]
        folded = {name.partition("=")[0] for name in rare}
        kept = [name for name, n in counts.items() if n >= min_rows]
        return cls(columns, kept, np.array([column in folded for column in columns], dtype=bool), rare)

    @classmethod
    def from_arrays(cls, columns: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> CategoryLevels:
        """The levels whose `arrays` these are."""
        packed = {"names_blob": arrays["levels_blob"], "names_offsets": arrays["levels_offsets"]}
        rare = None
        if "rare_blob" in arrays:
            rare = unpack_names({"names_blob": arrays["rare_blob"], "names_offsets": arrays["rare_offsets"]})
        return cls(columns, unpack_names(packed), np.asarray(arrays["folded"]), rare)

    @property
    def n_features(self) -> int:
        """Levels with a feature of their own, and one for the others of each column that has some."""
        return len(self._names) + len(self._others)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`levels_blob` (uint8) and `levels_offsets` (int64) of names, `rare_*` too; `folded` (bool, n_columns)."""
        packed = pack_names(self._names)
        arrays = {
            "levels_blob": packed["names_blob"],
            "levels_offsets": packed["names_offsets"],
            "folded": self._folded,
        }
        if self._rare is not None:
            packed = pack_names(sorted(self._rare))
            arrays |= {"rare_blob": packed["names_blob"], "rare_offsets": packed["names_offsets"]}
        return arrays

    def names(self) -> list[str]:
        """Name of each feature."""
        return [*self._names, *(f"{column}={_OTHERS}" for column in self._others)]

    def places(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The feature of each level `column=level`; -1 of one that brings nothing."""
        found = (self._places.get(name, self._others.get(name.partition("=")[0], -1)) for name in names)
        return np.fromiter(found, np.int64, len(names))

    def unknown(self, names: Sequence[str]) -> list[str]:
        """Which levels `column=level` no training row has; missing values are none."""
        return [name for name in names if not name.endswith("=") and self._is_unknown(name)]

    def _is_unknown(self, name: str) -> bool:
        if name in self._places:
            return False
        if self._rare is None:  # nobody knows what the others are
            return name.partition("=")[0] not in self._others
        return name not in self._rare
