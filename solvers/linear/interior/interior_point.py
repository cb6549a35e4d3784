"""Interior point method for sums of hinge losses, each between an example and a class, to any accuracy and any C.

    minimise  1/2 sum_c |w_c|^2 + sum_ic B_ic max(0, m_ic - s_ic w_c' x_i)   subject to  sum_c w_c = 0, if asked for

With p_ic = xi_ic - m_ic + s_ic w_c' x_i >= 0, xi_ic >= 0 and their multipliers alpha_ic and beta_ic = B_ic - alpha_ic,
Newton's method leaves one system a class, ``G_c = I + X' D_c X`` with ``D_ic = 1 / (p / alpha + xi / beta)``, as for
one linear SVM in Ferris and Munson 2002, section 3; the constraint adds one, ``sum_c G_c^-1``. The steps are those of
Mehrotra 1992. An iteration costs O(k (n d^2 + d^3)): it suits some hundreds of features and any number of
examples, where ascent over single examples needs passes in proportion to C.

Losses of the interior point method, and its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.memory import TooLargeError
from solvers.linear.interior import normal_equations
from solvers.linear.interior.normal_equations import CHUNK, DENSE, AllClasses, ClassSums, NormalEquations
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
    ) -> Losses:
        """Losses that differ only between the true class of an example, with sign +1, and the rest, with -1.

        Parameters
        ----------
        y : int array, shape (n_samples,)
        costs : float64 array, shape (n_samples,)
            C times the weight of each example.
        own, rest : (margin, weight)
            Margin and weight of the loss of the true class and of all other classes; weight 0 leaves it out.
        """
        true = y[:, None] == np.arange(n_classes)
        bounds = costs[:, None] * np.where(true, own[1], rest[1])
        return cls(np.where(true, 1, -1).astype(np.int8), np.where(true, own[0], rest[0]).astype(np.float64), bounds)

    def restrict(self, own: Ints32) -> Losses:
        """Those of some classes."""
        return Losses(
            np.ascontiguousarray(self.signs[:, own]),
            np.ascontiguousarray(self.margins[:, own]),
            np.ascontiguousarray(self.bounds[:, own]),
        )


@dataclass(frozen=True)
class Iterate:
    """The state of the method after one iteration.

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


BACK_OFF = 0.995
PATIENCE = 12
REFINEMENTS = 6
DAMPINGS = 5


def estimate_bytes(n_samples: int, n_features: int, n_classes: int, density: float = 1.0) -> int:
    """Peak memory of :func:`iterations` beside its input, in bytes; ``density`` is the share of X that is not zero."""
    n, d, k = n_samples, n_features, n_classes
    dense = n * d if density >= DENSE else 0
    return 8 * (dense + 12 * n * k + 2 * k * d * d + 8 * k * d + 4 * d * d + 2 * CHUNK * d)


def iterations(
    X: sp.csr_matrix,
    losses: Losses,
    *,
    sum_to_zero: bool,
    state: Mapping[str, Array] | None = None,
    limit_bytes: int = 4 << 30,
    sums: ClassSums | None = None,
) -> Iterator[Iterate]:
    """Iterates from the starting point, or from the one after ``state``; they end only when the method stalls.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        Indices sorted within a row; made dense inside when a quarter of it or more is not zero.
    sum_to_zero : bool
        Constrain the weights of the classes to sum to zero.
    state : mapping of str to array, optional
        That of an earlier iterate of the same problem.
    limit_bytes : int
        Refuse problems that need more memory than this.
    sums : ClassSums, optional
        Over the classes of all shards, where ``losses`` are those of one shard's classes: all shards iterate together,
        and make the iterates of one worker but for the order in which floats are added.

    Raises
    ------
    TooLargeError
        :func:`estimate_bytes` is above ``limit_bytes``.
    """
    (n, d), k = X.shape, losses.bounds.shape[1]
    needed = estimate_bytes(n, d, k, X.nnz / (n * d))
    if needed > limit_bytes:
        raise TooLargeError(
            f"the interior point method needs {needed / 2**30:.1f} GiB for {n} examples, {d} features and {k} classes; "
            f"the limit is {limit_bytes / 2**30:.1f} GiB"
        )
    return _iterate(X, losses, sum_to_zero, state, sums or AllClasses())


