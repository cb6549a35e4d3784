"""What a search has chosen, trained once more on all rows: members, coefficients and calibration stay as they were."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.tree_part import TreePart
from solvers.numerics.array_types import Array, Ints
from solvers.selection.progress import Progress
from solvers.selection.search import Search
from solvers.selection.tasks import Views


class ChosenMembers(Solver[Any]):
    """The members of a finished search; no trial is made.

    Labels that only the new rows have become classes.

    Parameters
    ----------
    params : Params
        Of the method that has searched.
    search : Search
        On some of the rows.
    state : mapping of str to array
        Of its last step.
    views : Views
        Of all rows.
    rows : int64 array, shape (n_samples,)
        The place of each of the problem's examples among those of the search; -1 of one that is not there.
    parts : (TreePart, TreePart), optional
        The nodes of a label tree that rows of the search have, and those that any row has.
    """

    name = "auto"
    handles = Handles(flat=True, multilabel=True, probabilities=True)

    def __init__(
        self,
        params: Params,
        search: Search,
        state: State,
        views: Views,
        rows: Ints,
        parts: tuple[TreePart, TreePart] | None = None,
    ) -> None:
        super().__init__(params, seed=search.seed, threads=search.threads)
        self._former, self._state = search, state
        chosen, _ = Progress.resumed(state)
        assert chosen.pool is not None
        trials = [search.trials[number] for number in chosen.pool.members]
        families = [trial.family.alone(trial.place) for trial in trials]
        self._search = Search(views, families, search.options, seed=search.seed, threads=search.threads)
        self._search.start_of = self._start
        self._rows = rows
        self._begin = Progress(np.full((len(families), len(self._search.results)), np.nan))
        self._begin.pool = chosen.pool._replace(members=tuple(range(len(families))))
        self._begin.found = chosen.found
        usual = views.usual.problem
        self._begin.kept = {name: _widened(name, arrays, usual, parts) for name, arrays in chosen.kept.items()}

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        yield from self._search.steps(self._begin.state() if state is None else state)

    def model(self, problem: Problem, state: State) -> Model:
        """The model of the last step; its trials are those of the search. Raises ValueError for an earlier step."""
        model, (found, _) = self._search.model(state), Progress.resumed(self._state)
        model.record = {**model.record, **self._former.record(found)}
        model.costs = self.params.costs_of(problem)
        model.report = {**model.report, "trials": float(np.isfinite(found.results[:, 0]).sum())}
        return model

    def _start(self, place: int) -> State | None:
        found, _ = Progress.resumed(self._state)
        assert found.pool is not None
        member = self._former.member(found.pool.members[place])
        former = self._former.views.for_family(self._former.trials[found.pool.members[place]].family).problem
        problem = self._search.views.for_family(self._search.trials[place].family).problem
        _, start = member.on_all_rows(former, found.final[place], problem, self._rows)
        return start


def _widened(name: str, arrays: State, problem: Problem, parts: tuple[TreePart, TreePart] | None) -> State:
    """What a model needs besides its members, for labels that rows of the search did not have.

    Such a node of a label tree gets the median calibration of the nodes that they had.
    """
    if name == "back_off" and problem.taxonomy is not None:
        return {**arrays, "nodes": problem.taxonomy.find(problem.classes)}
    if name != "calibration" or parts is None:
        return arrays
    known, every = parts
    new = np.setdiff1d(every.nodes, known.nodes)
    if not len(new):
        return arrays

    def widened(values: Array) -> Array:
        if values.shape != (known.whole.n_nodes,):
            return values
        values = np.array(values)
        values[new] = np.median(values[known.nodes])
        return values

    return {array: widened(np.asarray(values)) for array, values in arrays.items()}
