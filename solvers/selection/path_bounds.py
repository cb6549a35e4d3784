"""Bounds at every C between two solved ones: of the objective, and of the errors that the optimum makes on rows.

Let ``P_C(W) = 1/2 |W|^2 + C L(W)`` with a convex L. Its dual value at the dual variables a, of weights V, is
``A_C(a) - 1/2 |V|^2``, where A is jointly concave in a and C: it is ``-C L*(-a / C)``, L* the conjugate in the scores.
So of solutions at C_1 and C_2, and ``C = (1 - t) C_1 + t C_2``, the mixtures

    W = (1 - t) W_1 + t W_2        a = (1 - t) a_1 + t a_2

are feasible at C, and their values follow from those at both ends and the inner products of both weights:

    P_C(W) <= 1/2 |W|^2 + C ((1 - t) L_1 + t L_2)        D_C(a) >= (1 - t) A_1 + t A_2 - 1/2 |V|^2

Both sides are quadratic in t. Of exact ends their difference is
``t (1 - t) ((C_2 - C_1) (L_1 - L_2) - |W_1 - W_2|^2)``, which vanishes where the path of optima is straight. Where V
is not known, the dual value has the bound ``(1 - t) D_1 + t D_2``: the optimal value is concave in C (Giesen, Mueller,
Laue, Swiercy: Approximating Concavely Parameterized Optimization Problems, NIPS 2012).

The ball of :mod:`solvers.core.certain_answers` around the mixtures has the optimum of C. The scores of mixtures are
those of the scores, so that it is soon said which rows the optimum answers wrong at every C of a range (as Shibagaki,
Suzuki, Karasuyama, Takeuchi: Regularization path of cross-validation error lower bounds, NIPS 2015).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from solvers.core.certain_answers import ROUNDINGS, ROUNDINGS_OF_WEIGHTS, SCORE_ROUNDINGS
from solvers.numerics.array_types import Array, Floats, Ints


class Solved(NamedTuple):
    """A solution at one C, in numbers.

    Attributes
    ----------
    primal, dual : float
        The objective of the model, and the dual value.
    square : float
        The squared length of the model's weights, those of the constant feature included.
    multiple : float
        Of the weights that the dual variables make, the model's are this multiple; nan where that is not known.
    """

    C: float
    primal: float
    dual: float
    square: float
    multiple: float

    @property
    def losses(self) -> float:
        """The weighted sum of the losses, without C."""
        return max(0.0, self.primal - 0.5 * self.square) / self.C


class Rows(NamedTuple):
    """Held-out rows.

    Attributes
    ----------
    y : int array, shape (n_rows,)
        Class indices.
    lengths : float64 array, shape (n_rows,)
        Of each row, the constant feature included, and without the features that no training row has.
    terms : int array, shape (n_rows,)
        How many products a score sums.
    """

    y: Array
    lengths: Floats
    terms: Ints


class Cells(NamedTuple):
    """Ranges of C that follow one another, and what is certain of the errors on held-out rows in each.

    Attributes
    ----------
    edges : float64 array, shape (n_cells + 1,)
        Ascending values of C.
    wrong, right : int64 array, shape (n_cells,)
        Rows that the exact optimum answers wrong, and right, at every C of the cell. So the optimum has at least
        ``wrong`` errors, and at most those of all rows that are not ``right``.
    errors : int64 array, shape (n_cells + 1,)
        Of the mixture at each edge.
    """

    edges: Floats
    wrong: Ints
    right: Ints
    errors: Ints


@dataclass(frozen=True)
class Between:
    """What is known at every C between two solutions.

    Attributes
    ----------
    low, high : Solved
        At the smaller C and at the larger one.
    product : float
        The inner product of both models' weights.
    precision : float
        Of the weights.
    """

    low: Solved
    high: Solved
    product: float
    precision: float

    def at(self, share: float | Floats) -> Floats:
        """The C of a mixture that has this share of the solution at the larger C."""
        return np.asarray((1.0 - share) * self.low.C + share * self.high.C)

    @property
    def knows_duals(self) -> bool:
        """Whether the weights that the dual variables make are known at both ends."""
        return self.low.multiple > 0.0 and self.high.multiple > 0.0

    @property
    def primal(self) -> Polynomial:
        """The objective of mixtures, at most; quadratic in the share."""
        return 0.5 * self._square(1.0, 1.0) + _line(self.low.C, self.high.C) * _line(self.low.losses, self.high.losses)

    @property
    def dual(self) -> Polynomial:
        """The dual value of mixtures, at least; quadratic in the share."""
        if not self.knows_duals:
            return _line(self.low.dual, self.high.dual)
        s, t = 1.0 / self.low.multiple, 1.0 / self.high.multiple
        linear = (each.dual + 0.5 * each.square / each.multiple**2 for each in (self.low, self.high))
        return _line(*linear) - 0.5 * self._square(s, t)

    @property
    def largest_gap(self) -> float:
        """The largest relative duality gap of the mixture at any C from end to end."""
        P, G = self.primal, self.primal - self.dual
        # where the ratio is largest its derivative vanishes, whose numerator is quadratic, too
        at = np.array([0.0, 1.0, *_roots(G.deriv() * P - G * P.deriv(), 0.0, 1.0)])
        values = P(at)
        return float(np.max(np.divide(G(at), values, out=np.zeros_like(values), where=values > 0.0)))

    def radius(self, begin: float, end: float) -> float:
        """How far the optimum is at most from the :meth:`centres`, at any C between both shares."""
        gap = self.primal - self.dual + ROUNDINGS * self.precision * max(self.low.primal, self.high.primal)
        if self.knows_duals:
            square = gap - 0.25 * self._square(1.0 - 1.0 / self.low.multiple, 1.0 - 1.0 / self.high.multiple)
        else:
            square = 2.0 * gap
        rounding = ROUNDINGS_OF_WEIGHTS * self.precision * math.sqrt(max(self.low.square, self.high.square))
        return math.sqrt(max(0.0, _largest(square, begin, end))) + rounding

    @property
    def centres(self) -> tuple[float, float]:
        """By what the weights at both ends are multiplied before they are mixed, for the middle of W and V."""
        if not self.knows_duals:
            return 1.0, 1.0
        return 0.5 * (1.0 + 1.0 / self.low.multiple), 0.5 * (1.0 + 1.0 / self.high.multiple)

    def cells(
        self, low_scores: Array, high_scores: Array, rows: Rows, n_cells: int, classes: "Classes | None" = None
    ) -> Cells:
        """What is certain of held-out rows, in cells of equal ratios of C.

        Parameters
        ----------
        low_scores, high_scores : float array, shape (n_rows, n_classes)
            Of both models.
        classes : Classes, optional
            Where the problem is a sum over the classes, so that each has a ball of its own.
        """
        Cs = np.geomspace(self.low.C, self.high.C, n_cells + 1)
        shares = (Cs - self.low.C) / (self.high.C - self.low.C)
        shares[-1] = 1.0
        # two scores of a difference, at both ends, each in another order of summing
        norm = math.sqrt(max(self.low.square, self.high.square))
        rounding = 2.0 * (rows.terms + SCORE_ROUNDINGS) * _precision(low_scores, high_scores) * rows.lengths * norm
        wrong, right = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
        errors, (s, t) = np.zeros(n_cells + 1, np.int64), self.centres if classes is None else (1.0, 1.0)
        before: Floats | None = None
        for at, share in enumerate(shares):
            F = (1.0 - share) * np.asarray(low_scores, np.float64)
            F += share * np.asarray(high_scores, np.float64)
            errors[at] = int(np.count_nonzero(F.argmax(axis=1) != rows.y))
            if (s, t) != (1.0, 1.0):
                F = s * (1.0 - share) * np.asarray(low_scores, np.float64)
                F += t * share * np.asarray(high_scores, np.float64)
            F -= F[np.arange(len(F)), rows.y][:, None]
            if before is not None:
                within = shares[at - 1], share
                if classes is None:
                    reach = np.array([self.radius(*within) / math.sqrt(2.0)])
                else:
                    reach = classes.radii(self.low.C, self.high.C, *within)
                right[at - 1], wrong[at - 1] = _decided(before, F, rows, reach, rounding)
            before = F
        return Cells(Cs, wrong, right, errors)

    def _square(self, s: float, t: float) -> Polynomial:
        """The squared length of the mixture of s times the weights at the low end, and t times those at the high."""
        return Polynomial(
            [
                s * s * self.low.square,
                2.0 * (s * t * self.product - s * s * self.low.square),
                s * s * self.low.square - 2.0 * s * t * self.product + t * t * self.high.square,
            ]
        )


@dataclass(frozen=True)
class Classes:
    """What is known of each class between two solutions, where the problem is a sum of one for each class.

    The mixture's gap, ``(1 - t) G_1 + t G_2 + t (1 - t) ((C_2 - C_1) (L_1 - L_2) - |w_1 - w_2|^2)``, then holds for
    each class with its own numbers. Where the weights of the dual variables are not known, half of the last square is
    missing there.

    Attributes
    ----------
    low, high : OfClasses
        At the smaller C and at the larger one.
    products : float64 array, shape (n_classes,)
        The inner products of both models' weights.
    precision : float
        Of the weights.
    """

    low: "OfClasses"
    high: "OfClasses"
    products: Floats
    precision: float

    def radii(self, low_C: float, high_C: float, begin: float, end: float) -> Floats:
        """How far each class's optimal weights are from the mixture's at most, at any C between both shares."""
        low, high = self.low, self.high
        apart = np.maximum(0.0, low.squares - 2.0 * self.products + high.squares)
        knows_duals = low.makes_weights and high.makes_weights
        curvature = (high_C - low_C) * (low.losses(low_C) - high.losses(high_C)) - (1.0 if knows_duals else 0.5) * apart
        G, H = low.primal - low.dual, high.primal - high.dual
        slope = curvature + H - G
        summit = np.divide(slope, 2.0 * curvature, out=np.full(len(G), begin), where=curvature > 0.0)
        at = np.stack([np.full(len(G), begin), np.full(len(G), end), np.clip(summit, begin, end)])
        gaps = np.maximum(0.0, (G + slope * at - curvature * at**2).max(axis=0))
        gaps += ROUNDINGS * self.precision * np.maximum(low.primal, high.primal)
        rounding = ROUNDINGS_OF_WEIGHTS * self.precision * np.sqrt(np.maximum(low.squares, high.squares))
        return np.asarray(np.sqrt(gaps if knows_duals else 2.0 * gaps) + rounding)


class OfClasses(NamedTuple):
    """A solution at one C, in numbers for each class.

    Attributes
    ----------
    primal, dual : float64 array, shape (n_classes,)
    squares : float64 array, shape (n_classes,)
        The squared lengths of the weights, those of the constant feature included.
    makes_weights : bool
        Whether the weights are those that the dual variables make.
    """

    primal: Floats
    dual: Floats
    squares: Floats
    makes_weights: bool

    def losses(self, C: float) -> Floats:
        """The weighted sums of the losses, without C."""
        return np.asarray(np.maximum(0.0, self.primal - 0.5 * self.squares) / C)


def _decided(F: Floats, G: Floats, rows: Rows, reach: Floats, rounding: Floats) -> tuple[int, int]:
    """How many rows the optimum answers right, and how many wrong, at every C of a cell.

    Parameters
    ----------
    F, G : float64 array, shape (n_rows, n_classes)
        By how much each class leads the row's own at both ends of the cell; in between leads are their mixtures.
    reach : float64 array, shape (n_classes,) or (1,)
        By how much the score of each class may differ at the optimum, of a row of length 1.
    """
    every, k = np.arange(len(F)), F.shape[1]
    own = np.broadcast_to(reach, k)[rows.y] * rows.lengths + rounding
    most, least = np.maximum(F, G), np.minimum(F, G)
    if len(reach) == 1:
        others = reach[0] * rows.lengths
    else:
        others = np.zeros(len(F))
        most += rows.lengths[:, None] * reach
        least -= rows.lengths[:, None] * reach
    most[every, rows.y] = least[every, rows.y] = -np.inf
    right = most.max(axis=1) + others < -own
    wrong = least.max(axis=1) - others > own
    return int(np.count_nonzero(right)), int(np.count_nonzero(wrong))


def _line(begin: float, end: float) -> Polynomial:
    return Polynomial([begin, end - begin])


def _largest(quadratic: Polynomial, begin: float, end: float) -> float:
    """The largest value between two points."""
    at = [begin, end, *_roots(quadratic.deriv(), begin, end)]
    return float(np.max(quadratic(np.array(at))))


def _roots(polynomial: Polynomial, begin: float, end: float) -> list[float]:
    """The real parts of the roots that are between two points: where two are conjugate there is no extreme."""
    found = np.asarray(polynomial.trim().roots(), np.complex128).real.tolist()
    return [root for root in found if begin < root < end]


def _precision(*scores: Array) -> float:
    return max(float(np.finfo(each.dtype).eps) for each in scores)
