"""Every method behind one scikit-learn classifier."""

import reprlib
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic.fields import FieldInfo
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from solvers.core.base import Params, ParamsError, Solver, State, Step, relative_gap
from solvers.core.certain_training import certified_model
from solvers.core.problem import Problem
from solvers.estimator.fitted import FittedClassifier
from solvers.estimator.input import (
    are_sets,
    indicator_form,
    narrowed,
    node_labels,
    plain,
    require_own_labels,
    sets_of_indicators,
    texts_of,
    tree_of,
)
from solvers.labels.given import kept_weights, require_labels
from solvers.labels.label_sets import of_names
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.number_scales import scales_of, why_scaled
from solvers.registry import SOLVERS, find, parse_params
from solvers.selection.whole_path import WholePath

# parameters of the estimator itself
_OWN = ("hierarchy", "vocabulary", "threads", "seed")


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
    solver : str
        A name of ``solvers.registry.SOLVERS``. The older name of this parameter, ``method``, is accepted with a
        DeprecationWarning.
    hierarchy : list of (parent, child), optional
        The label tree, its top called ``root``; labels are its nodes. Methods that take no tree leave it aside. Methods
        over sets of labels learn a list of labels for each example, and predict one; a label implies all above it.
    vocabulary : polymargin.Vocabulary, optional
        Concepts with names. ``X`` is then a list of texts and ``y`` a list of sets of concepts, and methods that take
        names, ``subjects`` and ``auto``, also predict concepts that no example has.
    threads : int
        Threads that training may use; the result does not depend on it.
    seed : int
        Decides the order in which examples are visited.
    **params
        Parameters of the solver (``C``, ``tol``, ...); those left out have the solver's defaults. They can be read and
        set like all others, so that grid searches work. The keys of ``class_weight`` and ``costs`` are labels as ``y``
        has them.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        For methods over a label tree all its nodes, level by level.
    orphans_ : solvers.labels.label_sets.Orphans
        Labels of sets that came without their parents, which were added; sets of labels only.
    indicators_ : tuple of (str, list), or None
        ``dense`` or ``sparse``, and the labels of the columns, where y was an indicator matrix.
    n_features_in_ : int
        Not of texts.
    model_ : solvers.core.model.Model
    coef_ : array, shape (n_classes, n_features), or (1, n_features) for two classes; linear models only
    intercept_ : array, shape (n_classes,), or (1,) for two classes
        Zeros where ``bias`` is 0.
    feature_importances_ : array, shape (n_features,)
        Shares of the weights of weak learners; boosting only.
    history_ : list of Record
    path_ : dict
        After :meth:`fit_every_c`.
    gap_ : float
        Relative duality gap (primal - dual) / primal of the model; nan for methods without a certificate.
    n_iter_ : int
        Epochs.
    """

    def __init__(
        self,
        solver: str = "auto",
        *,
        hierarchy: Sequence[tuple[Any, Any]] | None = None,
        vocabulary: Any = None,
        threads: int = 1,
        seed: int = 0,
        **params: Any,
    ) -> None:
        self.solver = _renamed(params, solver)
        self.hierarchy = hierarchy
        self.vocabulary = vocabulary
        self.threads = threads
        self.seed = seed
        for name, value in params.items():
            setattr(self, name, value)
        self._given = tuple(params)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The solver, and the parameters that differ from their defaults."""
        defaults = {"hierarchy": None, "vocabulary": None, "threads": 1, "seed": 0}
        defaults |= {name: field.default for name, field in self._fields().items()}
        given = self.get_params(deep=False).items()
        changed = ((name, value) for name, value in given if name != "solver")
        shown = (f"{name}={reprlib.repr(value)}" for name, value in changed if repr(value) != repr(defaults.get(name)))
        return f"{type(self).__name__}({', '.join([repr(self.solver), *shown])})"[:N_CHAR_MAX]

    @property
    def method(self) -> str:
        """The older name of ``solver``."""
        _warn_of_method(stacklevel=3)
        return self.solver

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name, those of the method included."""
        own = {name: getattr(self, name) for name in ("solver", *_OWN)}
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
        self.solver = params.pop("solver", _renamed(params, self.solver))
        for name in _OWN:
            if name in params:
                setattr(self, name, params.pop(name))
        known = self._fields()
        for name, value in params.items():
            if known and name not in known:
                raise ValueError(f"{self.solver} has no parameter {name!r:.80}; it has {', '.join(known)}")
            setattr(self, name, value)
        kept = [name for name in self._given if name in known or not known]
        self._given = tuple(dict.fromkeys(kept + list(params)))
        return self

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "PolymarginClassifier":
        """Train.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features), or with a vocabulary a sequence of str
        y : array, shape (n_samples,), or list of lists, or indicator matrix, shape (n_samples, n_labels)
            Labels of any kind that sorts; or for each example a list of labels of the tree, which may be empty. The
            labels of an indicator matrix are the numbers of its columns, of a data frame their names, and predictions
            are such a matrix, with the same columns.
        sample_weight : array, shape (n_samples,), optional
            What each example's loss is multiplied by; examples of weight 0 are left out.

        Raises
        ------
        ParamsError
            A parameter is unknown or out of its bounds.
        ProblemError
            The data cannot be trained on.

        Warns
        -----
        UserWarning
            The columns' standard deviations, or the numbers' sizes, are such that the service scales them by default.
        ConvergenceWarning
            Training ended above ``tol``.
        """
        problem = self._problem(X, y, sample_weight)
        machine = find(self.solver)(self._parsed(), seed=self.seed, threads=self.threads)
        if problem.names is None:
            self._warn_of_scales(machine, problem)
        elif not machine.takes_names(sets=True, named=True):
            problem = problem.of_terms
        self._train(machine, problem)
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
            raise ValueError("Cs is empty; give at least one C")
        fitted: dict[float, PolymarginClassifier] = {C: clone(self).set_params(C=C) for C in wanted}
        first = fitted[wanted[0]]
        problem = first._problem(X, y, sample_weight)
        for other in fitted.values():
            for name in ("classes_", "indicators_", "n_features_in_", "feature_names_in_"):
                if hasattr(first, name):
                    setattr(other, name, getattr(first, name))
            other._parsed()

        machines = find(self.solver)(first._parsed(), seed=self.seed, threads=self.threads).at_each(wanted)
        state = fitted[machines[0].params.C]._train(machines[0], problem)
        for before, machine in pairwise(machines):
            state = machine.rescaled(problem, state, before.params.C)
            state = fitted[machine.params.C]._train(machine, problem, state)
        return [fitted[C] for C in wanted]

    def fit_every_c(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eps: float = 0.01,
        low: float = 1e-4,
        high: float = 1e4,
        fraction: float = 0.2,
    ) -> "PolymarginClassifier":
        """Train for every C of a range, and at the one with the fewest errors on held-out rows again on all rows.

        C becomes that of the model, whose gap on all rows, ``gap_``, is at most ``tol`` and at most ``eps``. ``path_``
        has the path: its ``models``; the ``edges`` of cells of C with the ``errors`` of the models there, and between
        which numbers, ``least_errors`` and ``most_errors``, those of the exact optimum are at every C of the cell;
        ``bound``, below which no C of the range can have fewer.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        eps : float
            The relative duality gap that is certified at every C, and on all rows at the chosen one.
        low, high : float
            The range of C.
        fraction : float
            Of the rows, by class, that are held out to choose C.

        Raises
        ------
        TypeError
            The method has no gap that bounds what is between two values of C.
        ParamsError, ProblemError
            As for :meth:`fit`.
        """
        problem = self._problem(X, y, sample_weight)
        solver = find(self.solver)(self._parsed(), seed=self.seed, threads=self.threads)
        if not (solver.has_path and solver.bounds_answers):
            raise TypeError(f"{self.solver} has no gap that bounds what is between two values of C")
        self._warn_of_scales(solver, problem)
        path = WholePath(solver, eps=eps, low=low, high=high, fraction=fraction)
        state = self._train(path, problem)
        self.path_: dict[str, Any] = self.model_.record["path"]
        return self.set_params(C=path.chosen(state).params.C)

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Problem:
        """The problem to be trained on; the classes are known afterwards."""
        self.indicators_ = indicator_form(y) if find(self.solver).handles.multilabel else None
        if self.indicators_ is not None:
            y = sets_of_indicators(y, self.indicators_[1])
        takes_sets = are_sets(y) and find(self.solver).handles.multilabel
        if self.vocabulary is not None and not takes_sets:
            raise ValueError("a vocabulary needs a method over sets of labels, and a list of labels for each text")
        if takes_sets:
            return self._problem_of_sets(X, y, sample_weight)
        require_labels(y)
        X, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        X = narrowed(X)
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
        if find(self.solver).handles.tree:
            self.classes_ = node_labels(tree, self.hierarchy, dict(zip(names, self.classes_.tolist(), strict=True)))
        return problem

    def _problem_of_sets(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Problem:
        if self.vocabulary is None:
            X = narrowed(validate_data(self, X, accept_sparse="csr", dtype=np.float64))
        else:
            X = np.array(texts_of(X), object)
        sets = [list(labels) for labels in y]
        if len(sets) != X.shape[0]:
            raise ValueError(f"y has {len(sets)} lists of labels; X has {X.shape[0]} rows")
        keep, weights = kept_weights(sample_weight, (len(sets),))
        known = {str(label): label for labels in sets for label in labels}
        if self.vocabulary is not None:
            known = {concept: concept for concept in self.vocabulary.names} | known
        tree = Taxonomy.flat(sorted(known)) if self.hierarchy is None else tree_of(self.hierarchy)
        named = [[str(label) for label in labels] for labels, kept in zip(sets, keep, strict=True) if kept]
        labels, self.orphans_ = of_names(tree, named)
        X, names = X[keep], None
        if self.vocabulary is not None:
            self.texts_, X, names = self.vocabulary.fit(X.tolist(), tree.names)
        problem = replace(Problem.check_sets(X, labels, tree, weights), names=names)
        self.classes_ = node_labels(tree, self.hierarchy, known)
        return problem

    def _warn_of_scales(self, machine: Solver[Any], problem: Problem) -> None:
        """Warn of numbers that the service would scale by default, where the method does not scale columns itself."""
        if machine.takes_kernel_values or machine.column_scaling == "none":
            return
        found = scales_of(problem.X)
        names = [str(each) for each in getattr(self, "feature_names_in_", range(problem.X.shape[1]))]
        least, most = (None if each is None else (names[each.column], each.deviation) for each in found[1:])
        reason = why_scaled(found.largest, least, most)
        if reason is not None:
            warnings.warn(
                f"{reason}; put a StandardScaler in front, as the service does by default", UserWarning, stacklevel=3
            )

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
                f"{self.solver} has ended at a relative duality gap of {gap:.2g}, above its tol: raise "
                "max_epochs, scale the data, or use a smaller C",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.model_ = certified_model(solver, problem, last.state, last.primal, last.dual)
        self.gap_ = relative_gap(last.primal, last.dual)
        self.n_iter_ = last.epoch
        return last.state

    def _parsed(self) -> Params:
        """The parameters given, checked, as the method takes them: labels by their names."""
        params = {name: getattr(self, name) for name in self._given}
        weights = params.get("class_weight")
        if isinstance(weights, Mapping):
            require_own_labels(weights, self.classes_.tolist())
            # 1, 1.0 and True are one key of a mapping, as they are one label
            names = {label: str(label) for label in self.classes_.tolist()}
            params["class_weight"] = {names.get(label, str(label)): plain(weights[label]) for label in weights}
        costs = params.get("costs")
        if isinstance(costs, Mapping):
            params["costs"] = {
                str(label): {str(answer): plain(cost) for answer, cost in answers.items()}
                for label, answers in costs.items()
            }
        parsed = parse_params(self.solver, params)
        if isinstance(costs, Mapping):
            fault = parsed.label_faults(map(str, self.classes_)).get("costs")
            if fault is not None:
                raise ParamsError([("/costs", fault)])
        return parsed

    def _fields(self) -> dict[str, FieldInfo]:
        """The method's parameters; none while the method is unknown, which only ``fit`` complains of."""
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else None
        return {} if solver is None else solver.Params.model_fields

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags


def _renamed(params: dict[str, Any], solver: str) -> str:
    """The solver that ``method``, which is removed from the parameters, names; the one given where it is absent."""
    if "method" not in params:
        return solver
    _warn_of_method(stacklevel=4)
    return str(params.pop("method"))


def _warn_of_method(stacklevel: int) -> None:
    words = "method is called solver now: PolymarginClassifier(solver=...)"
    warnings.warn(words, DeprecationWarning, stacklevel=stacklevel)


def _record(step: Step, seconds: float) -> Record:
    bounds = step.primal, step.dual, step.gap
    return Record(step.epoch, *bounds, step.violation, step.converged, seconds, dict(step.measures))
