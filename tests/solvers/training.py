"""Machines by the name of their method, and what their training ends with."""

from typing import Any

from solvers.core.base import Solver, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.registry import make


def machine(name: str, *, seed: int = 0, threads: int = 1, **params: Any) -> Solver[Any]:
    """The solver of a method with these parameters."""
    return make(name, params, seed=seed, threads=threads)


def fitted(solver: Solver[Any], problem: Problem) -> tuple[Step, Model]:
    """The last step of a training, and the model of its state."""
    *_, last = solver.steps(problem)
    return last, solver.model(problem, last.state)


def trained(name: str, problem: Problem, **params: Any) -> tuple[Step, Model]:
    """As :func:`fitted`, of a method with these parameters."""
    return fitted(machine(name, **params), problem)
