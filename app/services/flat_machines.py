"""Versions that are one linear machine of a flat list of classes on given numbers, as other libraries have them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.errors import InvalidInput, Item
from app.features.base import Features
from solvers.core.model import Model


@dataclass(frozen=True, eq=False)
class FlatMachine:
    """Scores are ``x[columns] @ W + intercept``.

    Attributes
    ----------
    columns : int64 array, shape (n_rows,)
        Which of the ``n_given`` features are used.
    W : float32 array, shape (n_rows, n_classes)
    intercept : float32 array, shape (n_classes,)
    classes : tuple of str
    n_given : int
    pooled : bool
        Answers are the logarithms of the softmax of the scores.
    """

    columns: Any
    W: Any
    intercept: Any
    classes: tuple[str, ...]
    n_given: int
    pooled: bool


def flat_machine(model: Model, features: Features, format: str, most_bytes: int) -> FlatMachine:
    """A version's weights for an export in another format.

    Parameters
    ----------
    format : str
        Its name, for the reasons of a refusal.
    most_bytes : int
        That the weights may take, 4 bytes each.

    Raises
    ------
    InvalidInput
        The version reads texts, or is no linear machine that names one label of a flat list.
    """
    weights = model.linear_weights()
    fault = None
    if features.kind == "text":
        fault = f"it reads texts, which {format} has no words for; the archive has a script that does"
    elif features.kind != "sparse":
        fault = (
            f"its numbers are scaled, or it reads a table, which {format} does not; the archive has a script that does"
        )
    elif model.names_sets or model.tree is not None:
        fault = "it goes along a label tree; the archive has a script that does"
    elif weights is None:
        fault = "it is no linear machine, or several of them"
    elif 4 * weights.W.shape[0] * weights.W.shape[1] > most_bytes:
        fault = f"its weights take more than {most_bytes} bytes"
    if fault is not None or weights is None:
        raise InvalidInput(f"The version cannot be given as {format}.", [Item(str(fault), "/format")])
    W = weights.dense().astype(np.float32)
    intercept = np.zeros(W.shape[1]) if weights.intercept is None else np.asarray(weights.intercept)
    pooled = model.kind == "pool"
    if pooled:  # of one machine: its scores times a coefficient, then the logarithm of the softmax
        factor = np.float32(model.arrays()["coefficients"][0])
        W, intercept = W * factor, intercept * factor
    columns = np.asarray(features.arrays().get("used", np.arange(features.n_given)))[weights.features]
    return FlatMachine(columns, W, intercept.astype(np.float32), tuple(model.classes), features.n_given, pooled)
