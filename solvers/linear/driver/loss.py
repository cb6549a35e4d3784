"""What the driver of the flat linear machines asks of a loss."""

from typing import Any, Protocol

import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.linear.driver.run import Run
from solvers.linear.layouts.layouts import Layout
from solvers.linear.visits import Task, Visits
from solvers.numerics.array_types import Floats


class Loss(Protocol):
    """A loss of the examples, as the driver takes it: its dual variables, block steps and certificate.

    Dual variables are a named tuple of arrays. The coefficients v that they make are signed so that
    ``w_c = sum_i v_ic x_i``.
    """

    def at_zero(self, n_classes: int) -> float:
        """The loss of an example whose scores all vanish, as those of an empty row always do."""

    def layout(self, problem: Problem) -> Layout:
        """Rows and weights as the compiled loops take them."""

    def duals(self, task: Task) -> Any:
        """Dual variables that all vanish."""

    def with_room(self, task: Task, duals: Any) -> Any:
        """The same dual variables, with room for at least one more visit."""

    def visit(self, task: Task, run: Run, visits: Visits) -> int:
        """Ascend on the examples of ``visits``; returns where it stopped, before their end when out of room."""

    def measure(self, task: Task, run: Run, gaps: Floats, leads: Floats) -> tuple[float, float, float]:
        """Objective and dual value without the empty examples, and the multiple of W that the objective is of.

        That is the best of many multiples, as the length of W settles late: see :mod:`solvers.numerics.scaling_search`.
        Of each example that is not empty, its part of the gap at W itself goes to ``gaps``, and by how much the score
        of its own class leads the best other one to ``leads``.
        """

    def rebuild(self, task: Task, duals: Any, W: Any) -> None:
        """Make W afresh from the dual variables."""

    def sums(self, task: Task, duals: Any) -> Floats:
        """The coefficients v summed over the examples, shape (n_classes,)."""

    def linear_part(self, task: Task, duals: Any) -> float:
        """The part of the dual value that is linear in the dual variables."""

    def multiply(self, task: Task, duals: Any, factor: float) -> None:
        """Multiply the dual variables; where that brings one to its bound, it is there exactly."""

    def shares(self, task: Task, duals: Any) -> sp.csr_matrix:
        """The dual variables by their bounds, shape (n_samples, n_classes); TypeError of a loss without them."""

    def of_shares(self, task: Task, shares: sp.csr_matrix) -> Any:
        """The dual variables of such shares; TypeError as above."""
