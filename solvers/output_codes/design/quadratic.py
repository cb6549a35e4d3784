"""The quadratic design of a continuous code: a multi-class machine on the margins (Crammer and Singer 2002)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from solvers.core.base import Solver, State, Step
from solvers.core.machine import Machine
from solvers.core.model import Model
from solvers.numerics.array_types import Floats
from solvers.output_codes.design.task import Design, Task


class QuadraticDesign(Design):
    """The squared l2 norm, by a multi-class machine on the margins with any kernel (Crammer and Singer 2002, equation
    29)."""

    def __init__(self, task: Task, solver: Machine[Any]) -> None:
        self._problem = task.problem
        self._solver = solver

    def steps(self, state: State | None) -> Iterator[Step]:
        return self._solver.steps(self._problem, state)

    def code(self, state: State) -> Floats | Model:
        model = self._solver.bare_model(self._problem, state)
        linear = model.linear_weights()
        return model if linear is None else linear.coef(self._problem.n_features)

    def rescaled(self, state: State, ratio: float) -> State | None:
        return self._solver.rescale(self._solver.prepared(self._problem), state, ratio)

    def nonzero_duals(self, state: State) -> float:
        return self._solver.nonzero_duals(self._problem, state)


def guess_by(task: Task, make: Callable[[float], Solver[Any]]) -> Callable[[], Floats]:
    """A rough code by the squared norm, on margins scaled to 1; ``make`` is called with its C."""

    def guess() -> Floats:
        scale = float(abs(task.H).max()) or 1.0
        solver = make(task.C * scale)
        problem = replace(task, H=task.H / scale).problem
        *_, last = solver.steps(problem)
        linear = solver.bare_model(problem, last.state).linear_weights()
        assert linear is not None, "a machine for the inner product makes a linear model"
        return linear.coef(problem.n_features) / scale

    return guess
