"""Interior point method for sums of hinge losses, each between an example and a class, to any accuracy and any C.

    minimise  1/2 sum_c |w_c|^2 + sum_ic B_ic max(0, m_ic - s_ic w_c' x_i)   subject to  sum_c w_c = 0, if asked for

With p_ic = xi_ic - m_ic + s_ic w_c' x_i >= 0, xi_ic >= 0 and their multipliers alpha_ic and beta_ic = B_ic - alpha_ic,
Newton's method leaves one system a class, ``G_c = I + X' D_c X`` with ``D_ic = 1 / (p / alpha + xi / beta)``, as for
one linear SVM in Ferris and Munson 2002, section 3; the constraint adds one, ``sum_c G_c^-1``. The steps are those of
Mehrotra 1992. An iteration costs O(k (n d^2 + d^3)): it is meant for some hundreds of features and any number of
examples, where ascent over single examples needs passes in proportion to C.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.memory import TooLargeError
from solvers.linear.interior import barrier_blocks as kernels
from solvers.linear.interior.normal_equations import CHUNK, DENSE, NormalEquations

Array = NDArray[np.float64]

BACK_OFF = 0.995
PATIENCE = 12
REFINEMENTS = 6
DAMPINGS = 5


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

    signs: NDArray[np.int8]
    margins: Array
    bounds: Array

    @classmethod
    def of_classes(
        cls, y: NDArray[np.int32], n_classes: int, costs: Array, own: tuple[float, float], rest: tuple[float, float]
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
    state: Mapping[str, NDArray[Any]]


def estimate_bytes(n_samples: int, n_features: int, n_classes: int, density: float = 1.0) -> int:
    """Peak memory of :func:`iterations` beside its input, in bytes; ``density`` is the share of X that is not zero."""
    n, d, k = n_samples, n_features, n_classes
    dense = n * d if density >= DENSE else 0
    return 8 * (dense + 12 * n * k + 2 * k * d * d + 8 * k * d + 4 * d * d + 2 * CHUNK * d)


def estimate_flops(n_samples: int, n_features: int, n_classes: int) -> int:
    """Floating point operations of one iteration if X is dense and every loss is there."""
    n, d, k = n_samples, n_features, n_classes
    return k * (n * d * d + d**3 + 8 * n * d + 100 * n)


def iterations(
    X: sp.csr_matrix,
    losses: Losses,
    *,
    sum_to_zero: bool,
    state: Mapping[str, NDArray[Any]] | None = None,
    limit_bytes: int = 4 << 30,
) -> Iterator[Iterate]:
    """Iterates from the starting point, or from the one after ``state``; they end only when the method stalls.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
        Indices sorted within a row; made dense inside when a quarter of it or more is not zero.
    losses : Losses
    sum_to_zero : bool
        Constrain the weights of the classes to sum to zero.
    state : mapping of str to array, optional
        That of an earlier iterate of the same problem.
    limit_bytes : int
        Refuse problems that need more memory than this.

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
    return _iterate(X, losses, sum_to_zero, state)


def around(X: sp.csr_matrix, losses: Losses, W: Array) -> dict[str, NDArray[Any]]:
    """The state of a starting point at W (n_features, n_classes), as from the solution of a problem with other bounds.

    Slacks and dual variables are the centred ones: all products of a slack and its multiplier are equal, and together
    as large as the objective at W. What the point lacks of the central path is then that W and alpha do not agree.
    """
    present = losses.bounds > 0
    margins = losses.margins - losses.signs * (X @ W)
    primal = 0.5 * float(np.vdot(W, W)) + float((losses.bounds * np.maximum(margins, 0.0)).sum())
    if primal == 0.0:
        return _start(X.shape[1], losses)._asdict()
    target = primal / np.count_nonzero(present)
    bounds = np.where(present, losses.bounds, 1.0)
    slack, xi = _centred(bounds, margins, target), _centred(bounds, -margins, target)
    alpha, beta = np.minimum(target / slack, bounds), np.minimum(target / xi, bounds)
    clock = np.array([np.inf, 0.0, 0.0, np.inf, 0.0, 0.0])
    alpha, beta, slack, xi = (np.where(present, part, 0.0) for part in (alpha, beta, slack, xi))
    return _Point(np.zeros_like(W), W.copy(), alpha, beta, slack, xi, clock)._asdict()


def _centred(bounds: Array, margins: Array, target: float) -> Array:
    """The positive root p of ``target / p + target / (p + v) = B``: of the two forms that without cancellation."""
    half = bounds * margins - 2.0 * target
    root = np.hypot(bounds * margins, 2.0 * target)
    falling = half > 0
    under = np.where(falling, half + root, 2.0 * bounds)
    return np.asarray(np.where(falling, 2.0 * target * margins, root - half) / under)


