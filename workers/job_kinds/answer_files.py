"""Answers as tables: one row of a dataset each, with the columns that every format has."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from app.hierarchies.label_facts import display_name
from app.predictions.allowed_labels import among_allowed
from app.predictions.answers import labels_of_sets
from app.predictions.least_cost import check_least_cost, least_cost
from app.predictions.model_cache import LoadedModel
from app.predictions.schemas import BatchPredictRequest
from app.predictions.service import limits
from app.predictions.sure_answers import sure_nodes
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Floats, Ints
from solvers.numerics.best import best

_NO_FACTS: Mapping[str, Any] = {}


class Answers:
    """Makes tables of the answers of a model, as a request wants them.

    Raises
    ------
    InvalidInput
        The model does not take the request's threshold, precision or labels.
    """

    def __init__(self, loaded: LoadedModel, request: BatchPredictRequest) -> None:
        self._loaded, self._top_k = loaded, request.top_k
        self.used, self._allowed = limits(loaded, request.model_dump(exclude_none=True), may_be_unsure=True)
        self._by_cost = check_least_cost(loaded.model, request.model_dump(exclude_none=True))
        self._classes = pa.array(loaded.model.classes, pa.string())
        self._language = request.language or "en"
        self._model = f"{loaded.version.model}@{loaded.version.version}"

    def table(
        self,
        rows: NDArray[np.int64],
        ranking: Ranking,
        ids: Sequence[str] | None = None,
        known_terms: NDArray[np.int64] | None = None,
    ) -> pa.Table:
        """The answers to some rows.

        Parameters
        ----------
        rows : int64 array, shape (n,)
            Their numbers.
        ranking : Ranking
            Of the model, for these rows.
        ids : sequence of str, optional
            What the file calls these rows.
        known_terms : int64 array, shape (n,), optional
            Of rows with a text: how many different terms of it the model knows.

        Returns
        -------
        Table
            ``id`` where there are any, the answer's columns, ``model``, ``row``, and what else is known of the answer;
            see BatchPredictRequest.
        """
        columns: dict[str, Any] = {} if ids is None else {"id": pa.array(ids, pa.string())}
        if not self._by_cost:  # costs are expected by the probabilities of all labels
            ranking = among_allowed(ranking, self._allowed)
        if ranking.sets is not None:
            answers, more = self._sets(ranking, ranking.sets.tocsr())
        else:
            answers, more = self._labels(ranking)
        columns |= answers | {"model": pa.array([self._model] * len(rows), pa.string()), "row": pa.array(rows)} | more
        return pa.table(columns if known_terms is None else columns | {"known_terms": pa.array(known_terms)})

    def _labels(self, ranking: Ranking) -> tuple[dict[str, Any], dict[str, Any]]:
        """The columns of the labels, and those of their scores and paths."""
        decided = least_cost(self._loaded.model, ranking.values, self._top_k, self._allowed) if self._by_cost else None
        order = _order(ranking, self._top_k) if decided is None else decided.classes
        scores = np.take_along_axis(ranking.values, order, axis=1).astype(np.float64)
        columns: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for place in range(order.shape[1]):
            suffix = "" if place == 0 else f"_{place + 1}"
            score = scores[:, place]
            never = np.isneginf(score)  # classes that are never an answer
            at = pa.array(order[:, place], mask=never)
            columns[f"label{suffix}"] = self._classes.take(at)
            if place == 0:
                columns["notation"] = self._notations.take(at)
            columns[f"name{suffix}"] = self._names.take(at)
            said = np.minimum(np.exp(score), 1.0) if ranking.tells_probabilities else np.zeros(len(score))
            unsaid = never | (not ranking.tells_probabilities)
            columns[f"probability{suffix}"] = pa.array(said, mask=unsaid)
            if place == 0:
                columns |= self._sure(order[:, 0], ranking.values, np.minimum(np.exp(score), 1.0))
            if decided is not None:
                columns[f"expected_cost{suffix}"] = pa.array(decided.costs[:, place])
            more[f"score{suffix}"] = pa.array(score, mask=~np.isfinite(score))
        if self._loaded.tree is not None:
            more["path"] = self._paths.take(pa.array(order[:, 0]))
        return columns, more

    def _sure(self, first: NDArray[np.int64], values: AnyFloats, said: AnyFloats) -> dict[str, Any]:
        n, model = len(first), self._loaded.model
        if self.used is None:
            return {"sure": pa.nulls(n, pa.bool_()), "sure_ancestor": pa.nulls(n, pa.string())}
        if model.back_off is None:
            return {"sure": pa.array(said >= self.used.threshold), "sure_ancestor": pa.nulls(n, pa.string())}
        nodes, _ = sure_nodes(model, values, first, self.used)
        labels = [model.classes[label] for label in first.tolist()]
        sure = [node == label for node, label in zip(nodes, labels, strict=True)]
        above = [None if is_sure else node for node, is_sure in zip(nodes, sure, strict=True)]
        return {"sure": pa.array(sure), "sure_ancestor": pa.array(above, pa.string())}

    def _sets(self, ranking: Ranking, sets: sp.csr_matrix) -> tuple[dict[str, Any], dict[str, Any]]:
        found = labels_of_sets(self._loaded, ranking, self.used, self._allowed)
        nodes, n_rows, n = pa.array(found.nodes), sets.shape[0], len(found.nodes)
        probable, asked = self._loaded.model.set_reliability is not None, self.used is not None
        above = self._classes.take(pa.array(found.sure_ancestors, mask=found.sure_ancestors < 0))
        lists = {
            "labels": self._classes.take(nodes),
            "notations": self._notations.take(nodes),
            "names": self._names.take(nodes),
            "probabilities": pa.array(expit(found.scores)) if probable else pa.nulls(n, pa.float64()),
            "sure": pa.array(found.sure) if asked else pa.nulls(n_rows, pa.list_(pa.bool_())),
            "sure_ancestors": above if asked else pa.nulls(n_rows, pa.list_(pa.string())),
        }
        columns = {
            name: values if pa.types.is_list(values.type) else _lists(found.indptr, values)
            for name, values in lists.items()
        }
        more = {"scores": _lists(found.indptr, pa.array(found.scores))}
        if self._loaded.tree is not None and self._loaded.tree.depth > 1:
            more["paths"] = _lists(found.indptr, self._paths.take(nodes))
        if self._top_k > 1:
            indptr, others, scores = self._others(ranking.values, sets, np.diff(found.indptr))
            said = pa.array(expit(scores)) if probable else pa.nulls(len(scores), pa.float64())
            columns["alternatives"] = _lists(indptr, self._classes.take(pa.array(others)))
            columns["alternative_names"] = _lists(indptr, self._names.take(pa.array(others)))
            columns["alternative_probabilities"] = _lists(indptr, said)
            more["alternative_scores"] = _lists(indptr, pa.array(scores))
        return columns, more

    def _others(self, values: AnyFloats, sets: sp.csr_matrix, n_answered: Ints) -> tuple[Ints, Ints, Floats]:
        """The best labels that are not in each set, up to ``top_k`` with those that are answered, and their scores.

        The first array says where the labels of each row begin.
        """
        left = np.array(values, np.float64)
        left[sets.nonzero()] = -np.inf
        if self._allowed is not None:
            left[:, ~self._allowed] = -np.inf
        order, found = best(left, self._top_k)
        scores = np.asarray(found, np.float64)
        listed = np.isfinite(scores) & (np.arange(order.shape[1]) < (self._top_k - n_answered)[:, None])
        return np.concatenate([[0], np.cumsum(listed.sum(axis=1))]), order[listed], scores[listed]

    @cached_property
    def _notations(self) -> pa.Array:
        return pa.array([self._notation(label) for label in self._loaded.model.classes], pa.string())

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array([self._name(label) for label in self._loaded.model.classes], pa.string())

    @cached_property
    def _paths(self) -> pa.Array:
        return pa.array([self._loaded.path(label) for label in self._loaded.model.classes], pa.list_(pa.string()))

    def _notation(self, label: str) -> str | None:
        found: str | None = self._loaded.labels.shown.get(label, _NO_FACTS).get("notation")
        return found

    def _name(self, label: str) -> str | None:
        names: Mapping[str, str] = self._loaded.labels.shown.get(label, _NO_FACTS).get("names") or {}
        return display_name(names, self._language)


def _lists(indptr: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(indptr, pa.int32()), values)


def _order(ranking: Ranking, top_k: int) -> NDArray[np.int64]:
    first = ranking.first()[:, None]
    if top_k == 1:
        return first
    if ranking.ties is None:
        order, _ = best(ranking.values, top_k + 1)
    else:
        order = np.lexsort((-ranking.ties, -ranking.values), axis=1)
    listed = order[:, : top_k + 1]
    # the prediction may be found by another way than the order, and come first all the same
    others = np.sort(np.where(listed == first, listed.shape[1], np.arange(listed.shape[1])), axis=1)[
        :, : listed.shape[1] - 1
    ]
    rest = np.take_along_axis(listed, others.clip(max=listed.shape[1] - 1), axis=1)
    return np.hstack([first, rest])[:, : min(top_k, ranking.values.shape[1])]
