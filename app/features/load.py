"""Fitted features from what was saved of them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from app.features.base import Features
from app.features.columns import SparseFeatures
from app.features.named_text import NamedTableFeatures, NamedTextFeatures
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures

_Loader = Callable[[Mapping[str, Any], Mapping[str, npt.NDArray[Any]]], Features]

_LOADERS: dict[str, _Loader] = {
    SparseFeatures.kind: SparseFeatures.from_arrays,
    TextFeatures.kind: TextFeatures.from_arrays,
    NamedTextFeatures.kind: NamedTextFeatures.from_arrays,
    NamedTableFeatures.kind: NamedTableFeatures.from_arrays,
    ScaledFeatures.kind: ScaledFeatures.from_arrays,
    TableFeatures.kind: TableFeatures.from_arrays,
}


def load_features(kind: str, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Features:
    """The features whose `kind`, `params_json()` and `arrays()` these are.

    Raises
    ------
    KeyError
        If there is no such kind.
    """
    return _LOADERS[kind](params, arrays)
