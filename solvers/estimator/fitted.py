"""What a fitted classifier answers."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from solvers.core.certain_answers import certain
from solvers.core.model import Model
from solvers.estimator.input import are_sets, indicators_of, narrowed, sets_of_indicators, texts_of
from solvers.labels.label_sets import names_of, of_names
from solvers.numerics.array_types import AnyFloats, Array, Bools, Floats
from solvers.registry import SOLVERS, find


class FittedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers of the model that training has left.

    Attributes
    ----------
    solver : str
    classes_ : array, shape (n_classes,)
    model_ : solvers.core.model.Model
    texts_ : object
        What makes rows of texts; with a vocabulary only.
    """

    solver: str
    texts_: Any
    classes_: Array
    model_: Model

    def decision_function(self, X: Any) -> AnyFloats:
        """Scores, shape (n_samples, n_classes); for two classes those of the second, shape (n_samples,).

        For two classes they are the difference of both scores, of machines with absolute margins (``one_vs_rest``,
        ``lee_lin_wahba``, ...) half of it, so that the loss of an example vanishes at 1 and -1.

        Over a label tree these are the scores of its nodes, which lead to a label by the model's own rule. Of methods
        over sets of labels they are margins, positive for the labels of the predicted set.
        """
        X = self._rows(X)
        scores = self.model_.scores(X)
        return (scores[:, 1] - scores[:, 0]) / self._lead if self._is_binary else scores

    @available_if(lambda self: _tells_probabilities(self.solver))
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, shape (n_samples, n_classes); of ``auto`` and ``softmax`` alone.

        Those of sets of labels are of each node for itself, and do not add up to one.

        Those of ``auto`` are fitted to rows that it held out, and are honest about rows like these. Those of
        ``softmax`` are what its objective makes of the training rows.
        """
        X = self._rows(X)
        scores = np.asarray(self.model_.scores(X), np.float64)
        return np.asarray(softmax(scores, axis=1) if self.model_.tree is None else expit(scores))

    def predict(self, X: Any) -> Any:
        """Labels of the largest score, shape (n_samples,); over a label tree those that the model's rule leads to.

        Methods over sets of labels return a list of lists, labels after those above them.
        """
        check_is_fitted(self)
        if self.model_.tree is not None:
            X = self._rows(X)
            named = self._sets(X)
            if named is None:
                return np.asarray(self.classes_[self.model_.predict(X)])
            form = getattr(self, "indicators_", None)
            return named if form is None else indicators_of(named, form)
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def certain(self, X: Any) -> Bools:
        """Which examples the exact optimum gives the same label, bool, shape (n_samples,); False says nothing.

        See :mod:`solvers.core.certain_answers`.

        Raises
        ------
        AttributeError
            The gap of the method does not bound its answers, or training has ended without one.
        """
        X = self._rows(X)
        if self.model_.reach is None:
            raise AttributeError(f"{self.solver} has no gap that bounds its answers, or stopped without one")
        return certain(self.model_, X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of examples whose label, or whose set of labels with all above them, is predicted right."""
        check_is_fitted(self)
        tree = self.model_.tree
        if tree is None or not find(self.solver).handles.multilabel:
            return float(super().score(X, y, sample_weight))
        form = getattr(self, "indicators_", None)
        if form is not None:
            y = sets_of_indicators(y, list(getattr(y, "columns", form[1])))
        sets = y if are_sets(y) else [[label] for label in y]
        true, _ = of_names(tree, [[str(label) for label in labels] for labels in sets])
        said = [[str(label) for label in labels] for labels in self._sets(self._rows(X)) or ()]
        right = [a == b for a, b in zip(names_of(tree, true), said, strict=True)]
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    @property
    def coef_(self) -> AnyFloats:
        """Weights, one row a class; for two classes one row, from which :meth:`decision_function` follows."""
        check_is_fitted(self)
        if not hasattr(self.model_, "coef"):
            raise AttributeError(f"{self.solver} has no coef_: its model is not linear")
        coef = np.asarray(self.model_.coef)
        return (coef[1:] - coef[:1]) / self._lead if self._is_binary else coef

    @property
    def intercept_(self) -> AnyFloats:
        """What is added to the scores, one number a class; for two classes one number."""
        check_is_fitted(self)
        if not hasattr(self.model_, "intercept"):
            raise AttributeError(f"{self.solver} has no intercept_")
        given = self.model_.intercept
        intercept = np.zeros(len(self.classes_)) if given is None else np.asarray(given)
        return (intercept[1:] - intercept[:1]) / self._lead if self._is_binary else intercept

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of what the model's weak learners weigh."""
        check_is_fitted(self)
        if not hasattr(self.model_, "importances"):
            raise AttributeError(f"{self.solver} has no feature_importances_")
        return np.asarray(self.model_.importances)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Labels after each round of boosting, shape (n_samples,) each; the last are those of :meth:`predict`."""
        check_is_fitted(self)
        if not hasattr(self.model_, "staged_scores"):
            raise AttributeError(f"{self.solver} has no staged results: it does not train in rounds")
        for scores in self.model_.staged_scores(self._rows(X)):
            yield np.asarray(self.classes_[scores.argmax(axis=1)])

    def _sets(self, X: sp.csr_matrix) -> list[list[Any]] | None:
        """The labels of each row, after those above them; None of a model that has one label per row."""
        sets = self.model_.predict_sets(X)
        if sets is None:
            return None
        return [self.classes_[sets.indices[a:b]].tolist() for a, b in itertools.pairwise(sets.indptr.tolist())]

    def _rows(self, X: Any) -> sp.csr_matrix:
        check_is_fitted(self)
        if getattr(self, "vocabulary", None) is not None:
            # a model that reads terms alone has no columns of names
            return sp.csr_matrix(self.texts_.transform(texts_of(X))[:, : self.model_.n_features])
        return sp.csr_matrix(narrowed(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)))

    @property
    def _lead(self) -> float:
        """By how much one of two scores leads where the loss of an example vanishes."""
        return find(self.solver).lead

    @property
    def _is_binary(self) -> bool:
        return len(self.classes_) == 2 and self.model_.tree is None


def _tells_probabilities(method: str) -> bool:
    return method in SOLVERS and SOLVERS[method].handles.probabilities