def around(X: sp.csr_matrix, losses: Losses, W: Floats) -> dict[str, Array]:
    """The state of a starting point at W (n_features, n_classes), as from the solution of a problem with other bounds.

    Slacks and dual variables are the centred ones: all products of a slack and its multiplier are equal, and together
    as large as the objective at W. What the point lacks of the central path is then that W and alpha do not agree.
    """
    present = losses.bounds > 0
    margins = losses.margins - losses.signs * (X @ W)
    primal = 0.5 * float(np.vdot(W, W)) + float((losses.bounds * np.maximum(margins, 0.0)).sum())
    if primal == 0.0:
        return _start(X.shape[1], losses, AllClasses()).state()
    target = primal / np.count_nonzero(present)
    bounds = np.where(present, losses.bounds, 1.0)
    slack, xi = _centred(bounds, margins, target), _centred(bounds, -margins, target)
    alpha, beta = np.minimum(target / slack, bounds), np.minimum(target / xi, bounds)
    alpha, beta, slack, xi = (np.where(present, part, 0.0) for part in (alpha, beta, slack, xi))
    return _Point(np.zeros_like(W), W.copy(), alpha, beta, slack, xi, _Progress()).state()


def _centred(bounds: Floats, margins: Floats, target: float) -> Floats:
    """The positive root p of ``target / p + target / (p + v) = B``: of the two forms that without cancellation."""
    half = bounds * margins - 2.0 * target
    root = np.hypot(bounds * margins, 2.0 * target)
    falling = half > 0
    under = np.where(falling, half + root, 2.0 * bounds)
    return np.asarray(np.where(falling, 2.0 * target * margins, root - half) / under)


def _iterate(
    X: sp.csr_matrix, losses: Losses, sum_to_zero: bool, state: Mapping[str, Array] | None, sums: ClassSums
) -> Iterator[Iterate]:
    newton = _Newton(X, losses, sum_to_zero, sums)
    point = _start(X.shape[1], losses, sums) if state is None else _Point.from_state(state)
    reported = state is not None
    while True:
        violation = newton.measure(point)
        at = point.progress
        if not reported:
            yield Iterate(int(at.number), at.primal, at.dual, violation, bool(at.stalled), point.state())
        if at.stalled:
            return
        at.stalled = float(not newton.step(point))
        at.number += 1.0
        reported = False


@dataclass
class _Progress:
    """Best bounds so far, iterations done, the least gap so far and its iteration, whether rounding ended the method.

    All are floats, as in the array of a state.
    """

    primal: float = np.inf
    dual: float = 0.0
    number: float = 0.0
    least_gap: float = np.inf
    least_gap_at: float = 0.0
    stalled: float = 0.0


class _Point(NamedTuple):
    """All that changes."""

    W: Floats
    weights: Floats
    alpha: Floats
    beta: Floats
    slack: Floats
    xi: Floats
    progress: _Progress

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> _Point:
        """From a state, by copies."""
        W, weights, alpha, beta, slack, xi, progress = (np.array(state[name]) for name in cls._fields)
        return cls(W, weights, alpha, beta, slack, xi, _Progress(*progress.tolist()))

    def state(self) -> dict[str, Array]:
        """The arrays, live, and the progress as one of its own."""
        return self._asdict() | {"progress": np.array(astuple(self.progress))}


def _start(n_features: int, losses: Losses, sums: ClassSums) -> _Point:
    """Dual variables in the middle of their box; W = 0, which is feasible, and slacks about as large as the margins."""
    present = losses.bounds > 0
    m = losses.margins
    total, count = sums.total(np.array([m[present].sum(), np.count_nonzero(present)], np.float64)).tolist()
    centre = total / count if count else 0.0
    xi = np.where(present, 0.5 * (m + np.hypot(m, 2.0 * (centre or 1.0))), 0.0)
    half = 0.5 * losses.bounds
    W = np.zeros((n_features, m.shape[1]))
    return _Point(W, W.copy(), half, half.copy(), np.where(present, xi - m, 0.0), xi, _Progress())


