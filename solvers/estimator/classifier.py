"""Every method behind one scikit-learn classifier."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic.fields import FieldInfo
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from solvers.core.base import Params, Solver, State, Step, relative_gap
from solvers.core.path import ascending, follow
from solvers.core.problem import Problem
from solvers.estimator.fitted import FittedClassifier
from solvers.estimator.input import are_sets, kept_weights, node_labels, plain, tree_of
from solvers.labels.label_sets import of_names
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS, find, parse_params


@dataclass(frozen=True)
class Record:
    """One step of the training's history, without its arrays; ``seconds`` since training began."""

    epoch: int
    primal: float
    dual: float
    gap: float
    violation: float
    converged: bool
    seconds: float
    measures: Mapping[str, float] = field(default_factory=dict)


class PolymarginClassifier(FittedClassifier):
    """A large-margin classifier, trained to a certified duality gap.

    Parameters
    ----------
    method : str
        A name of ``solvers.registry.SOLVERS``.
    hierarchy : list of (parent, child), optional
        The label tree, its top called ``root``; labels are its nodes. Methods that take no tree leave it aside. Methods
        over sets of labels learn a list of labels for each example, and predict one; a label stands for all above it.
    threads : int
        Threads that training may use; the result does not depend on it.
    seed : int
        Decides the order in which examples are visited.
    **params
        Parameters of the method (``C``, ``tol``, ...); those left out have the method's defaults. They can be read and
        set like all others, so that grid searches work. The keys of ``class_weight`` are labels as ``y`` has them.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        For methods over a label tree all its nodes, level by level.
    orphans_ : solvers.labels.label_sets.Orphans
        Labels of sets that came without their parents, which were added; sets of labels only.
    n_features_in_ : int
    model_ : solvers.core.model.Model
    coef_ : array, shape (n_classes, n_features), or (1, n_features) for two classes; linear models only
    intercept_ : array, shape (n_classes,), or (1,) for two classes
        Zeros where ``bias`` is 0.
    feature_importances_ : array, shape (n_features,)
        Shares of the weights of weak learners; boosting only.
    history_ : list of Record
    gap_ : float
        Relative duality gap (primal - dual) / primal of the model; nan for methods without a certificate.
    n_iter_ : int
        Epochs.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        hierarchy: Sequence[tuple[Any, Any]] | None = None,
        threads: int = 1,
        seed: int = 0,
        **params: Any,
    ) -> None:
        self.method = method
        self.hierarchy = hierarchy
        self.threads = threads
        self.seed = seed
        for name, value in params.items():
            setattr(self, name, value)
        self._given = tuple(params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name, those of the method included."""
        own = {"method": self.method, "hierarchy": self.hierarchy, "threads": self.threads, "seed": self.seed}
        defaults = {name: field.default for name, field in self._fields().items()}
        return own | {
            name: getattr(self, name, default) for name, default in (dict.fromkeys(self._given) | defaults).items()
        }

    def set_params(self, **params: Any) -> "PolymarginClassifier":
        """Change parameters; a new method keeps only those of the old one's that it has too.

        Raises
        ------
        ValueError
            A name is not a parameter of the method.
        """
        self.method = params.pop("method", self.method)
        for name in ("hierarchy", "threads", "seed"):
            if name in params:
                setattr(self, name, params.pop(name))
        known = self._fields()
        for name, value in params.items():
            if known and name not in known:
                raise ValueError(f"{self.method} has no parameter {name!r:.80}; it has {', '.join(known)}")
            setattr(self, name, value)
        kept = [name for name in self._given if name in known or not known]
        self._given = tuple(dict.fromkeys(kept + list(params)))
        return self

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "PolymarginClassifier":
        """Train.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
        y : array, shape (n_samples,), or list of lists
            Labels of any kind that sorts; or for each example a list of labels of the tree, which may be empty.
        sample_weight : array, shape (n_samples,), optional
            What each example's loss is multiplied by; examples of weight 0 are left out.

        Raises
        ------
        ParamsError
            A parameter is unknown or out of its bounds.
        ProblemError
            The data cannot be trained on.
        """
        problem = self._problem(X, y, sample_weight)
        self._train(find(self.method)(self._parsed(), seed=self.seed, threads=self.threads), problem)
        return self

    def path(
        self, X: Any, y: ArrayLike, Cs: Iterable[float], sample_weight: ArrayLike | None = None
    ) -> "list[PolymarginClassifier]":
        """Train for several C, each from the solution of the next smaller one, which takes fewer epochs than alone.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        Cs : iterable of float
            In any order.

        Returns
        -------
        list of PolymarginClassifier
            One fitted classifier for each of ``Cs``, in that order, with all other parameters of this one, which
            itself is left as it is. Those of equal C are one.

        Raises
        ------
        ValueError
            No C is given.
        TypeError
            The method has no path in C.
        ParamsError, ProblemError
            As for :meth:`fit`.
        """
        wanted = [float(C) for C in Cs]
        if not wanted:
            raise ValueError("Cs is empty; at least one C is needed")
        fitted: dict[float, PolymarginClassifier] = {C: clone(self).set_params(C=C) for C in wanted}
        first = fitted[wanted[0]]
        problem = first._problem(X, y, sample_weight)
        for other in fitted.values():
            for name in ("classes_", "n_features_in_", "feature_names_in_"):
                if hasattr(first, name):
                    setattr(other, name, getattr(first, name))
            other._parsed()

        machines = ascending(find(self.method)(first._parsed(), seed=self.seed, threads=self.threads), wanted)

        def train(_: int, at: Solver[Any], start: State | None) -> State:
            return fitted[at.params.C]._train(at, problem, start)

        follow(machines, problem, train)
        return [fitted[C] for C in wanted]

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Problem:
        """The problem to be trained on; the classes are known afterwards."""
        if are_sets(y) and find(self.method).handles.multilabel:
            return self._problem_of_sets(X, y, sample_weight)
        X, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=False)
        check_classification_targets(labels)
        keep, weights = kept_weights(sample_weight, labels.shape)
        X, labels = X[keep], labels[keep]
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class; at least two are needed")
        names = [str(label) for label in self.classes_]
        if self.hierarchy is None:
            return Problem.check(X, index, names, weights)
        tree = tree_of(self.hierarchy)
        problem = Problem.check(X, index, names, weights, tree)
        if find(self.method).handles.tree:
            self.classes_ = node_labels(tree, self.hierarchy, dict(zip(names, self.classes_.tolist(), strict=True)))
        return problem

    def _problem_of_sets(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Problem:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=False)
        sets = [list(labels) for labels in y]
        if len(sets) != X.shape[0]:
            raise ValueError(f"y has {len(sets)} lists of labels; X has {X.shape[0]} rows")
        keep, weights = kept_weights(sample_weight, (len(sets),))
        known = {str(label): label for labels in sets for label in labels}
        tree = Taxonomy.flat(sorted(known)) if self.hierarchy is None else tree_of(self.hierarchy)
        named = [[str(label) for label in labels] for labels, kept in zip(sets, keep, strict=True) if kept]
        labels, self.orphans_ = of_names(tree, named)
        problem = Problem.check_sets(X[keep], labels, tree, weights)
        self.classes_ = node_labels(tree, self.hierarchy, known)
        return problem

    def _train(self, solver: Solver[Any], problem: Problem, start: State | None = None) -> State:
        """Train to the end, from the start or another state; keep its history, and return the last state."""
        began = time.perf_counter()
        self.history_: list[Record] = []
        last: Step | None = None
        for last in solver.steps(problem, start):
            self.history_.append(_record(last, time.perf_counter() - began))
        assert last is not None, "a solver yields at least one step"
        # the rounds of boosting are a choice of the user's
        if solver.handles.certified and not last.converged and solver.parts != "weak learners":
            gap = relative_gap(last.primal, last.dual)
            warnings.warn(
                f"{self.method} has ended at a relative duality gap of {gap:.2g}, above its tol: raise "
                "max_epochs, scale the data, or take a smaller C",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.model_ = solver.model(problem, last.state)
        self.gap_ = relative_gap(last.primal, last.dual)
        self.n_iter_ = last.epoch
        return last.state

    def _parsed(self) -> Params:
        """The parameters given, checked, as the method takes them: labels by their names."""
        params = {name: getattr(self, name) for name in self._given}
        weights = params.get("class_weight")
        if isinstance(weights, Mapping):
            # 1, 1.0 and True are one key of a mapping, as they are one label
            names = {label: str(label) for label in self.classes_.tolist()}
            params["class_weight"] = {names.get(label, str(label)): plain(weights[label]) for label in weights}
        return parse_params(self.method, params)

    def _fields(self) -> dict[str, FieldInfo]:
        """The method's parameters; none while the method is unknown, which only ``fit`` complains of."""
        solver = SOLVERS.get(self.method) if isinstance(self.method, str) else None
        return {} if solver is None else solver.Params.model_fields

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags


def _record(step: Step, seconds: float) -> Record:
    bounds = step.primal, step.dual, step.gap
    return Record(step.epoch, *bounds, step.violation, step.converged, seconds, dict(step.measures))
