"""The output codes of models: the matrix and the distances within it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import NotFound, PolymarginError
from app.predictions.inspection_schemas import OutputCode
from app.predictions.model_cache import ModelCache
from solvers.output_codes import codes

_SHOWN_DECIMALS = 9


@dataclass(frozen=True, eq=False)
class Code:
    """The code of a model version.

    Attributes
    ----------
    model : str
    version : int
    classes : tuple of str
    matrix : array, shape (n_classes, n_columns)
    decoding : str
    """

    model: str
    version: int
    classes: tuple[str, ...]
    matrix: NDArray[Any]
    decoding: str


def of_version(cache: ModelCache, workspace: str, ref: str, number: int) -> Code:
    """The code of a version; raises NotFound where there is no such version, or it has no code."""
    loaded = cache.get((workspace, ref, number, None))
    code = loaded.model.output_code
    if code is None:
        raise NotFound(f"version {number} of {loaded.version.model!r:.80} has no output code")
    return Code(loaded.version.model, number, loaded.model.classes, np.asarray(code.matrix), code.decoding)


def is_coded(cache: ModelCache, workspace: str, ref: str, number: int) -> bool:
    """Whether a version has an output code; False where it cannot be read."""
    try:
        return cache.get((workspace, ref, number, None)).model.output_code is not None
    except PolymarginError:
        return False


def window(code: Code, first_class: int, n_classes: int, first_column: int, n_columns: int) -> OutputCode:
    """A part of a code with the distances between its rows and between its columns; empty beyond the code's end."""
    rows = slice(first_class, first_class + n_classes)
    columns = slice(first_column, first_column + n_columns)
    discrete = codes.is_discrete(code.matrix)
    return OutputCode(
        model=code.model,
        version=code.version,
        n_classes=code.matrix.shape[0],
        n_columns=code.matrix.shape[1],
        discrete=discrete,
        decoding=code.decoding,
        first_class=first_class,
        first_column=first_column,
        classes=list(code.classes[rows]),
        matrix=_plain(code.matrix[rows, columns]),
        distance="hamming" if discrete else "euclidean",
        row_distances=_plain(codes.row_distances(code.matrix[rows], discrete=discrete)),
        column_distances=_plain(codes.column_distances(code.matrix[:, columns], discrete=discrete)),
    )


def _plain(values: NDArray[Any]) -> list[list[float]]:
    rows: list[list[float]] = np.round(values.astype(np.float64), _SHOWN_DECIMALS).tolist()
    return rows
