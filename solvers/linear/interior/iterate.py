"""The losses that the interior-point method takes, and where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solvers.numerics.array_types import Array, Floats, Ints8, Ints32


@dataclass(frozen=True)
class Losses:
    """One hinge loss ``B_ic max(0, m_ic - s_ic f_c(x_i))`` for every example and class.

    Attributes
    ----------
    signs : int8 array, shape (n_samples, n_classes)
        s, each +1 or -1.
    margins : float64 array, shape (n_samples, n_classes)
        m, not negative.
    bounds : float64 array, shape (n_samples, n_classes)
        B, not negative; a loss whose bound is 0 is absent.
    """

    signs: Ints8
    margins: Floats
    bounds: Floats

    @classmethod
    def of_classes(
        cls, y: Ints32, n_classes: int, costs: Floats, own: tuple[float, float], rest: tuple[float, float]
    ) -> "Losses":
        """Losses that differ only between the true class of an example, with sign +1, and the rest, with -1.

        Parameters
        ----------
        y : int array, shape (n_samples,)
        n_classes : int
        costs : float64 array, shape (n_samples,)
            C times the weight of each example.
        own, rest : (margin, weight)
            Margin and weight of the loss of the true class and of all other classes; weight 0 leaves it out.
        """
        true = y[:, None] == np.arange(n_classes)
        bounds = costs[:, None] * np.where(true, own[1], rest[1])
        return cls(np.where(true, 1, -1).astype(np.int8), np.where(true, own[0], rest[0]).astype(np.float64), bounds)


@dataclass(frozen=True)
class Iterate:
    """Where the method stands after one iteration.

    Attributes
    ----------
    number : int
        Iterations done; 0 for the starting point.
    primal : float
        Objective at ``state["W"]``, the best point so far, which satisfies the constraint.
    dual : float
        The best lower bound so far, proved by dual variables inside their box.
    violation : float
        Largest step that the gradient would take a dual variable within its box, in units of the margin.
    stalled : bool
        Rounding leaves nothing to gain; no iterate follows.
    state : mapping of str to array
        ``W`` (n_features, n_classes), ``alpha`` (n_samples, n_classes), zero where a loss is absent, and what it takes
        to resume bit-identically; live, so copy or write them before the next iterate is asked for.
    """

    number: int
    primal: float
    dual: float
    violation: float
    stalled: bool
    state: Mapping[str, Array]
