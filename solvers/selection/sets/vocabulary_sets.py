"""What a search measures and makes of a model that ranks all concepts of a vocabulary.

Its probabilities and sets are its own, so that nothing is fitted to the rows held out. The scores of all rows and
concepts are not kept: most concepts of a row have one of a few log-odds, and such pairs are one line of a table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.label_sets import own_labels
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.ranking import places
from solvers.numerics.array_types import Floats32, Ints32
from solvers.selection.held_out import SET_MEASURES, Fold, Measure
from solvers.selection.pooling import Pool
from solvers.selection.sets.set_calibration import mean_ndcg
from solvers.selection.sets.set_curve import Curve, log_loss
from solvers.selection.tasks import Choice, Scores

# columns of a table: the place of an own label in the ranking, from 1, and -1 of all other pairs; the rest of pairs
_PLACE, _LOG_ODDS, _COUNT, _TRUE, _PREDICTED = range(5)
# numbers of a row in the sense of memory, about: it has some 200 lines, of which five numbers each are kept
_NUMBERS = 600
_ROWS = 64


class VocabularySets:
    """Sets of labels of a vocabulary, by one model that has probabilities and sets of its own.

    Parameters
    ----------
    problem : Problem
        All rows, and all concepts.
    """

    measures: tuple[Measure, ...] = SET_MEASURES

    def __init__(self, problem: Problem, folds: Sequence[Fold]) -> None:
        sets = problem.label_sets()
        self._labels = [sp.csr_matrix(sets[fold.held_out]) for fold in folds]
        self._own = [own_labels(labels, problem.tree.parents) for labels in self._labels]
        for labels in (*self._labels, *self._own):
            labels.sort_indices()

    def member(self, solver: Solver[Any], problem: Problem, state: State) -> Model:
        return solver.bare_model(problem, state)

    def n_scores(self, n_rows: int) -> int:
        return n_rows * _NUMBERS

    def scores(self, model: Model, X: sp.csr_matrix, fold: int) -> Floats32:
        labels, own = self._labels[fold], self._own[fold]
        tables = [np.empty((0, 5), np.float32)]
        for begin in range(0, X.shape[0], _ROWS):
            some = slice(begin, begin + _ROWS)
            ranking, mine = model.ranking(X[some]), own[some]
            assert ranking.sets is not None
            place = places(ranking.values, mine.indptr, mine.indices)
            closed = ranking.values if ranking.set_scores is None else ranking.set_scores
            for k, predicted in enumerate(ranking.sets.toarray()):
                of_row = slice(mine.indptr[k], mine.indptr[k + 1])
                true = labels[begin + k].indices
                tables.append(_table(closed[k], predicted, true, mine.indices[of_row], place[of_row]))
        return np.concatenate(tables)

    def measured(self, scores: Scores) -> list[float]:
        counts, true, predicted = scores[:, _COUNT].astype(np.int64), scores[:, _TRUE] > 0, scores[:, _PREDICTED] > 0
        pairs = Pairs(scores[:, _LOG_ODDS].astype(np.float64), true, counts, np.empty(0))
        n_said, n_true = int(counts[predicted].sum()), int(true.sum())
        micro_f1 = 2.0 * int((true & predicted).sum()) / max(1, n_said + n_true)
        place, sizes = scores[:, _PLACE], np.concatenate([np.diff(each.indptr) for each in self._own])
        ndcg = mean_ndcg(place[place >= 0].astype(np.int64), sizes) if sizes.any() else 0.0
        return [micro_f1, Curve.from_pairs(pairs).average_precision, ndcg, -log_loss(pairs)]

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        values = self.measured(scores[best])
        found = {f"held_out_{name}": value for name, value in zip(self.measures, values, strict=True)}
        found["held_out_log_loss"] *= -1.0
        return Choice(Pool((best,), np.ones(1), found["held_out_log_loss"]), found, {})

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        return members[0]


def _table(log_odds: Any, predicted: Any, true: Ints32, own: Ints32, place: Ints32) -> Floats32:
    """One row's true labels, each on a line, and its other concepts, those of equal log-odds on one line."""
    others = np.ones(len(log_odds), bool)
    others[true] = False
    values, first, counts = np.unique(log_odds[others].astype(np.float32), return_index=True, return_counts=True)
    n = len(true)
    found = np.zeros((n + len(values), 5), np.float32)
    found[:, _PLACE] = -1.0
    found[np.searchsorted(true, own), _PLACE] = place
    found[:, _LOG_ODDS] = np.concatenate([log_odds[true], values])
    found[:, _COUNT] = np.concatenate([np.ones(n), counts])
    found[:n, _TRUE] = 1.0
    found[:, _PREDICTED] = np.concatenate([predicted[true], predicted[others][first]])
    return found
