"""Features that come as numbers and are scaled before a model reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import ColumnRecipe
from app.features.base import Instance, Row, stack
from app.features.columns import SparseFeatures
from app.features.scaling import NumberScaling


class ScaledFeatures:
    """Sparse features, and what scales them."""

    kind: ClassVar[str] = "scaled"

    def __init__(self, given: SparseFeatures, recipe: ColumnRecipe, scaling: NumberScaling) -> None:
        self._given, self._recipe, self._scaling = given, recipe, scaling

    @classmethod
    def fit(
        cls, given: SparseFeatures, X: csr_matrix[np.float64], recipe: ColumnRecipe
    ) -> tuple[ScaledFeatures, csr_matrix[np.float64]]:
        """Learn the scale of rows X, shape (n, given.n_features), and scale them."""
        scaling = NumberScaling.fit(X, recipe)
        return cls(given, recipe, scaling), scaling.transform(X)

    @classmethod
    def from_arrays(cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> ScaledFeatures:
        """The features whose `params_json` and `arrays` these are."""
        recipe = ColumnRecipe.model_validate(params["recipe"])
        given = SparseFeatures.from_arrays(params, arrays)
        return cls(given, recipe, NumberScaling.from_arrays(recipe, arrays))

    @property
    def columns(self) -> None:
        """None: an instance is no record."""

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return self._scaling.n_features

    @property
    def n_given(self) -> int:
        """How many features an instance may have."""
        return self._given.n_given

    def names(self) -> list[str] | None:
        """Name of each feature of a row, or None."""
        return self._given.names()

    def named(self, index: int) -> str | int:
        """The name, or the index that instances have."""
        return self._given.named(index)

    def spans(self, instance: Instance, indices: Collection[int]) -> dict[int, list[tuple[int, int]]]:
        """Empty: numbers have no place in a text."""
        return {}

    def known_terms(self, indices: npt.NDArray[np.int32]) -> None:
        """None: rows have no text."""

    def text_language(self, instance: Instance) -> None:
        """None: an instance has no text."""

    def params_json(self) -> dict[str, Any]:
        """The number of features, and the recipe."""
        return self._given.params_json() | {"recipe": self._recipe.model_dump(mode="json")}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of the sparse features, and of what scales them."""
        return self._given.arrays() | self._scaling.arrays()

    def as_given(self, instance: Instance) -> dict[str, Any]:
        """As the sparse features have it, not scaled."""
        return self._given.as_given(instance)

    def row(self, instance: Instance) -> Row:
        """Indices (k,), increasing, and values (k,) of one instance, scaled; raises InstanceError."""
        X = self._scaling.transform(stack([self._given.row(instance)], self._given.n_features))
        return X.indices, X.data

    def scaled(self, X: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
        """Rows that have the sparse features already, scaled."""
        return self._scaling.transform(X)

    def transform(self, X: csr_matrix[np.float64], names: Sequence[str] | None = None) -> csr_matrix[np.float64]:
        """Rows of a dataset, scaled; raises InstanceError where X has columns that these features do not have."""
        return self._scaling.transform(self._given.transform(X, names))
