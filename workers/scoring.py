"""Measures of a model on one part of its data."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from solvers.metrics import flat
from solvers.model import Model

CHUNK_BYTES = 64 << 20


def measure(model: Model, X: csr_matrix, y: NDArray[np.int32], majority: int) -> dict[str, float]:
    """Error, F1 and the error of always answering ``majority``; nothing where there are no rows.

    Parameters
    ----------
    model : Model
    X : csr_matrix, shape (n_samples, n_features)
        Scored in chunks of rows whose scores take 64 MB.
    y : int32 array, shape (n_samples,)
        -1 for a label that the model does not know.
    majority : int
        The most frequent class of the training part.
    """
    if len(y) == 0:
        return {}
    measures = flat(y, model.predict(X, CHUNK_BYTES), len(model.classes))
    return {**measures, "majority_error": float((y != majority).mean())}
