"""The best model that the data allow: methods and values of C tried on rows held out, and the best pooled.

Tried are flat machines, centroids, learnt label trees and kernel machines, or what is asked for. What comes out is a
log-linear pool of one model or several, whose coefficients are fitted to the held-out rows: its scores are logarithms
of probabilities. Each member is then trained on all rows, with its certificate. Of sets of labels one model is chosen,
with calibrated probabilities of its nodes and one threshold; or, where concepts have names, one that ranks all concepts
and has probabilities and sets of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Handles, Outline, ParamsError, Solver, State, Step
from solvers.core.cost_params import CostParams
from solvers.core.machine import ClassWeight, class_weights, unknown_labels
from solvers.core.methods import all_methods
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.labels.label_sets import own_labels
from solvers.labels.tree_part import TreePart
from solvers.numerics.array_types import Ints
from solvers.selection.all_rows import ChosenMembers
from solvers.selection.candidates import (
    MANY_CLASSES,
    Candidate,
    Family,
    check_families,
    default_families,
    families_of,
    has_many_labels,
)
from solvers.selection.held_out import MOST_SCORES, Fold, Measure, folds_of, held_out_rows
from solvers.selection.search import MEASURING_BYTES, Options, Search
from solvers.selection.sets.frequency_calibration import Trained
from solvers.selection.sets.label_sets import LabelSets
from solvers.selection.sets.own_labels import flat_problem, has_own_inner, ranked_labels
from solvers.selection.sets.set_thresholds import SetThresholds
from solvers.selection.sets.vocabulary_sets import VocabularySets
from solvers.selection.single_labels import SingleLabels
from solvers.selection.tasks import View, Views

# of many labels one in so many is in the sketches
SOME_LABELS = 4
# rows held out that rank the sketches
SKETCH_HELD_OUT = 500


class AutoParams(CostParams):
    """Parameters of :class:`Auto`."""

    measure: Measure | None = Field(
        default=None,
        description="Measure on held-out rows by which the model is chosen. For sets of labels: micro_f1, "
        "average_precision, ndcg (of the 10 first of the rows' own labels) or log_loss; otherwise "
        "any but the first two. The default for sets is micro_f1, or ndcg above 200 labels; "
        "otherwise it is accuracy.",
    )
    candidates: list[Candidate] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Methods and parameters to try. The default depends on the data: flat machines, centroids, "
        "learnt label trees and kernel machines; for sets of labels, machines at the nodes, "
        "kernel ridge regression and, where labels have names, subjects.",
    )
    most_members: int = Field(
        default=4, ge=1, le=16, description="Maximum number of models in the pool; 1 chooses a single model."
    )
    folds: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="1 holds out one part of the rows; a larger number holds out each row once, in this many "
        "parts. The default is 5 below 2,000 rows and 1 from there on; for sets of labels it is 3 "
        "below 5,000 rows, or fewer where labels are so many that not all held-out scores are kept.",
    )
    held_out: float = Field(default=0.2, gt=0, lt=1, description="Share of the rows to hold out if folds is 1.")
    budget_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="Start no new trial after this many seconds of trials, and use the best so far. The choice "
        "then depends on the speed of the machine.",
    )
    label_thresholds: bool = Field(
        default=False,
        description="For sets of labels: gives every label its own threshold, from held-out rows. Otherwise all "
        "labels share one, which is better if many labels are rare.",
    )
    set_precision: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="For sets of labels: chooses thresholds that reach this precision on held-out rows with "
        "confidence 95 %, instead of the highest F1. If no threshold reaches it, the predicted sets "
        "are almost empty.",
    )
    class_weight: ClassWeight = Field(
        default=None,
        description="Multiplies the weights of each class's examples in all trainings. balanced uses n / "
        "(n_classes * n_c), where n and n_c sum the examples' own weights. An object gives positive "
        "numbers by label; labels left out get 1. Only for one label per example; measures and "
        "probabilities ignore it.",
    )
    tol: float = Field(default=1e-2, gt=0, lt=1, description="Relative duality gap of each chosen model.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Maximum number of passes of each training.")

    @property
    def thresholds(self) -> SetThresholds:
        """What thresholds of sets are set by."""
        return SetThresholds(self.label_thresholds, self.set_precision)

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        fault = unknown_labels(self.class_weight, known)
        return {**super().label_faults(known), **({} if fault is None else {"class_weight": fault})}


class _Prepared(NamedTuple):
    """A problem with the weights of classes, and what methods without names take of it.

    Attributes
    ----------
    usual : Problem
        Without names, and of sets of labels without the nodes that no row has.
    part : TreePart or None
        The nodes that some row has; None of single labels.
    """

    whole: Problem
    usual: Problem
    part: TreePart | None


class Auto(Solver[AutoParams]):
    """Methods and parameters chosen on held-out rows, and pooled."""

    name = "auto"
    title = "Chosen for the data"
    paper = "Genest and Zidek 1986; Guo et al. 2017"
    handles = Handles(flat=True, multilabel=True, graph=True, probabilities=True)
    Params = AutoParams
    chooses = True
    _made: tuple[Problem, Search] | None = None

    @property
    def feature_range(self) -> tuple[float, float]:
        # C is tried in proportion to 1 by the square of the features, and is 1e15 at most
        return 1e-6, 1e15

    @classmethod
    def check_params(cls, params: AutoParams) -> None:
        if params.candidates is None:
            return
        families_of(params.candidates)
        if params.thresholds != SetThresholds():
            what = "has sets of its own, to which label_thresholds and set_precision do not apply"
            faults = [
                (f"/candidates/{number}/solver", f"{candidate.solver} {what}")
                for number, candidate in enumerate(params.candidates)
                if all_methods()[candidate.solver].uses_names
            ]
            if faults:
                raise ParamsError(faults)

    def check_request(self, outline: Outline) -> None:
        super().check_request(outline)
        self.params.check_costs(outline)

    def takes_names(self, *, sets: bool, named: bool) -> bool:
        params = self.params
        if not (sets and named):
            return False
        if params.candidates is None:
            return params.thresholds == SetThresholds()
        return any(all_methods()[candidate.solver].uses_names for candidate in params.candidates)

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        self.check_features(problem.of_terms)
        return self._search(problem).steps(state)

    def model(self, problem: Problem, state: State) -> Model:
        model = self._search(problem).model(state)
        model.costs = self.params.costs_of(problem)
        return model

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """Of its linear machines, and of measuring them; larger trials are left out where they do not fit."""
        linear = Family("one_vs_rest", {"loss": "squared_hinge", "bias": 1.0}).solver(0, seed=0, threads=1)
        measured = min(n_samples * n_classes, MOST_SCORES)
        return linear.bytes_needed(n_samples, n_features, n_classes) + MEASURING_BYTES * measured

    def without_current(self, problem: Problem, state: State) -> State:
        return self._search(problem).without_current(state)

    def on_all_rows(
        self, former: Problem, state: State, problem: Problem, rows: Ints
    ) -> tuple[Solver[Any], State | None]:
        """What was chosen, as it was chosen: no trial is made again."""
        known, every = self._prepared(former).part, self._prepared(problem)
        parts = None if known is None or every.part is None else (known, every.part)
        views = _views(every, [], SetThresholds())
        return ChosenMembers(self.params, self._search(former), state, views, rows, parts), None

    def _prepared(self, problem: Problem) -> _Prepared:
        """The problem with the weights of classes, and of sets of labels without the nodes that no row has."""
        params = self.params
        params.costs_of(problem)  # refused before anything is trained
        if params.class_weight is not None:
            problem = self._weighted(problem)
        if problem.labels is not None:
            part = TreePart.of_sets(problem.tree, problem.labels)
            return _Prepared(problem, of_part(problem.of_terms, part), part)
        if params.thresholds != SetThresholds():
            raise ProblemError(
                "label_thresholds and set_precision need sets of labels; one label per example was given"
            )
        return _Prepared(problem, problem.of_terms, None)

    def _search(self, problem: Problem) -> Search:
        """The search on a problem, made once."""
        kept = self._made
        if kept is None or kept[0] is not problem:
            kept = self._made = problem, self._new_search(problem)
        return kept[1]

    def _new_search(self, problem: Problem) -> Search:
        params, prepared = self.params, self._prepared(problem)
        usual, given = prepared.usual, params.candidates
        named = self.takes_names(sets=problem.labels is not None, named=problem.names is not None)
        families = default_families(usual, named=named) if given is None else families_of(given)
        check_families(usual, families)
        folds = folds_of(usual, params.folds, params.held_out, self.seed)
        views = _views(prepared, folds, params.thresholds)
        measure, known = params.measure or _measure(usual), views.usual.task.measures
        if measure not in known:
            raise ProblemError(f"measure {measure} does not fit these labels; expected one of {', '.join(known)}")
        budget = params.budget_seconds
        options = Options(measure, params.most_members, budget, params.tol, params.max_epochs)
        return Search(views, families, options, seed=self.seed, threads=self.threads)

    def _weighted(self, problem: Problem) -> Problem:
        """The problem with the weights of classes in those of its examples."""
        if problem.labels is not None:
            raise ProblemError("class_weight needs one label per example; sets of labels were given")
        return replace(problem, weights=problem.weights * class_weights(problem, self.params.class_weight)[problem.y])


def of_part(problem: Problem, part: TreePart) -> Problem:
    """A problem of sets of labels without the nodes of its tree that no row has: nothing could be learnt of them."""
    if part.is_whole:
        return problem
    assert problem.labels is not None
    return replace(
        problem, classes=part.tree.names, taxonomy=part.tree, labels=sp.csr_matrix(problem.labels[:, part.nodes])
    )


def _measure(problem: Problem) -> Measure:
    """What is best where nothing is asked: of many labels in sets most are rare, and the best ranking counts."""
    if problem.labels is None:
        return "accuracy"
    return "ndcg" if problem.n_classes > MANY_CLASSES else "micro_f1"


def _views(prepared: _Prepared, folds: Sequence[Fold], thresholds: SetThresholds) -> Views:
    """What trials are about, and how they are measured on the rows that folds hold out."""
    problem, part, rows = prepared.usual, prepared.part, held_out_rows(folds)
    labels = problem.labels
    if labels is None or part is None:
        return Views(View(problem, SingleLabels(problem, rows), folds))
    held_out = labels[rows]
    ranked = ranked_labels(own_labels(labels, part.tree.parents))
    usual = View(problem, LabelSets(part, held_out, thresholds, _trained(labels, folds), ranked), folds)
    vocabulary = View(prepared.whole, VocabularySets(prepared.whole, folds), folds)
    if not has_own_inner(problem):
        return Views(usual, None, vocabulary, _some_labels(problem, folds, thresholds))
    flat = flat_problem(problem)
    assert flat.labels is not None
    trained = _trained(flat.labels, folds)
    sets = LabelSets(part, held_out, thresholds, trained, ranked, flat=True)
    return Views(usual, View(flat, sets, folds), vocabulary)


def _some_labels(problem: Problem, folds: Sequence[Fold], thresholds: SetThresholds) -> View | None:
    """A share of the labels and enough of the folds, for sketches of many labels without a tree."""
    if not has_many_labels(problem):
        return None
    folds = _enough(folds)
    k = problem.n_classes
    some = np.sort(np.random.default_rng([k, 0x1AB]).choice(k, k // SOME_LABELS, replace=False))
    sketched = of_part(problem, TreePart(problem.tree, some.astype(np.int32)))
    sets = sketched.label_sets()
    part, trained = TreePart.of_sets(sketched.tree, sets), _trained(sets, folds)
    return View(sketched, LabelSets(part, sets[held_out_rows(folds)], thresholds, trained), folds)


def _enough(folds: Sequence[Fold]) -> Sequence[Fold]:
    """The first folds, which together hold out ``SKETCH_HELD_OUT`` rows; all of them where rows are few."""
    n_rows = np.cumsum([len(fold.held_out) for fold in folds])
    return folds[: 1 + int(np.searchsorted(n_rows, SKETCH_HELD_OUT))]


def _trained(labels: sp.csr_matrix, folds: Sequence[Fold]) -> Trained:
    counts = [np.asarray(labels[fold.train].sum(axis=0), np.int64).ravel() for fold in folds]
    return Trained(
        np.repeat(np.arange(len(folds)), [len(fold.held_out) for fold in folds]),
        np.array(counts).reshape(-1, labels.shape[1]),
        np.asarray(labels.sum(axis=0), np.int64).ravel(),
    )
