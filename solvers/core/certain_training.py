"""Training until answers are certain: the gap falls rung by rung, until rows at hand cannot be answered otherwise.

A machine trains to the gap of a rung, and a certificate there bounds how far the optimum's leads may be
(:mod:`solvers.core.certain_answers`). Training ends where the share of the rows whose answer is certain is large
enough, or at the machine's own ``tol``: an answer that ties at the optimum is certain at no gap.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State, Step
from solvers.core.certain_answers import certain
from solvers.core.model import Model
from solvers.core.problem import Problem

# the gaps at which answers are looked at; training ends at its own tol, from which on there are no more
RUNGS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7)
# from which tol on machines choose single precision: a training cannot change between both
PRECISE_BELOW = 1e-4
MEASURE = "certain"


def certified_model(solver: Solver[Any], problem: Problem, state: State, primal: float, dual: float) -> Model:
    """The model of a step that has measured both bounds, with its reach where the method has one."""
    model = solver.model(problem, state)
    if np.isfinite(primal) and np.isfinite(dual):
        model.reach = solver.reach(problem, state, model, primal, dual)
    return model


class UntilCertain(Solver[Any]):
    """A solver that ends as soon as the answers to some rows are certain.

    Its states are those of the solver, and the rung under way.

    Parameters
    ----------
    solver : Solver
        With ``bounds_answers`` and a parameter ``tol``.
    X : csr_matrix, shape (n_rows, n_features)
        The rows.
    share : float
        Of the rows, above 0 and at most 1: how many answers have to be certain.
    """

    name = "until_certain"

    def __init__(self, solver: Solver[Any], X: sp.csr_matrix, share: float) -> None:
        super().__init__(solver.params, seed=solver.seed, threads=solver.threads)
        self.handles = solver.handles  # type: ignore[misc]
        self._solver, self._X, self._share = solver, X, share
        tol = solver.params.tol
        precise = tol < PRECISE_BELOW
        self._rungs = [rung for rung in RUNGS if rung > tol and (rung < PRECISE_BELOW) == precise] + [tol]

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Train; every certificate at the end of a rung has the measure ``certain``, the share of the rows."""
        rung = 0 if state is None or "rung" not in state else int(state["rung"])
        while rung < len(self._rungs):
            reached = None
            for step in self._solver.at_tol(self._rungs[rung]).steps(problem, state):
                if not step.converged:
                    yield replace(step, state={**step.state, "rung": np.array(rung)})
                    continue
                reached = step
            if reached is None:
                return
            model = certified_model(self._solver, problem, reached.state, reached.primal, reached.dual)
            share = float(np.mean(certain(model, self._X)))
            rung = next((at for at, tol in enumerate(self._rungs) if tol < reached.gap), len(self._rungs))
            state = {**reached.state, "rung": np.array(rung)}
            ended = share >= self._share or rung == len(self._rungs)
            measures = {**reached.measures, MEASURE: share}
            yield replace(reached, state=state, converged=ended, measures=measures)
            if ended:
                return

    def model(self, problem: Problem, state: State) -> Model:
        return self._solver.model(problem, state)
