"""What of an answer is sure enough: by a threshold, or by the precision that held-out rows let expect."""

from typing import Any

import numpy as np

from app.errors import InvalidInput, Item
from solvers.core.model import Model
from solvers.metrics.confidence.reliability import Threshold


def used_threshold(model: Model, threshold: Any, min_precision: Any) -> Threshold | float | None:
    """What a request asks for; None where it asks for neither.

    Raises
    ------
    InvalidInput
        Both are given, one is no such number, the model has no probabilities, or no threshold leads to the precision.
    """
    if threshold is None and min_precision is None:
        return None
    if threshold is not None and min_precision is not None:
        raise _fault("a threshold or a precision is taken, not both", "/min_precision")
    field, value = ("/threshold", threshold) if min_precision is None else ("/min_precision", min_precision)
    if type(value) not in (int, float) or not 0 <= value <= 1 or (threshold is None and value in (0, 1)):
        raise _fault("a number from 0 to 1 was expected" + (", neither of them" if threshold is None else ""), field)
    if model.reliability is None:
        raise _fault("the model has no probabilities; those that the solver auto trains have them", field)
    if min_precision is None:
        return float(value)
    found = (model.back_off or model.reliability).threshold_for(float(value))
    if found is None:
        raise _fault("on the rows held out no threshold reached it with a confidence of 95 %", field)
    return found


def prepare(model: Model) -> None:
    """Work out once, before a model is asked, which thresholds lead to which precision."""
    if model.reliability is not None:
        _ = (model.back_off or model.reliability).curve


def described(used: Threshold | float) -> dict[str, Any]:
    """As ``schemas.predictions.UsedThreshold``."""
    return used._asdict() if isinstance(used, Threshold) else {"threshold": used}


def sure(model: Model, row: tuple[Any, Any], top: dict[str, Any], used: Threshold | float) -> dict[str, Any] | None:
    """The label if it is sure enough, or along the model's label tree the deepest node that is; None if nothing is.

    Parameters
    ----------
    model : Model
    row : (indices, values)
    top : dict
        ``label`` and ``probability`` of the prediction.
    used : Threshold or float
    """
    least = used.threshold if isinstance(used, Threshold) else used
    if model.back_off is None:
        return {"label": top["label"], "probability": top["probability"]} if top["probability"] >= least else None
    found = model.back_off.answer(np.exp(model.score_one(*row)), least)
    return None if found is None else {"label": found[0], "probability": found[1]}


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", [Item(detail, pointer)])
