"""What a continuous code is designed for, and what the ways to design it have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Array, Floats, Ints32


@dataclass(frozen=True, eq=False)
class Task:
    """What a code is designed for.

    Attributes
    ----------
    H : float64 array or csr_matrix, shape (n_samples, n_columns)
        Margins of the columns' machines, or features.
    y : int32 array, shape (n_samples,)
    weights : float64 array, shape (n_samples,)
        Of the examples.
    """

    H: Any
    y: Ints32
    weights: Floats
    C: float
    classes: tuple[str, ...]

    @property
    def bounds(self) -> Floats:
        """What the loss of each example is multiplied by."""
        return self.C * self.weights

    @property
    def problem(self) -> Problem:
        """The problem that a multi-class machine on the margins solves."""
        return Problem(sp.csr_matrix(self.H), self.y, self.classes, self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the code: (n_classes, n_columns)."""
        return len(self.classes), int(self.H.shape[1])


class Design(ABC):
    """A way to design a code."""

    @abstractmethod
    def steps(self, state: State | None) -> Iterator[Step]:
        """Design, from the start or from the state of an earlier step."""

    def code(self, state: State) -> Floats | Model:
        """The code of a state; a model of the margins where no matrix holds it."""
        return np.array(state["M"])

    def rescaled(self, state: State, ratio: float) -> State | None:
        """What to begin from at ``ratio`` times the C that ``state`` ended at; None for nothing."""
        return None

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero; nan where there are none of the whole design."""
        return float("nan")


def part_of(state: State, prefix: str) -> dict[str, Array]:
    """The arrays whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
