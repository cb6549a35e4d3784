"""The labels of an answer, decided once: predictions of rows, protocols and files of predictions all show these."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from app.errors import PolymarginError
from app.hierarchies.label_facts import LabelFacts
from app.predictions.allowed_labels import Allowed
from app.predictions.model_cache import LoadedModel, ModelCache
from app.predictions.sure_answers import Used
from solvers.labels.label_sets import own_labels as own_of_sets
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Bools, Floats, Ints

_NOTHING: dict[str, Any] = {}


def one_label(
    loaded: LoadedModel, best: Mapping[str, Any], used: Used | None, sure: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The answer of a model that names one label.

    Parameters
    ----------
    best : mapping
        The best label with its score and facts.
    used : Used or None
        The threshold of the request, if it has one.
    sure : mapping or None
        The label or node that is sure enough.
    """
    answer: dict[str, Any] = {**best}
    if used is not None:
        answer["sure"] = is_sure = sure is not None and sure["label"] == best["label"]
        if sure is not None and not is_sure:
            answer["sure_ancestor"] = sure["label"]
    path = loaded.path(best["label"])
    if path is not None:
        answer["path"] = path
    return [answer]


def labels_of_set(
    loaded: LoadedModel,
    nodes: Sequence[tuple[str, str | None]],
    scores: AnyFloats,
    used: Used | None,
    facts: LabelFacts,
    allowed: Allowed | None = None,
) -> list[dict[str, Any]]:
    """The answer of a model that predicts sets: the set's own labels, the best first; their ancestors are paths.

    Of labels that are not allowed, the answer leaves out those in the set and puts none in their place.

    Parameters
    ----------
    nodes : sequence of (str, str or None)
        The nodes of the set with their parents.
    scores : float array, shape (n_nodes_of_tree,)
        Of the row; not read where the set is empty.
    used : Used or None
        The threshold of the request, if it has one.
    allowed : bool array, shape (n_classes,), or None
        The labels that may be answered; None: all.
    """
    own = [label for label in own_labels(loaded, nodes) if allowed is None or allowed[loaded.places[label]]]
    places = np.array([loaded.places[label] for label in own], np.int64)
    order = np.argsort(-scores[places], kind="stable").tolist() if own else []
    return [{**_set_label(loaded, own[at], scores, used, allowed), **facts.get(own[at], _NOTHING)} for at in order]


def are_sets(cache: ModelCache, workspace: str, ref: str, number: int) -> bool:
    """Whether a version predicts sets of labels; False if it is unread."""
    try:
        return cache.get((workspace, ref, number, None)).model.names_sets
    except PolymarginError:
        return False


def own_labels(loaded: LoadedModel, nodes: Iterable[tuple[str, str | None]]) -> list[str]:
    """The labels of a set that are not there as ancestors of others alone.

    Parameters
    ----------
    nodes : iterable of (str, str or None)
        The nodes of the set, and their parents in the tree.
    """
    listed = list(nodes)
    above: set[str | None] = {parent for _, parent in listed}
    if loaded.labels.other_parents:
        for label, _ in listed:
            above.update(loaded.labels.other_parents.get(label, ()))
    return [label for label, _ in listed if label not in above]


class SetLabels(NamedTuple):
    """The answers of a model that predicts sets to many rows, as :func:`labels_of_set` has them for one.

    Attributes
    ----------
    indptr : int64 array, shape (n_rows + 1,)
    nodes : int64 array
        The labels of row i, the best first, from ``indptr[i]`` to ``indptr[i + 1]``: their places among the classes.
    scores : float64 array, shape of ``nodes``
    sure : bool array, shape of ``nodes``
    sure_ancestors : int64 array, shape of ``nodes``
        -1 where there is none.
    """

    indptr: Ints
    nodes: Ints
    scores: Floats
    sure: Bools
    sure_ancestors: Ints


