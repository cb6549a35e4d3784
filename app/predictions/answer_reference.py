"""How a version answers to rows that were held out from its training: what later answers are compared with.

A version keeps this for itself, in the manifest of its model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Model

KEPT = "answers"
MOST_ROWS, N_BINS = 20_000, 10
_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True)
class AnswerReference:
    """Counts of the first answers to held-out rows.

    Attributes
    ----------
    edges : tuple of float
        Where the next bin of scores begins, ascending: deciles of the held-out answers' scores, no two alike.
    scores : tuple of int
        Answers in each bin: one more than edges.
    labels : mapping of str to int
        Answers with each label; labels that were never answered are not there.
    """

    edges: tuple[float, ...]
    scores: tuple[int, ...]
    labels: Mapping[str, int]

    def kept(self) -> dict[str, Any]:
        """As JSON."""
        return {"edges": list(self.edges), "scores": list(self.scores), "labels": dict(self.labels)}


def answer_reference(model: Model, X: sp.csr_matrix) -> AnswerReference | None:
    """What a model answers to rows of features; of many rows a sample, evenly through them. None where there are none.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MOST_ROWS)).astype(np.int64))
    step = max(1, _BLOCK_BYTES // (8 * len(model.classes)))
    firsts, scores = [], []
    for begin in range(0, len(rows), step):
        ranking = model.ranking(X[rows[begin : begin + step]])
        first = ranking.first()
        firsts.append(first)
        scores.append(np.take_along_axis(np.asarray(ranking.values), first[:, None], axis=1)[:, 0])
    if not firsts:
        return None
    first, score = np.concatenate(firsts), np.concatenate(scores).astype(np.float64)
    known = np.isfinite(score)
    if not known.any():
        return None
    edges = np.unique(np.quantile(score[known], np.arange(1, N_BINS) / N_BINS))
    counts = np.bincount(np.searchsorted(edges, score[known], side="right"), minlength=len(edges) + 1)
    answered = np.bincount(first[known], minlength=len(model.classes))
    labels = {model.classes[c]: int(answered[c]) for c in np.flatnonzero(answered).tolist()}
    return AnswerReference(tuple(edges.tolist()), tuple(counts.tolist()), labels)


def of_details(details: Mapping[str, Any]) -> AnswerReference | None:
    """What a version kept; None of one that kept nothing, or nothing that can be read: it may come from elsewhere."""
    given = details.get(KEPT)
    if not isinstance(given, dict):
        return None
    edges, scores, labels = given.get("edges"), given.get("scores"), given.get("labels")
    if not (isinstance(edges, list) and isinstance(scores, list) and isinstance(labels, dict)):
        return None
    finite = all(isinstance(edge, float) and np.isfinite(edge) for edge in edges)
    counted = all(type(count) is int and count >= 0 for count in [*scores, *labels.values()])
    if not (finite and counted and edges == sorted(edges) and len(scores) == len(edges) + 1 and sum(scores) > 0):
        return None
    return AnswerReference(tuple(edges), tuple(scores), labels)
