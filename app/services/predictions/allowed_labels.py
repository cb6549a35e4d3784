"""Labels that a request allows: only some, or all but some; along a label tree a node stands for all below it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import MAX_ITEMS, InvalidInput, Item
from app.services.predictions.model_cache import LoadedModel
from solvers.core.model import Model
from solvers.numerics.array_types import AnyFloats

Allowed = NDArray[np.bool_]


def allowed_labels(loaded: LoadedModel, include: Any, exclude: Any) -> Allowed | None:
    """Which of the model's classes may be answered; None: all of them.

    Raises
    ------
    InvalidInput
        A label is not known, none is left, or the model answers with sets.
    """
    if include is None and exclude is None:
        return None
    if loaded.model.names_sets:
        field = "/exclude" if include is None else "/include"
        raise _fault([Item("the model names sets; labels are chosen for models that name one", field)])
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
        raise _fault([Item("the model answers with none of these labels", "/include")])
    return best[kept][:k], scores[kept][:k]


def _mask(loaded: LoadedModel, labels: Any, field: str) -> Allowed:
    if not isinstance(labels, list) or not labels or not all(type(label) is str for label in labels):
        raise _fault([Item("a list of labels was expected", f"/{field}")])
    places = loaded.places
    unknown = [at for at, label in enumerate(labels) if label not in places]
    if unknown:
        raise _fault([Item("the model has no such label", f"/{field}/{at}") for at in unknown[:MAX_ITEMS]])
    mask = np.zeros(len(loaded.model.classes), bool)
    mask[[places[label] for label in labels]] = True
    tree = loaded.model.tree
    if tree is not None:
        parent = np.asarray(tree.parent)
        for _ in range(tree.depth):
            mask |= mask[parent] & (parent >= 0)
    return mask


def _fault(items: list[Item]) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", items)