class _Newton:
    """One problem, with the work space of its iterations."""

    def __init__(self, X: sp.csr_matrix, losses: Losses, sum_to_zero: bool, sums: ClassSums) -> None:
        self.spec = (losses.signs, losses.margins, losses.bounds)
        self.sums = sums
        self.equations = NormalEquations(X, losses.bounds, sum_to_zero, sums)
        self.X = self.equations.X
        self.transposed = self.X.T
        self.count = int(sums.total(np.array([np.count_nonzero(losses.bounds)], np.float64))[0])
        self.v, self.D, self.dalpha, self.signed, self.r, self.q = (np.empty(losses.bounds.shape) for _ in range(6))
        self.lack = np.empty((X.shape[1], losses.bounds.shape[1]))
        self.gap = self.lack_square = 0.0

    def measure(self, point: _Point) -> float:
        """Bounds, residuals and scalings at the point; keeps what is best in it. Returns the violation."""
        at, W = point.progress, point.weights
        F = self.X @ W
        found = normal_equations.measure(*self.spec, F, *point[2:6], self.v, self.D, self.signed)
        hinge, linear, gap, violation = found
        U = self.equations.centred(self.transposed @ self.signed)
        self.lack = U - W
        mine = [hinge, linear, gap, np.vdot(U, U), np.vdot(W, W), np.vdot(self.lack, self.lack)]
        hinge, linear, self.gap, square, norm, self.lack_square = self.sums.total(np.array(mine, np.float64)).tolist()
        t = min(1.0, linear / square) if square > 0 else 1.0
        primal = 0.5 * norm + hinge
        if primal < at.primal:
            at.primal = primal
            point.W[:] = W
        at.dual = min(max(at.dual, t * linear - 0.5 * t * t * square), at.primal)
        total = self.gap + 0.5 * self.lack_square
        if total < 0.9 * at.least_gap:
            at.least_gap, at.least_gap_at = total, at.number
        elif at.number - at.least_gap_at >= PATIENCE:
            at.stalled = 1.0
        return -self.sums.least(-float(violation))

    def step(self, point: _Point) -> bool:
        """Go on to the next point; False if rounding leaves no direction to be trusted.

        Where rounding spoils the directions, the largest scalings are cut off: rho added to 1 / D is a proximal term on
        alpha, which leaves the optimum where it is and the systems better conditioned. Near the end with a large C it
        makes the difference between gaps of 1e-8 and of less than 1e-9.
        """
        if self.gap <= 0:
            return False
        for attempt in range(DAMPINGS):
            if attempt:
                largest = -self.sums.least(-float(self.D.max()))
                self.D /= 1.0 + (100.0**attempt / largest) * self.D
            if self.equations.factor(self.D) and self._attempt(point):
                return True
        return False

    def _attempt(self, point: _Point) -> bool:
        """Predictor and corrector (Mehrotra 1992, section 2)."""
        if self._direction(self.v) is None:
            return False
        length, cross = normal_equations.predict(*point[2:6], self.dalpha)
        length, cross = min(1.0, self.sums.least(length)), float(self.sums.total(np.array([cross]))[0])
        share = max(0.0, 1.0 - length + length * length * cross / self.gap)
        target = share**3 * self.gap / (2 * self.count)
        normal_equations.correct(target, *point[2:6], self.v, self.dalpha, self.r, self.q, self.signed)
        Z = self._direction(self.signed)
        if Z is None:
            return False
        boundary = normal_equations.finish(*point[2:6], self.dalpha, self.r, self.q)
        length = min(1.0, BACK_OFF * self.sums.least(boundary))
        if not length > 1e-9:
            return False
        normal_equations.advance(length, self.spec[2], *point[2:6], self.dalpha, self.r, self.q)
        point.weights[:] = self.equations.centred(point.weights + length * Z)
        return True

    def _direction(self, q: Floats) -> Floats | None:
        """Solve for the changes of W, which it returns, and of alpha, refining until W and alpha agree again.

        D magnifies rounding without limit; every refinement wins back some digits.
        """
        np.multiply(self.D, q, out=self.dalpha)
        np.multiply(self.spec[0], self.dalpha, out=self.signed)
        Z = np.zeros_like(self.lack)
        lack = self.equations.centred(self.lack + self.transposed @ self.signed)
        before = np.inf
        for _ in range(REFINEMENTS):
            Y = self.equations.solve(lack)
            Z += Y
            normal_equations.move(self.spec[0], self.D, self.X @ Y, self.dalpha, self.signed)
            lack = self.equations.centred(self.lack + self.transposed @ self.signed - Z)
            left = float(self.sums.total(np.array([np.vdot(lack, lack)]))[0])
            if left <= 1e-9 * self.gap or not left < 0.25 * before:
                break
            before = left
        return Z if left <= max(self.gap, 0.25 * self.lack_square) else None
