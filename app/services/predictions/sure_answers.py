"""What of an answer is sure enough: by a threshold, or by the precision that held-out rows let expect."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from app.errors import InvalidInput, Item
from solvers.core.model import Model
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability
from solvers.metrics.confidence.set_reliability import SetReliability


class Used(NamedTuple):
    """What a request's answers have to reach.

    Attributes
    ----------
    threshold : float
        A probability; infinite where nothing is sure.
    told : dict
        As ``schemas.predictions.UsedThreshold``.
    """

    threshold: float
    told: dict[str, Any]


def used_threshold(model: Model, threshold: Any, min_precision: Any) -> Used | None:
    """What a request asks for; None where it asks for neither.

    Where no threshold leads to the precision, sets of labels are empty, and a single label is refused.

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
    held_out = kept(model)
    if held_out is None and model.names_sets:
        raise _fault(
            "the version does not keep what its labels were worth on held-out rows; train it again by the solver auto",
            field,
        )
    if held_out is None:
        raise _fault("the model has no probabilities; those that the solver auto trains have them", field)
    if min_precision is None:
        return Used(float(value), {"threshold": float(value)})
    found = held_out.threshold_for(float(value))
    if found is not None:
        return Used(found.threshold, found._asdict())
    if not model.names_sets:
        raise _fault("on the rows held out no threshold reached it with a confidence of 95 %", field)
    return Used(math.inf, {"threshold": None})


def prepare(model: Model) -> None:
    """Work out once, before a model is asked, which thresholds lead to which precision."""
    held_out = kept(model)
    if held_out is not None:
        _ = held_out.curve


def kept(model: Model) -> SetReliability | BackOff | Reliability | None:
    """What a model keeps of rows held out, by which thresholds lead to precisions."""
    return model.set_reliability or model.back_off or model.reliability


def sure(model: Model, row: tuple[Any, Any], top: dict[str, Any], threshold: float) -> dict[str, Any] | None:
    """The label if it is sure enough, or along the model's label tree the deepest node that is; None if nothing is.

    Parameters
    ----------
    model : Model
    row : (indices, values)
    top : dict
        ``label`` and ``probability`` of the prediction.
    threshold : float
        A probability.
    """
    if model.back_off is None:
        return {"label": top["label"], "probability": top["probability"]} if top["probability"] >= threshold else None
    found = model.back_off.answer(np.exp(model.score_one(*row)), threshold)
    return None if found is None else {"label": found[0], "probability": found[1]}


def sure_labels(model: Model, row: tuple[Any, Any], threshold: float) -> list[dict[str, Any]]:
    """The labels of a set that are sure enough, those above a label in the model's tree before it.

    Parameters
    ----------
    model : Model
        Its scores are log-odds.
    row : (indices, values)
    threshold : float
        A probability.
    """
    said = expit(model.score_one(*row))
    nodes = np.flatnonzero(said >= threshold).tolist()
    return [{"label": model.classes[node], "probability": float(said[node])} for node in nodes]


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", [Item(detail, pointer)])
