"""Features that come as numbers: by index, by name, or as a dense list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.features.base import Instance, InstanceError, Row
from app.features.names import found_as, list_widths, pack_names, shorten, unpack_names, unrolled
from app.features.row_loops import flaws
from app.plurals import counted

_MAX_NAMED = 3
_MAX_KNOWN = 10
_TOO_LARGE = "a value is too large for a 64-bit number"


class SparseFeatures:
    """A fixed number of features, with names or without; nothing is fitted.

    Parameters
    ----------
    n_features : int
        How many an instance may have.
    names : sequence of str, optional
        Of all of them.
    used : int array, shape (n_used,), optional
        Those that rows have, ascending: a row's feature k is the instance's ``used[k]``, and the others are left out.
        By default all.
    """

    kind: ClassVar[str] = "sparse"

    def __init__(
        self, n_features: int, names: Sequence[str] | None = None, used: npt.NDArray[np.int32] | None = None
    ) -> None:
        if names is not None and len(names) != n_features:
            raise ValueError(f"{len(names)} names for {n_features} features")
        self._n_given = n_features
        self._used = used
        self._names = None if names is None else list(names)
        self._ids = {} if names is None else {name: index for index, name in enumerate(names)}

    @cached_property
    def _list_widths(self) -> dict[str, int]:
        """How many elements each column of lists has."""
        return list_widths(self._names or ())

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> SparseFeatures:
        """The features whose `params_json` and `arrays` these are."""
        names = unpack_names(arrays) if "names_blob" in arrays else None
        return cls(int(params["n_features"]), names, arrays.get("used"))

    @property
    def columns(self) -> None:
        """None: an instance is no record."""

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return self._n_given if self._used is None else len(self._used)

    @property
    def n_given(self) -> int:
        """How many features an instance may have."""
        return self._n_given

    def names(self) -> list[str] | None:
        """Name of each feature of a row, or None."""
        if self._names is None or self._used is None:
            return self._names
        return [self._names[index] for index in self._used.tolist()]

    def named(self, index: int) -> str | int:
        """The name, or the index that instances have."""
        given = index if self._used is None else int(self._used[index])
        return given if self._names is None else self._names[given]

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Empty: numbers have no place in a text."""
        return {}

    def known_terms(self, indices: npt.NDArray[np.int32]) -> None:
        """None: rows have no text."""

    def text_language(self, instance: Instance) -> None:
        """None: an instance has no text."""

    def params_json(self) -> dict[str, Any]:
        """The number of features."""
        return {"n_features": self._n_given}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """`names_blob` (uint8) and `names_offsets` (int64, n_given + 1) of names; `used` (int32) where not all are."""
        arrays = {} if self._names is None else pack_names(self._names)
        return arrays if self._used is None else arrays | {"used": self._used}

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """``features`` where they have names, else ``indices`` and ``values``; zeros are left out."""
        indices, values = self._given_row(instance)
        if self._names is None:
            return {"indices": indices.tolist(), "values": values.tolist()}
        names = [self._names[index] for index in indices.tolist()]
        return {"features": dict(zip(names, values.tolist(), strict=True))}

    def row(self, instance: Instance) -> Row:
        """Indices (k,), increasing, and values (k,) of one instance; zeros are left out.

        Raises
        ------
        InstanceError
            If the instance is a text, names unknown features, has an index twice or out of range, or a wrong number of
            values, or a value that is not finite.
        """
        indices, values = self._given_row(instance)
        if self._used is None:
            return indices, values
        places, known = self._places(indices)
        return places[known], values[known]

    def _given_row(self, instance: Instance) -> Row:
        if not isinstance(instance, Mapping):
            return self._dense_row(instance)
        if "features" in instance:
            return self._named_row(instance["features"])
        if "indices" in instance and "values" in instance:
            return self._indexed_row(instance["indices"], instance["values"])
        if "record" in instance and self._names is not None:
            return self._record_row(instance["record"])
        named = "" if self._names is None else "a record, "
        raise InstanceError(
            f"this model takes numbers: an instance needs {named}features, or indices with values, or a list of "
            f"{self._n_given} numbers"
        )

    def transform(self, X: csr_matrix[np.float64], names: Sequence[str] | None = None) -> csr_matrix[np.float64]:
        """The columns of a dataset put where these features have them, shape (n, n_features).

        Parameters
        ----------
        X : csr_matrix, shape (n, any), float64
            Without stored zeros.
        names : sequence of str, optional
            Names of X's columns. If both sides have names, columns go by name, and features that X lacks are zero;
            else columns go by index.

        Raises
        ------
        InstanceError
            If X has columns that these features do not have.
        """
        if names is not None and self._names is not None and list(names) != self._names:
            own = found_as(names, self._ids)
            names = [own[name] for name in names]
            self._check_names(names)
            place = np.array([self._ids[name] for name in names], dtype=np.int32)
            moved = csr_matrix((X.data, place[X.indices], X.indptr), shape=(X.shape[0], self._n_given))
            moved.sort_indices()
            return self._chosen(moved)
        if len(X.indices) and int(X.indices.max()) >= self._n_given:
            raise InstanceError(f"the data has {X.shape[1]} features, but the model has {self._n_given}")
        return self._chosen(csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], self._n_given)))

    def _chosen(self, X: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
        if self._used is None:
            return X
        places, known = self._places(X.indices)
        indptr = np.concatenate([[0], np.cumsum(known)])[X.indptr]
        return csr_matrix((X.data[known], places[known], indptr), shape=(X.shape[0], len(self._used)))

    def _places(self, indices: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Positions of the given features in a row, and which of them it has."""
        assert self._used is not None
        places = np.searchsorted(self._used, indices).astype(np.int32)
        known = places < len(self._used)
        known[known] = self._used[places[known]] == indices[known]
        return places, known

    def _record_row(self, record: Mapping[str, Any]) -> Row:
        """As named features, none of which may be left out: a row of a table has all columns."""
        given = unrolled(self._in_own_form(record), self._list_widths, self._ids)
        unfit = next((name for name, value in given.items() if value is None or type(value) is str), None)
        if unfit is not None:
            raise InstanceError(f"column '{shorten(unfit)}': a number is required")
        row = self._named_row(given)
        if len(given) < self._n_given:
            lacking = next(name for name in self._ids if name not in given)
            raise InstanceError(f"column '{shorten(lacking)}': the number is missing")
        return row

    def _named_row(self, features: Mapping[str, Any]) -> Row:
        if self._names is None:
            raise InstanceError("this model's features have no names: pass indices and values")
        ids = self._ids
        if not features.keys() <= ids.keys():
            features = self._in_own_form(features)
            features = unrolled(features, self._list_widths, ids)
            self._check_names(features)
        if list in map(type, features.values()):
            listed = next(name for name, value in features.items() if isinstance(value, list))
            raise InstanceError(f"feature {shorten(listed)!r}: a number is required")
        return _sorted_row(np.array([ids[name] for name in features], np.int32), _finite(list(features.values())))

    def _in_own_form(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if all(name in self._ids or name in self._list_widths for name in given):
            return given
        own = found_as(given, {*self._ids, *self._list_widths})
        return {own[name]: value for name, value in given.items()}

    def _indexed_row(self, indices: Sequence[int], values: Sequence[float]) -> Row:
        if len(indices) != len(values):
            raise InstanceError(f"{len(indices)} indices and {len(values)} values")
        try:
            columns, numbers = np.array(indices, dtype=np.int32), np.array(values, dtype=np.float64)
        except OverflowError:
            self._check_indices(indices)
            raise InstanceError(_TOO_LARGE) from None
        flawed = flaws(columns, numbers, self._n_given)
        if flawed == 0:
            return columns, numbers
        self._check_indices(indices)
        return _sorted_row(columns, _finite(numbers))

    def _check_indices(self, indices: Sequence[int]) -> None:
        wrong = next((index for index in indices if not 0 <= index < self._n_given), None)
        if wrong is not None:
            raise InstanceError(f"index {shorten(str(wrong))} is not between 0 and {self._n_given - 1}")
        if len(set(indices)) != len(indices):
            raise InstanceError("an index is given twice")

    def _dense_row(self, numbers: Sequence[float]) -> Row:
        if len(numbers) != self._n_given:
            raise InstanceError(f"{len(numbers)} numbers, expected {self._n_given}")
        dense = _finite(numbers)
        indices = np.flatnonzero(dense).astype(np.int32)
        return indices, dense[indices]

    def _check_names(self, names: Sequence[str] | Mapping[str, float]) -> None:
        unknown = [name for name in names if name not in self._ids]
        if unknown:
            named = ", ".join(repr(shorten(name)) for name in unknown[:_MAX_NAMED])
            known = ", ".join(repr(shorten(name)) for name in list(self._ids)[:_MAX_KNOWN])
            more = ", ..." if len(self._ids) > _MAX_KNOWN else ""
            raise InstanceError(f"{counted(len(unknown), 'unknown feature')}: {named}; the model takes {known}{more}")


def _sorted_row(columns: npt.NDArray[np.int32], numbers: npt.NDArray[np.float64]) -> Row:
    if np.any(columns[1:] < columns[:-1]):
        order = np.argsort(columns)
        columns, numbers = columns[order], numbers[order]
    kept = numbers != 0.0
    return (columns, numbers) if kept.all() else (columns[kept], numbers[kept])


def _finite(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise InstanceError(_TOO_LARGE) from error
    if not np.isfinite(numbers).all():
        raise InstanceError("a value is not a finite number")
    return numbers
