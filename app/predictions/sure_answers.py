"""What of an answer is sure enough: by a threshold, or by the precision that held-out rows let expect."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from app.errors import unfit
from solvers.core.model import Model
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability, Threshold, threshold_for
from solvers.metrics.confidence.set_reliability import SetReliability, SetThreshold
from solvers.numerics.array_types import AnyFloats, Bools, Floats32, Ints


class Used(NamedTuple):
    """What a request's answers have to reach.

    Attributes
    ----------
    threshold : float
        A probability; infinite where nothing is sure.
    shown : dict
        The fields of :class:`app.predictions.schemas.UsedThreshold`.
    level : int, "leaves" or "any"
        Along a label tree: the level whose nodes alone are sure; otherwise the deepest nodes that reach the threshold
        are, and held-out rows are asked of labels alone, or of the nodes at all levels together.
    """

    threshold: float
    shown: dict[str, Any]
    level: int | str = "any"

    @property
    def own_level(self) -> int | None:
        """The one level whose nodes are sure; None where nodes at all levels may be."""
        return None if isinstance(self.level, str) else self.level


def used_threshold(
    model: Model, threshold: Any, min_precision: Any, may_be_unsure: bool = False, sure_level: Any = "any"
) -> Used | None:
    """What a request asks for; None where it asks for neither.

    Where no threshold leads to the precision, sets of labels are empty, and a single label is refused, or with
    ``may_be_unsure`` never sure. Along a label tree ``sure_level`` says at which level answers reach the
    precision; with a number, the nodes at that level alone are sure.

    Raises
    ------
    InvalidInput
        Both are given, or neither beside a level; one is no such number; the model has no probabilities; or no
        threshold leads to the precision.
    """
    if threshold is None and min_precision is None:
        if sure_level != "any":
            raise unfit("sure_level needs min_precision or a threshold: pass one of them", "/sure_level")
        return None
    if threshold is not None and min_precision is not None:
        raise unfit("min_precision and a threshold cannot be combined: pass one of them", "/min_precision")
    field, value = ("/threshold", threshold) if min_precision is None else ("/min_precision", min_precision)
    if type(value) not in (int, float) or not 0 <= value <= 1 or (threshold is None and value in (0, 1)):
        raise unfit("expected a number from 0 to 1" + (", exclusive" if threshold is None else ""), field)
    held_out = calibration_of(model)
    if held_out is None and model.names_sets:
        raise unfit(
            "the version has no precision of its labels on held-out rows; train it again with the solver auto",
            field,
        )
    if held_out is None:
        raise unfit("the model has no probabilities; train it with the solver auto to get them", field)
    asked = _at_level(model, held_out, sure_level)
    if min_precision is None:
        return Used(float(value), {"threshold": float(value)}, sure_level)
    found = threshold_for(asked.curve, float(value))
    if found is not None:
        return Used(found.threshold, found._asdict() | _depth(model, sure_level), sure_level)
    if not model.names_sets and not may_be_unsure:
        raise unfit("no threshold reached this precision on the held-out rows with 95 % confidence", field)
    return Used(math.inf, {"threshold": None}, sure_level)


def _depth(model: Model, level: Any) -> dict[str, Any]:
    """The mean level of answers, where it is not that of the curve that they were chosen by."""
    return {} if model.back_off is None or level == "any" else {"depth": level if type(level) is int else None}


def _at_level(
    model: Model, held_out: SetReliability | BackOff | Reliability, level: Any
) -> SetReliability | BackOff | Reliability:
    """The held-out answers that a precision is asked of: all, those at the leaves, or those at one level."""
    if level not in ("any", "leaves") and (type(level) is not int or level < 1):
        raise unfit("expected any, leaves, or a level of at least 1", "/sure_level")
    if model.back_off is None:
        if type(level) is int:
            raise unfit("the model's labels have no levels: it was not calibrated along a label tree", "/sure_level")
        return held_out
    if type(level) is not int:
        return model.back_off.own if level == "leaves" else held_out
    if level > model.back_off.tree.depth:
        raise unfit(f"the label tree has {model.back_off.tree.depth} levels", "/sure_level")
    return model.back_off.at(level)


def promise(model: Model, used: Used) -> dict[str, Any]:
    """What held-out rows promise for exactly what a request calls sure, by its level.

    Along a label tree these are the deepest nodes that reach the threshold, right where the true label is there or
    below; or labels alone; or the nodes at one level. Of sets along a tree these are all nodes that reach the
    threshold, those above others too. Labels that are in no set are not answered, whatever the threshold.

    Returns
    -------
    dict
        ``threshold`` and ``counted``, ``labels`` or ``nodes``, and where a held-out row has such an answer
        ``precision``, ``lower_bound``, ``answered``, of sets ``recall``, and of the deepest nodes ``label_precision``:
        that of the labels among them.
    """
    threshold = None if math.isinf(used.threshold) else used.threshold
    nodes = _along_tree(model) and (model.names_sets or used.level != "leaves")
    found: dict[str, Any] = {"threshold": threshold, "counted": "nodes" if nodes else "labels"}
    held_out = calibration_of(model)
    least = max(used.threshold, model.least_probability)
    point = None if held_out is None else _point(_at_level(model, held_out, used.level), least)
    if point is None:
        return found
    if model.back_off is not None and used.level == "any":
        own = _point(model.back_off.own, used.threshold)
        found |= {"label_precision": None if own is None else own.precision}
    return point._asdict() | found | _depth(model, used.level)


def labels_answered(model: Model, used: Used) -> float:
    """The share of held-out rows whose label itself, not a node above it, reaches a threshold."""
    held_out = calibration_of(model) if model.back_off is None else model.back_off.own
    found = None if held_out is None else _point(held_out, used.threshold)
    return 0.0 if found is None else found.answered


def _along_tree(model: Model) -> bool:
    return model.back_off is not None or (model.names_sets and model.tree is not None and model.tree.depth > 1)


def _point(held_out: SetReliability | BackOff | Reliability, threshold: float) -> Threshold | SetThreshold | None:
    """What held-out answers from a threshold on are worth; None where no answer reaches it."""
    return next((point for point in held_out.curve if point.threshold >= threshold), None)


def prepare(model: Model) -> None:
    """Work out once, before a model is asked, which thresholds lead to which precision."""
    held_out = calibration_of(model)
    if held_out is not None:
        _ = held_out.curve


def calibration_of(model: Model) -> SetReliability | BackOff | Reliability | None:
    """Return the calibration of a model on held-out rows, which maps thresholds to precisions; None without one."""
    return model.set_reliability or model.back_off or model.reliability


def sure(model: Model, row: tuple[Any, Any], best: int, probability: float, used: Used) -> dict[str, Any] | None:
    """The label if it is sure enough, or along the model's label tree the node above it that is; None if nothing is.

    Parameters
    ----------
    row : (indices, values)
    best : int
        The class of the prediction.
    probability : float
        Of that class.
    """
    if model.back_off is None:
        return {"label": model.classes[best], "probability": probability} if probability >= used.threshold else None
    names, confidence = sure_nodes(model, model.score_one(*row)[None], np.array([best]), used)
    return None if names[0] is None else {"label": names[0], "probability": float(confidence[0])}


def sure_nodes(model: Model, log_probabilities: AnyFloats, best: Ints, used: Used) -> tuple[list[str | None], Floats32]:
    """For each of many rows the node that is sure, None if none is, and its probability.

    It is the label or above it: the deepest node that reaches the threshold, or the one at the level asked for.

    Parameters
    ----------
    model : Model
        Has ``back_off``.
    log_probabilities : float array, shape (n_rows, n_classes)
    best : int64 array, shape (n_rows,)
        The class of each row's label.
    """
    assert model.back_off is not None
    ways, confidence = model.back_off.ways(np.exp(log_probabilities), best)
    depths = model.back_off.depths(ways, confidence, used.threshold, used.own_level)
    at, names = (np.arange(len(depths)), depths - 1), model.back_off.tree.names
    nodes = [names[node] if depth else None for node, depth in zip(ways[at].tolist(), depths.tolist(), strict=True)]
    return nodes, confidence[at]


def sure_labels(
    model: Model, row: tuple[Any, Any], threshold: float, allowed: Bools | None = None
) -> list[dict[str, Any]]:
    """The labels of a set that are sure enough, those above a label in the model's tree before it.

    Parameters
    ----------
    model : Model
        Its scores are log-odds.
    row : (indices, values)
    threshold : float
        A probability.
    allowed : bool array, shape (n_classes,), or None
        The labels that may be answered; None: all.
    """
    said = expit(model.score_one(*row))
    nodes = np.flatnonzero(said >= threshold if allowed is None else (said >= threshold) & allowed).tolist()
    return [{"label": model.classes[node], "probability": float(said[node])} for node in nodes]