def labels_of_sets(loaded: LoadedModel, ranking: Ranking, used: Used | None, allowed: Allowed | None) -> SetLabels:
    """The labels of many sets.

    Parameters
    ----------
    ranking : Ranking
        With sets, of the model.
    used : Used or None
        The threshold of the request; without one no label is sure.
    allowed : bool array, shape (n_classes,), or None
        The labels that may be answered; None: all.
    """
    assert ranking.sets is not None
    assert loaded.model.tree is not None
    parent = np.asarray(loaded.model.tree.parent, np.int64)
    sets = ranking.sets.tocsr()
    scores = ranking.values if ranking.set_scores is None else ranking.set_scores
    own = own_of_sets(sets, loaded.model.tree.parents).tocoo()
    row, nodes = own.row.astype(np.int64), own.col.astype(np.int64)
    left = np.ones(len(nodes), bool) if allowed is None else allowed[nodes]
    if loaded.labels.other_parents:
        left &= np.asarray((sets.astype(np.int32) @ loaded.other_parents)[row, nodes]).ravel() == 0
    row, nodes = row[left], nodes[left]
    worth = scores[row, nodes].astype(np.float64)
    order = np.lexsort((nodes, -worth, row))
    row, nodes, worth = row[order], nodes[order], worth[order]
    sure, above = np.zeros(len(nodes), bool), np.full(len(nodes), -1)
    if used is not None:
        sure, node = expit(worth) >= used.threshold, parent[nodes]
        while (node >= 0).any():
            found = (above < 0) & (node >= 0) & ~sure & (expit(scores[row, node]) >= used.threshold)
            if allowed is not None:
                found &= allowed[node]
            above[found] = node[found]
            node = np.where(node >= 0, parent[node], -1)
        if loaded.labels.other_parents or not loaded.model.tree.is_tree:
            for at in np.flatnonzero(~sure & (above < 0)).tolist():
                above[at] = _sure_above(loaded, int(nodes[at]), scores[row[at]], used, allowed)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=sets.shape[0]))])
    return SetLabels(indptr, nodes, worth, sure, above)


def _set_label(
    loaded: LoadedModel, label: str, scores: AnyFloats, used: Used | None, allowed: Allowed | None
) -> dict[str, Any]:
    """One label of a set, by the scores of all nodes."""
    score = float(scores[loaded.places[label]])
    answer: dict[str, Any] = {"label": label, "score": score}
    if loaded.model.set_reliability is not None:
        answer["probability"] = float(expit(score))
    path = loaded.path(label)
    if used is not None:
        answer["sure"] = answer["probability"] >= used.threshold
        if not answer["sure"] and path is not None:
            above = [loaded.places[node] for node in path[:-1]]
            above = [at for at in above if _is_sure(at, scores, used, allowed)]
            node = above[-1] if above else _sure_above(loaded, loaded.places[label], scores, used, allowed)
            answer |= {"sure_ancestor": loaded.model.classes[node]} if node >= 0 else {}
    if path is not None:
        answer["path"] = path
    if not loaded.is_seen(label):
        answer["seen"] = False
    return answer


def _sure_above(loaded: LoadedModel, node: int, scores: AnyFloats, used: Used, allowed: Allowed | None) -> int:
    """The nearest sure node above another one along all parents, the most probable of several; -1 if there is none."""
    assert loaded.model.tree is not None
    (start, above), classes, places = loaded.model.tree.parents, loaded.model.classes, loaded.places
    level, seen = {node}, set[int]()
    while level:
        parents = {at for each in level for at in above[start[each] : start[each + 1]].tolist()}
        named = (name for each in level for name in loaded.labels.other_parents.get(classes[each], ()))
        level = (parents | {places[name] for name in named if name in places}) - seen
        seen |= level
        found = [at for at in sorted(level) if _is_sure(at, scores, used, allowed)]
        if found:
            return max(found, key=lambda at: float(scores[at]))
    return -1


def _is_sure(node: int, scores: AnyFloats, used: Used, allowed: Allowed | None) -> bool:
    return bool(expit(scores[node]) >= used.threshold) and (allowed is None or bool(allowed[node]))
