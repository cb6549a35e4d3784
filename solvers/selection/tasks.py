"""What a search measures, chooses and makes: tasks by what the labels are, and the views of a problem they are of."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import AnyFloats, Floats32
from solvers.selection.candidates import Family
from solvers.selection.held_out import Fold, Measure
from solvers.selection.pooling import Pool

Scores = Floats32


class Choice(NamedTuple):
    """What a search has chosen.

    Attributes
    ----------
    pool : Pool
        Its members are trials' numbers.
    found : dict of str to float
        Measures on the held-out rows, for the report.
    kept : dict of str to State
        What the model needs besides its members, by the names of ``Task.kept``.
    """

    pool: Pool
    found: dict[str, float]
    kept: dict[str, State]


class Task(Protocol):
    """How the labels of a problem are scored, measured and predicted.

    Attributes
    ----------
    measures : tuple of str
        More of each is better; the last one is the negative log loss.
    """

    measures: tuple[Measure, ...]

    def member(self, solver: Solver[Any], problem: Problem, state: State) -> Model:
        """The model of a trial, or of a member that is trained on all rows."""

    def scores(self, model: Model, X: sp.csr_matrix, fold: int) -> AnyFloats:
        """Of the rows that a fold holds out, as they are to be kept: a table whose columns are those of every fold."""

    def n_scores(self, n_rows: int) -> int:
        """How many numbers are kept of so many rows, about."""

    def measured(self, scores: Scores) -> list[float]:
        """The measures of the scores of all rows held out, in the order of the folds."""

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        """Choose among trials, by their numbers; ``best`` is the best one alone by the measure."""

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        """The model of members that are trained on all rows."""


class View(NamedTuple):
    """A problem, with all rows, how trials on it are measured, and on which rows."""

    problem: Problem
    task: Task
    folds: Sequence[Fold]


class Views(NamedTuple):
    """The views of one problem.

    Attributes
    ----------
    usual : View
        Of sets of labels: the labels that some row has, along their tree.
    flat : View or None
        Those that rows have as their own, without the tree, where that makes a difference.
    vocabulary : View or None
        All labels of the tree, with their names where they have any; of sets of labels alone.
    some_labels : View or None
        Some of the labels that rows have, for sketches; where they are many, and without a tree.
    """

    usual: View
    flat: View | None = None
    vocabulary: View | None = None
    some_labels: View | None = None

    def for_family(self, family: Family) -> View:
        """What a family's trials are about; models pool trials of one view alone."""
        if family.uses_names and self.vocabulary is not None:
            return self.vocabulary
        if family.sketch == "labels" and self.some_labels is not None:
            return self.some_labels
        return self.flat if family.flat and self.flat is not None else self.usual
