"""Answers of least expected cost, by the probabilities of a version and the costs that it was trained with."""

from typing import Any, NamedTuple

import numpy as np

from app.errors import InvalidInput, Item
from app.predictions.allowed_labels import Allowed
from solvers.core.model import Model
from solvers.numerics.array_types import AnyFloats, Floats, Ints
from solvers.numerics.best import best


class Decided(NamedTuple):
    """The labels of some rows by rising expected cost; equal ones by class.

    Attributes
    ----------
    classes : int64 array, shape (n_rows, k)
    scores : float array, shape (n_rows, k)
        Logarithms of their probabilities.
    costs : float64 array, shape (n_rows, k)
        What each is expected to cost as the answer.
    """

    classes: Ints
    scores: AnyFloats
    costs: Floats


def check_least_cost(model: Model, document: Any) -> bool:
    """Whether a request asks for answers of least expected cost; raises InvalidInput where the model has none."""
    asked = document.get("least_cost", False)
    if type(asked) is not bool:
        raise InvalidInput("The request does not fit its schema.", [Item("expected true or false", "/least_cost")])
    if not asked:
        return False
    fault = None
    if model.costs is None:
        fault = "the version has no costs: train it with the parameter costs"
    elif model.reliability is None:
        fault = (
            "the version has no calibrated probabilities, by which costs are expected: train it with the solver auto "
            "and the parameter costs"
        )
    elif document.get("threshold") is not None or document.get("min_precision") is not None:
        fault = (
            "least_cost cannot be combined with min_precision or a threshold, which are about the most probable label"
        )
    if fault is not None:
        raise InvalidInput("The request does not fit the model.", [Item(fault, "/least_cost")])
    return True


def least_cost(model: Model, values: AnyFloats, k: int, allowed: Allowed | None = None) -> Decided:
    """The k answers of least expected cost.

    Parameters
    ----------
    model : Model
        With costs.
    values : float array, shape (n_rows, n_classes)
        Logarithms of the probabilities.
    allowed : bool array, shape (n_classes,), optional
        Which labels may be answered; the costs are expected by the probabilities of all.
    """
    assert model.costs is not None
    with np.errstate(under="ignore"):
        expected = model.costs.expected(np.exp(values.astype(np.float64)))
    if allowed is not None:
        expected[:, ~allowed] = np.inf
        k = min(k, int(allowed.sum()))
    classes, lessened = best(-expected, k)
    return Decided(classes, np.take_along_axis(values, classes, axis=1), np.asarray(-lessened, np.float64))