def _iterate(
    X: sp.csr_matrix, losses: Losses, sum_to_zero: bool, state: Mapping[str, NDArray[Any]] | None
) -> Iterator[Iterate]:
    newton = _Newton(X, losses, sum_to_zero)
    point = _start(X.shape[1], losses) if state is None else _Point(*(np.array(state[f]) for f in _Point._fields))
    told = state is not None
    while True:
        violation = newton.measure(point)
        primal, dual, number, _, _, stalled = point.clock
        if not told:
            yield Iterate(int(number), float(primal), float(dual), violation, bool(stalled), point._asdict())
        if stalled:
            return
        point.clock[5] = not newton.step(point)
        point.clock[2] += 1
        told = False


class _Point(NamedTuple):
    """All that changes; ``clock``: best primal, best dual, iterations, gap last gained from, when, stalled."""

    W: Array
    weights: Array
    alpha: Array
    beta: Array
    slack: Array
    xi: Array
    clock: Array


def _start(n_features: int, losses: Losses) -> _Point:
    """Dual variables in the middle of their box; W = 0, which is feasible, and slacks about as large as the margins."""
    present = losses.bounds > 0
    m = losses.margins
    centre = float(m[present].mean()) if present.any() else 0.0
    xi = np.where(present, 0.5 * (m + np.hypot(m, 2.0 * (centre or 1.0))), 0.0)
    half = 0.5 * losses.bounds
    W = np.zeros((n_features, m.shape[1]))
    clock = np.array([np.inf, 0.0, 0.0, np.inf, 0.0, 0.0])
    return _Point(W, W.copy(), half, half.copy(), np.where(present, xi - m, 0.0), xi, clock)


class _Newton:
    """One problem, with the work space of its iterations."""

    def __init__(self, X: sp.csr_matrix, losses: Losses, sum_to_zero: bool) -> None:
        self.spec = (losses.signs, losses.margins, losses.bounds)
        self.equations = NormalEquations(X, losses.bounds, sum_to_zero)
        self.X = self.equations.X
        self.transposed = self.X.T
        self.count = int(np.count_nonzero(losses.bounds))
        self.v, self.D, self.dalpha, self.signed, self.r, self.q = (np.empty(losses.bounds.shape) for _ in range(6))
        self.lack = np.empty((X.shape[1], losses.bounds.shape[1]))
        self.gap = 0.0

    def measure(self, point: _Point) -> float:
        """Bounds, residuals and scalings at the point; keeps what is best in it. Returns the violation."""
        clock, W = point.clock, point.weights
        F = self.X @ W
        hinge, linear, self.gap, violation = kernels.measure(*self.spec, F, *point[2:6], self.v, self.D, self.signed)
        U = self.equations.centred(self.transposed @ self.signed)
        self.lack = U - W
        square = float(np.vdot(U, U))
        t = min(1.0, linear / square) if square > 0 else 1.0
        primal = 0.5 * float(np.vdot(W, W)) + hinge
        if primal < clock[0]:
            clock[0] = primal
            point.W[:] = W
        clock[1] = min(max(clock[1], t * linear - 0.5 * t * t * square), clock[0])
        total = self.gap + 0.5 * float(np.vdot(self.lack, self.lack))
        if total < 0.9 * clock[3]:
            clock[3:5] = total, clock[2]
        elif clock[2] - clock[4] >= PATIENCE:
            clock[5] = 1.0
        return float(violation)

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
                self.D /= 1.0 + (100.0**attempt / self.D.max()) * self.D
            if self.equations.factor(self.D) and self._attempt(point):
                return True
        return False

    def _attempt(self, point: _Point) -> bool:
        """Predictor and corrector (Mehrotra 1992, section 2)."""
        if self._direction(self.v) is None:
            return False
        length, cross = kernels.predict(*point[2:6], self.dalpha)
        length = min(1.0, length)
        share = max(0.0, 1.0 - length + length * length * cross / self.gap)
        target = share**3 * self.gap / (2 * self.count)
        kernels.correct(target, *point[2:6], self.v, self.dalpha, self.r, self.q, self.signed)
        Z = self._direction(self.signed)
        if Z is None:
            return False
        length = min(1.0, BACK_OFF * kernels.finish(*point[2:6], self.dalpha, self.r, self.q))
        if not length > 1e-9:
            return False
        kernels.advance(length, self.spec[2], *point[2:6], self.dalpha, self.r, self.q)
        point.weights[:] = self.equations.centred(point.weights + length * Z)
        return True

    def _direction(self, q: Array) -> Array | None:
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
            kernels.move(self.spec[0], self.D, self.X @ Y, self.dalpha, self.signed)
            lack = self.equations.centred(self.lack + self.transposed @ self.signed - Z)
            left = float(np.vdot(lack, lack))
            if left <= 1e-9 * self.gap or not left < 0.25 * before:
                break
            before = left
        return Z if left <= max(self.gap, 0.25 * float(np.vdot(self.lack, self.lack))) else None
