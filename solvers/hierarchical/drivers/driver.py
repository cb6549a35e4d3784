"""What the machines over a label tree ask of an algorithm for one prepared problem."""

from collections.abc import Iterator
from typing import Protocol

from solvers.core.base import State, Step
from solvers.numerics.array_types import Array, Floats, Ints


class Driver(Protocol):
    """An algorithm that trains one problem; what it is made of stays fixed meanwhile."""

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Train down to a relative duality gap, from the start or from the ``state`` of an earlier step."""

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at ``ratio`` times the C that the state was trained at."""

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero; nan where there are none."""

    def weights(self, state: State) -> tuple[Ints, Array]:
        """The features that have weights, and those of the nodes in that order, shape (n_used, n_nodes)."""

    def coefficients(self, state: State) -> Floats:
        """What each example adds to the weights of the nodes, shape (n_samples, n_nodes); asked for with a kernel."""
