"""The linear designs of a continuous code, with the norms l1 and l_infinity.

Crammer and Singer 2002, equation 15 and section 5.1: linear programs, here over growing sets of constraints.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, fields

import numpy as np

from solvers.core.base import State, Step, relative_gap
from solvers.numerics.array_types import Floats, Ints
from solvers.output_codes.design.programs import Program, Solution
from solvers.output_codes.design.task import Design

NEGLIGIBLE = 1e-9


class LinearDesign(Design):
    """The norms l1 and l_infinity, by linear programs over growing sets of constraints.

    Parameters
    ----------
    memory_mb : int, optional
        What the programs may take; None for all that the machine has.
    guess : callable, optional
        Makes a code near which the first constraints are looked for; 0 where left out.
    """

    def __init__(
        self,
        program: Program,
        tol: float,
        max_rounds: int,
        memory_mb: int | None,
        guess: Callable[[], Floats] | None = None,
    ) -> None:
        self._program = program
        self._tol = tol
        self._max_rounds = max_rounds
        self._memory_mb = memory_mb
        self._guess = guess

    def steps(self, state: State | None) -> Iterator[Step]:
        program = self._program
        if state is None:
            program.check_size(len(program.y), self._memory_mb)
            M = np.zeros((program.n_classes, program.H.shape[1])) if self._guess is None else self._guess()
            at = self._around(M)
        else:
            at = _Progress.from_state(state)
        converged = at.rounds > 0 and relative_gap(at.primal, at.dual) <= self._tol
        while at.rounds < self._max_rounds and not at.stuck and not converged:
            program.check_size(len(at.working), self._memory_mb)
            at_work = Step(at.rounds + 1, np.nan, np.nan, np.nan, False, at.state())
            found = yield from _meanwhile(program.solving(at.working, 1e-2 * self._tol), at_work)
            worst = at.take_over(program, found, 1e-3 * self._tol)
            converged = relative_gap(at.primal, at.dual) <= self._tol
            yield Step(at.rounds, at.primal, at.dual, worst, converged, at.state())

    def rescaled(self, state: State, ratio: float) -> State | None:
        return self._around(np.array(state["M"])).state()

    def nonzero_duals(self, state: State) -> float:
        return float(state["n_nonzero"]) / (len(self._program.y) * (self._program.n_classes - 1))

    def _around(self, M: Floats) -> "_Progress":
        return _Progress(M, self._program.working_set(self._program.violations(M)))


@dataclass(eq=False)
class _Progress:
    """State of the design after a step.

    Attributes
    ----------
    M : float64 array, shape (n_classes, n_columns)
        The best code so far.
    working : int64 array
        The constraints of the next program.
    primal, dual : float
        The objective at M, and the largest lower bound.
    rounds : int
        Programs solved.
    n_nonzero : int
        Dual variables above 0 at M.
    stuck : bool
        The last program has changed nothing in the working set.
    """

    M: Floats
    working: Ints
    primal: float = np.inf
    dual: float = -np.inf
    rounds: int = 0
    n_nonzero: int = 0
    stuck: bool = False

    @classmethod
    def from_state(cls, state: State) -> "_Progress":
        numbers = {name: state[name].item() for name in ("primal", "dual", "rounds", "n_nonzero", "stuck")}
        return cls(np.array(state["M"]), np.array(state["working"]), **numbers)

    def state(self) -> State:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    def take_over(self, program: Program, found: Solution, rise: float) -> float:
        """Take over what a program has found; how far the worst constraint beyond the working set is violated."""
        V = program.violations(found.M)
        primal = program.primal(found.M, V)
        if primal < self.primal:
            self.M, self.primal = found.M, primal
            bounds = program.bounds[self.working // program.n_classes]
            self.n_nonzero = int(np.count_nonzero(found.eta > NEGLIGIBLE * bounds))
        rises = found.dual > self.dual + rise * abs(found.dual)
        self.dual = min(max(self.dual, found.dual), self.primal)
        grown = program.grown(self.working, V, purge=rises)
        worst = float((V.max(axis=1) - program.slack(self.working, V)).max())
        self.rounds, self.stuck, self.working = self.rounds + 1, np.array_equal(grown, self.working), grown
        return max(worst, 0.0)


def _meanwhile(solving: Generator[None, None, Solution], step: Step) -> Generator[Step, None, Solution]:
    """Hand out the same step while a program is at work; the program is given up with the caller."""
    with closing(solving):
        while True:
            try:
                next(solving)
            except StopIteration as ended:
                found: Solution = ended.value
                return found
            yield step
