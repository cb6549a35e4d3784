"""What a search measures, chooses and makes, which differs by what the labels of a problem are."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import AnyFloats, Floats32
from solvers.selection.held_out import Measure
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
