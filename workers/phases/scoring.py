"""Measures of a model on one part of its data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from solvers.core.certain_answers import certain, certain_by_scores
from solvers.core.model import Model
from solvers.core.problem import ProblemError
from solvers.labels.costs import Costs
from solvers.labels.label_sets import of_nodes, own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.flat import flat
from solvers.metrics.frequency_bands import add_bands
from solvers.metrics.hierarchical import hierarchical
from solvers.metrics.intervals import RowSums
from solvers.metrics.multilabel import multilabel
from solvers.metrics.ranking import RankAccumulator, Ranking, places
from solvers.metrics.tree_places import tree_places
from solvers.numerics.array_types import Bools, Floats, Ints
from workers.phases.splitting import Rows, Truth

CHUNK_BYTES = 64 << 20
KS = (3, 5)
SET_KS = (1, 5, 10)


def measures(
    model: Model, rows: Rows, X_train: csr_matrix, X_test: csr_matrix, right: Bools | None = None
) -> dict[str, dict[str, float]]:
    """Part (train, test) -> measure -> value; nothing for a part without rows.

    Of models that predict one label: error, F1, the error of always answering the most frequent label of the training
    part, and how far down the list of labels the true one is: ``mrr``, and ``accuracy@3`` and ``accuracy@5`` of more
    labels. With a label tree also those along the tree, overall and for each level, as ``hierarchical`` and, of models
    that predict sets, ``multilabel`` have them; rows with sets of labels have no most frequent label. Test rows with
    sets also have measures of ranked lists, of models that rank own labels: of all labels, and by training rows of the
    labels.
    Of models with costs ``cost`` is what the answers cost on average, and of those with probabilities ``least_cost``
    what the answers of least expected cost do.
    Of models with a reach, ``certain`` is the share of the test rows that the exact optimum answers alike.

    Parameters
    ----------
    X_train, X_test : csr_matrix, shape (n_samples, n_features)
        Scored in chunks of rows whose scores take 64 MB.
    right : bool array, shape (n_train,), optional
        Training rows that the model is known to answer with their own label, before all others. These are not scored.
    """
    found: dict[str, dict[str, float]] = {}
    parts = ("train", X_train, rows.truth_train, right), ("test", X_test, rows.truth_test, None)
    for part, X, truth, known in parts:
        if X.shape[0] > 0:
            found[part] = _measure(model, rows, X, truth, known, is_test=part == "test")
    # along a tree; otherwise it is from the same scores
    if model.reach is not None and X_test.shape[0] > 0 and "certain" not in found["test"]:
        found["test"]["certain"] = float(certain(model, X_test).mean())
    if isinstance(rows.truth_test, csr_matrix) and X_test.shape[0] > 0:
        found["test"] |= _ranked(model, rows, X_test, rows.truth_test)
    return found


def require_finite(model: Model) -> None:
    """Raise ProblemError where weights have left the range of floats."""
    weights = model.linear_weights()
    if weights is None:
        return
    W = weights.W.data if isinstance(weights.W, sp.csr_matrix) else weights.W
    if not (_finite(W) and (weights.intercept is None or _finite(weights.intercept))):
        raise ProblemError("weights exceed the range of floats: divide the features by a constant, or lower C")


def _measure(
    model: Model, rows: Rows, X: csr_matrix, truth: Truth, right: Bools | None, *, is_test: bool
) -> dict[str, float]:
    tree, sets = rows.tree, model.predict_sets(X, CHUNK_BYTES)
    if isinstance(truth, csr_matrix):
        assert tree is not None
        assert sets is not None
        return multilabel(tree, truth, sets)
    majority = np.bincount(np.asarray(rows.truth_train)).argmax()
    found = {"majority_error": float(np.mean(truth != majority))}
    if tree is not None and sets is not None:
        return found | multilabel(tree, of_nodes(tree, truth), sets)
    if tree is None:
        return found | _listed(model, X, truth, right, counts_certain=is_test and model.reach is not None)
    return found | _along_tree(model, tree, X, truth, right)


class _Spent:
    """What answers cost, of models with costs; rows that are answered right cost nothing.

    Parameters
    ----------
    cost_of : callable
        The costs of classes as answers to some rows: both int arrays, shape (n_rows,).
    n_samples : int
    """

    def __init__(self, model: Model, cost_of: Callable[[Costs, Ints, Ints], Floats], n_samples: int) -> None:
        self._costs, self._cost_of, self._n = model.costs, cost_of, n_samples
        self._answers, self._decisions = 0.0, 0.0
        self._decides = False

    def add(self, rows: Ints, ranking: Ranking) -> None:
        """Take the answers to these rows."""
        if self._costs is None:
            return
        self._answers += float(self._cost_of(self._costs, rows, ranking.first()).sum())
        if ranking.tells_probabilities:
            expected = self._costs.expected(np.exp(ranking.values.astype(np.float64)))
            self._decisions += float(self._cost_of(self._costs, rows, expected.argmin(axis=1)).sum())
            self._decides = True

    def measures(self) -> dict[str, float]:
        """Mean costs of a row."""
        if self._costs is None:
            return {}
        found = {"cost": self._answers / self._n}
        return found | ({"least_cost": self._decisions / self._n} if self._decides else {})


def _ranked(model: Model, rows: Rows, X: csr_matrix, truth: csr_matrix) -> dict[str, float]:
    """Measures of ranked lists of own labels."""
    assert rows.tree is not None
    if rows.tree.depth > 1 and not model.ranks_own:
        return {}
    assert isinstance(rows.truth_train, csr_matrix)
    n_training = np.asarray(own_labels(rows.truth_train, rows.tree.parents).sum(axis=0), np.int64).ravel()
    own, ranks = own_labels(truth, rows.tree.parents), RankAccumulator()
    step = max(1, CHUNK_BYTES // (8 * len(model.classes)))
    for begin in range(0, X.shape[0], step):
        ranking, some = model.ranking(X[begin : begin + step]), own[begin : begin + step]
        ranks.add(ranking.values, some, ranking.ties)
    placed, sums = ranks.placed(), RowSums()
    placed.add_to(sums, ks=SET_KS, sets=True)
    row = np.repeat(np.arange(X.shape[0]), np.diff(placed.indptr))
    add_bands(sums, placed.places, row, X.shape[0], n_training[own.indices])
    found = zip(sums.measures, sums.of_all().tolist(), strict=True)
    return {measure.name: value for measure, value in found if not measure.name.startswith("accuracy@")}


def _along_tree(
    model: Model, tree: Taxonomy, X: csr_matrix, truth: NDArray[np.int32], right: Bools | None
) -> dict[str, float]:
    """The measures of single labels in a label tree, from one pass over the scores."""
    of_class = np.arange(tree.n_nodes) if model.classes == tree.names else tree.find(model.classes)
    step, scored = max(1, CHUNK_BYTES // (8 * len(model.classes))), _scored(len(truth), right)
    nodes, place = truth.astype(np.int64), np.ones(len(truth), np.int32)
    class_of = np.full(tree.n_nodes, -1)
    class_of[of_class] = np.arange(len(of_class))

    def cost_of(costs: Costs, rows: Ints, answers: Ints) -> Floats:
        return costs.between_nodes(tree, class_of, truth[rows], of_class[answers])

    spent = _Spent(model, cost_of, len(truth))
    for begin in range(0, len(scored), step):
        rows = scored[begin : begin + step]
        ranking = model.ranking(X[rows])
        nodes[rows] = of_class[ranking.first()]
        spent.add(rows, ranking)
        one_each = np.arange(len(rows) + 1)
        place[rows], _ = tree_places(tree, of_class, ranking.values, ranking.ties, one_each, truth[rows])
    return hierarchical(tree, truth, nodes) | _of_places(truth, place, len(model.classes)) | spent.measures()


def _of_places(truth: NDArray[np.int32], place: NDArray[np.int32], n_classes: int) -> dict[str, float]:
    ranks = RankAccumulator()
    ranks.add_placed(truth, place)
    reported = ranks.measures(tuple(k for k in KS if k < n_classes))
    return {name: value for name, value in reported.items() if name == "mrr" or name.startswith("accuracy@")}


def _listed(
    model: Model, X: csr_matrix, truth: NDArray[np.int32], right: Bools | None, *, counts_certain: bool
) -> dict[str, float]:
    """The measures without a label tree, from one pass over the scores."""
    step, scored = max(1, CHUNK_BYTES // (8 * len(model.classes))), _scored(len(truth), right)
    predicted, place = truth.astype(np.int64), np.ones(len(truth), np.int32)
    n_certain = 0
    spent = _Spent(model, lambda costs, rows, answers: costs.between(truth[rows], answers), len(truth))
    for begin in range(0, len(scored), step):
        rows = scored[begin : begin + step]
        some = X[rows]
        ranking = model.ranking(some)
        if counts_certain:
            n_certain += int(certain_by_scores(model, some, ranking.values).sum())
        predicted[rows] = ranking.first()
        spent.add(rows, ranking)
        place[rows] = places(ranking.values, np.arange(len(rows) + 1), truth[rows], ranking.ties)
    kept = _of_places(truth, place, len(model.classes))
    if counts_certain:
        kept["certain"] = n_certain / len(truth)
    return flat(truth, predicted, len(model.classes)) | kept | spent.measures()


def _scored(n: int, right: Bools | None) -> Ints:
    return np.arange(n) if right is None else np.flatnonzero(~right)


def _finite(array: Any) -> bool:
    rows = max(1, (1 << 22) // max(1, array[:1].size))
    return all(bool(np.isfinite(array[at : at + rows]).all()) for at in range(0, len(array), rows))
