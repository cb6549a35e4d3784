"""Restricts predictions to included labels, or drops excluded ones; a node of a label tree includes its descendants."""

from typing import Any

import numpy as np

from app.errors import MAX_ITEMS, InvalidInput, Item
from app.predictions.model_cache import LoadedModel
from solvers.core.model import Model
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Bools

Allowed = Bools


def allowed_labels(loaded: LoadedModel, include: Any, exclude: Any) -> Allowed | None:
    """Which of the model's classes may be answered; None: all of them.

    Raises
    ------
    InvalidInput
        A label is not known, or none is left.
    """
    if include is None and exclude is None:
        return None
    allowed = np.ones(len(loaded.model.classes), bool) if include is None else _mask(loaded, include, "include")
    if exclude is not None:
        allowed &= ~_mask(loaded, exclude, "exclude")
    if not allowed.any():
        raise _fault([Item("no label is left", "/exclude")])
    return allowed


def best_allowed(model: Model, row: tuple[Any, Any], k: int, allowed: Allowed | None) -> tuple[Any, AnyFloats]:
    """As :meth:`Model.top`, of the labels that are allowed; raises InvalidInput where it answers with none of them."""
    if allowed is None:
        return model.top(*row, k)
    size = 2 * k + 16
    while True:
        best, scores = model.top(*row, size)
        kept = allowed[best]
        if len(best) < size or int(kept.sum()) >= k:
            break
        size *= 4
    if not kept.any():
        raise _fault([Item("the model predicts none of these labels", "/include")])
    return best[kept][:k], scores[kept][:k]


def among_allowed(ranking: Ranking, allowed: Allowed | None) -> Ranking:
    """The order of the labels that are allowed; raises InvalidInput where the model answers with none of them."""
    if allowed is None:
        return ranking
    values = np.where(allowed, ranking.values, -np.inf)
    if np.isneginf(values).all(axis=1).any():
        raise _fault([Item("the model predicts none of these labels", "/include")])
    left = ranking._replace(values=values, predicted=None)
    if ranking.predicted is not None:
        left = left._replace(predicted=np.where(allowed[ranking.predicted], ranking.predicted, left.first()))
    return left


def _mask(loaded: LoadedModel, labels: Any, field: str) -> Allowed:
    if not isinstance(labels, list) or not labels or not all(type(label) is str for label in labels):
        raise _fault([Item("expected a list of labels", f"/{field}")])
    places, node_places, tree = loaded.places, loaded.node_places, loaded.tree
    labels = [loaded.label_form(label) for label in labels]
    unknown = [at for at, label in enumerate(labels) if label not in places and label not in node_places]
    if unknown:
        raise _fault(
            [Item(f"the model has no label {labels[at]!r:.80}", f"/{field}/{at}") for at in unknown[:MAX_ITEMS]]
        )
    mask = np.zeros(len(places), bool)
    mask[[places[label] for label in labels if label in places]] = True
    if tree is not None:
        given = np.zeros(tree.n_nodes, bool)
        given[[node_places[label] for label in labels if label in node_places]] = True
        start, above = tree.at_or_above
        below = np.logical_or.reduceat(given[above], start[:-1])
        nodes = np.array([node_places.get(label, -1) for label in places])
        mask |= below[nodes] & (nodes >= 0)
    return mask


def _fault(items: list[Item]) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", items)
