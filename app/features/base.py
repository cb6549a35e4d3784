"""Features: how an instance of a request, or the rows of a dataset, become the sparse rows that a model reads.

InstanceError (ValueError)   an instance does not fit the model's features
FitError (ValueError)        features cannot be learnt from these texts
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TableColumns

Instance = Mapping[str, Any] | Sequence[float]
# kinds of features whose instances are texts
OF_TEXTS = ("text", "named_text")
Row = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]


class InstanceError(ValueError):
    """An instance or a dataset does not fit the features that a model was trained on."""


class FitError(ValueError):
    """Features cannot be fitted on the given rows."""


class Features(Protocol):
    """Fitted features as plain arrays.

    An instance is `{"text": ...}`, `{"features": {name: value}}`, `{"indices": [...], "values": [...]}` (0-based), a
    list of `n_given` numbers, or of tables `{"record": {column: value}}`.
    """

    @property
    def kind(self) -> str:
        """ "text", "named_text", "sparse", "scaled", "table" or "named_table", as load_features knows it."""

    @property
    def n_features(self) -> int:
        """Length of a row."""

    @property
    def n_given(self) -> int:
        """How many features an instance may have; those that no training row has may be left out of rows."""

    @property
    def columns(self) -> TableColumns | None:
        """What a record has, where instances are records."""

    def names(self) -> list[str] | None:
        """Name of each feature, where they have names."""

    def named(self, index: int) -> str | int:
        """What a feature of a row is called: its name, or where features have none the index that instances have."""

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Where features of a row occur in an instance that is a text: start and end, in characters."""

    def known_terms(self, indices: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        """Which features of a row are terms that texts of the training rows have; None where rows have no text."""

    def text_language(self, instance: Instance) -> str | None:
        """The language in which most of an instance's text is read, where languages have terms of their own."""

    def params_json(self) -> dict[str, Any]:
        """What load_features needs beside the arrays, as JSON values."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The fitted state."""

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """An instance that :meth:`row` takes, as a row of JSON lines has it: named where the features have names."""

    def row(self, instance: Instance) -> Row:
        """Indices (k,), increasing, and values (k,) of one instance.

        Raises
        ------
        InstanceError
            If the instance is of another kind, has unknown or repeated features, or a wrong number of them.
        """


def stack(rows: Sequence[Row], n_features: int) -> csr_matrix[np.float64]:
    """Rows as a matrix, shape (len(rows), n_features)."""
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(indices) for indices, _ in rows], out=indptr[1:])
    indices = np.concatenate([indices for indices, _ in rows]) if rows else np.empty(0, dtype=np.int32)
    values = np.concatenate([values for _, values in rows]) if rows else np.empty(0)
    return csr_matrix((values, indices, indptr), shape=(len(rows), n_features))
