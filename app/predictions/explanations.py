"""Why a label was answered: what each feature brought to its lead over the runner-up, along a label tree at every node.

Each label of a set has its own. All parts of a step, with its intercept and the rest that is not listed,
add up to the lead. Of scores that are functions of sums over features, as those of learnt label trees, the parts are
secants from the empty instance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import InvalidInput, Item, PolymarginError
from app.predictions.model_cache import LoadedModel, ModelCache

MAX_TERMS = 100
_NOTHING = np.empty(0, np.int32), np.empty(0, np.float64)


def unexplained(cache: ModelCache, workspace: str, model: str, version: int | None) -> str:
    """Why the answers of a version cannot be explained; empty where they can."""
    try:
        return cache.get((workspace, model, version, None)).model.unexplained
    except PolymarginError:
        return "it cannot be read"


def weighs_features(cache: ModelCache, workspace: str, model: str, version: int) -> bool:
    """Whether a feature of a version brings the same to every instance; False if it is unread."""
    try:
        found = cache.get((workspace, model, version, None)).model.contributions(*_NOTHING, 0, None)
    except PolymarginError:
        return False
    return found is not None and found.additive


def explanation(
    loaded: LoadedModel,
    instance: Any,
    row: tuple[Any, Any],
    best: int,
    rival: int | None,
    n_terms: int,
    among: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """The steps that led to a label.

    Parameters
    ----------
    instance : JSON
        As it was given, for offsets in texts.
    row : (indices, values)
    best, rival : int
        Classes: the answer, and the runner-up where there is one.
    n_terms : int
        Most features to list for the label, and against it.
    among : sequence of str, optional
        Of a set of labels the nodes to explain, in this order; where there are none, the best label. Left out, all
        of the set.

    Returns
    -------
    list of dict
        As ``schemas.predictions.ExplainedStep``.

    Raises
    ------
    InvalidInput
        The model's answers cannot be explained.
    """
    model = loaded.model
    steps = []
    if model.unexplained:
        reported = f"no answer of this model can be explained: {model.unexplained}"
        raise InvalidInput("The request does not fit the model.", [Item(reported, "/explain")])
    contests = model.contests(*row, best, rival)
    if among is not None:
        by_name = {model.classes[label]: (label, other) for label, other in contests}
        contests = [by_name[name] for name in among if name in by_name] or [(best, None)]
    for label, other in contests:
        found = model.contributions(*row, label, other)
        assert found is not None
        order = np.argsort(-np.abs(found.parts), kind="stable")
        lifting = [k for k in order.tolist() if found.parts[k] > 0][:n_terms]
        lowering = [k for k in order.tolist() if found.parts[k] < 0][:n_terms]
        spans = loaded.features.spans(instance, row[0][lifting + lowering].tolist())
        rest = np.delete(found.parts, lifting + lowering).sum()
        steps.append(
            {
                "label": model.classes[label],
                "rival": None if other is None else model.classes[other],
                "lead": float(found.parts.sum() + found.intercept),
                "intercept": found.intercept,
                "lifted_by": [_term(loaded, row, found.parts, k, spans) for k in lifting],
                "lowered_by": [_term(loaded, row, found.parts, k, spans) for k in lowering],
                "rest": float(rest),
            }
        )
    return steps


def _term(
    loaded: LoadedModel, row: tuple[Any, Any], parts: Any, k: int, spans: dict[int, list[tuple[int, int]]]
) -> dict[str, Any]:
    index = int(row[0][k])
    term = {"feature": loaded.features.named(index), "value": float(row[1][k]), "part": float(parts[k])}
    return term | {"spans": spans[index]} if index in spans else term
