"""The best model that the data allow: methods and values of C tried on rows held out, and the best pooled.

Tried are flat machines, centroids, learnt label trees and kernel machines, or what is asked for. What comes out is a
log-linear pool of one model or several, whose coefficients are fitted to the held-out rows: its scores are logarithms
of probabilities. Each member is then trained on all rows, with its certificate. Of sets of labels one model is chosen,
with a sigmoid for each node and one threshold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.class_weights import ClassWeight, class_weights, unknown_labels
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.labels.tree_part import TreePart
from solvers.numerics.array_types import Ints
from solvers.selection.candidates import Candidate, check_families, default_families, families_of
from solvers.selection.held_out import Measure, folds_of, held_out_rows
from solvers.selection.search import Options, Search
from solvers.selection.sets.label_sets import LabelSets
from solvers.selection.sets.set_thresholds import SetThresholds
from solvers.selection.single_labels import SingleLabels
from solvers.selection.tasks import Task


class AutoParams(Params):
    """Parameters of :class:`Auto`."""

    measure: Measure | None = Field(
        default=None,
        description="What the chosen model shall be best at, on held-out rows; of sets of labels micro_f1, "
        "average_precision or log_loss, else any but these two. Left out, micro_f1 and accuracy.",
    )
    candidates: list[Candidate] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="What is tried; left out, what suits the data: flat machines, centroids, learnt label trees, "
        "kernel machines; for sets of labels machines at the nodes and kernel ridge regression.",
    )
    most_members: int = Field(
        default=4, ge=1, le=16, description="Models that are pooled at most; 1 chooses a single one."
    )
    folds: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="1: one part of the rows is held out; more: each row once, by so many parts. Left out, 5 below "
        "2,000 rows and 1 from there on; of sets of labels 3 below 5,000.",
    )
    held_out: float = Field(default=0.2, gt=0, lt=1, description="Share of the rows held out, where folds is 1.")
    budget_seconds: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="No trial is begun after so many seconds of trials; the best so far is taken. What is chosen then "
        "depends on the speed of the machine.",
    )
    label_thresholds: bool = Field(
        default=False,
        description="Of sets of labels: every label has a threshold of its own, by rows held out; else one is for all, "
        "which is better where many labels are rare.",
    )
    set_precision: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="Of sets of labels: the precision that thresholds reach on rows held out, with 95 % confidence, in "
        "place of the highest F1. Where none reaches it, hardly a label is in a set.",
    )
    class_weight: ClassWeight = Field(
        default=None,
        description="Multiplies the weights of each class's examples in all trainings: balanced takes "
        "n / (n_classes * n_c), counted with the examples' own weights; an object gives positive numbers by label, 1 "
        "where a label is left out. For one label an example; measures and probabilities do without.",
    )
    tol: float = Field(default=1e-2, gt=0, lt=1, description="Relative duality gap of each model that is chosen.")
    max_epochs: int = Field(default=1000, ge=1, le=10**9, description="Passes at most of each training.")

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        fault = unknown_labels(self.class_weight, known)
        return {} if fault is None else {"class_weight": fault}


class Auto(Solver[AutoParams]):
    """Methods and parameters chosen on held-out rows, and pooled."""

    name = "auto"
    title = "Chosen for the data"
    paper = "Genest and Zidek 1986; Guo et al. 2017"
    handles = Handles(flat=True, multilabel=True, probabilities=True)
    Params = AutoParams
    chooses = True

    @classmethod
    def check_params(cls, params: AutoParams) -> None:
        if params.candidates is not None:
            families_of(params.candidates)

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        return self._search(problem).steps(state)

    def model(self, problem: Problem, state: State) -> Model:
        return self._search(problem).model(state)

    def _search(self, problem: Problem) -> Search:
        params = self.params
        if params.class_weight is not None:
            problem = self._weighted(problem)
        part, thresholds = None, SetThresholds(params.label_thresholds, params.set_precision)
        if problem.labels is not None:
            part = TreePart.of_sets(problem.tree, problem.labels)
            problem = of_part(problem, part)
        elif thresholds != SetThresholds():
            raise ProblemError(
                "label_thresholds and set_precision are for sets of labels, and one an example was given"
            )
        given = params.candidates
        families = default_families(problem) if given is None else families_of(given)
        check_families(problem, families)
        folds = folds_of(problem, params.folds, params.held_out, self.seed)
        task = _task(problem, part, held_out_rows(folds), thresholds)
        measure = params.measure or ("accuracy" if part is None else "micro_f1")
        if measure not in task.measures:
            raise ProblemError(f"{measure} is no measure of such labels: {', '.join(task.measures)} are")
        budget = params.budget_seconds
        options = Options(measure, params.most_members, budget, params.tol, params.max_epochs, given is None)
        return Search(problem, task, families, folds, options, seed=self.seed, threads=self.threads)

    def _weighted(self, problem: Problem) -> Problem:
        """The problem with the weights of classes in those of its examples."""
        if problem.labels is not None:
            raise ProblemError("class_weight is for one label an example, and sets of labels were given")
        return replace(problem, weights=problem.weights * class_weights(problem, self.params.class_weight)[problem.y])


def of_part(problem: Problem, part: TreePart) -> Problem:
    """A problem of sets of labels without the nodes of its tree that no row has: nothing could be learnt of them."""
    if part.is_whole:
        return problem
    assert problem.labels is not None
    return replace(
        problem, classes=part.tree.names, taxonomy=part.tree, labels=sp.csr_matrix(problem.labels[:, part.nodes])
    )


def _task(problem: Problem, part: TreePart | None, rows: Ints, thresholds: SetThresholds) -> Task:
    if problem.labels is None or part is None:
        return SingleLabels(problem, rows)
    return LabelSets(part, problem.labels[rows], thresholds)
