"""Interior point method for sums of hinge losses, each between an example and a class, to any accuracy and any C.

    minimise  1/2 sum_c |w_c|^2 + sum_ic B_ic max(0, m_ic - s_ic w_c' x_i)   subject to  sum_c w_c = 0, if asked for

With p_ic = xi_ic - m_ic + s_ic w_c' x_i >= 0, xi_ic >= 0 and their multipliers alpha_ic and beta_ic = B_ic - alpha_ic,
Newton's method leaves one system a class, ``G_c = I + X' D_c X`` with ``D_ic = 1 / (p / alpha + xi / beta)``, as for
one linear SVM in Ferris and Munson 2002, section 3; the constraint adds one, ``sum_c G_c^-1``. The steps are those of
Mehrotra 1992. An iteration costs O(k (n d^2 + d^3)): it is meant for some hundreds of features and any number of
examples, where ascent over single examples needs passes in proportion to C.
"""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.memory import TooLargeError
from solvers.linear.interior import barrier_blocks
from solvers.linear.interior.iterate import Iterate, Losses
from solvers.linear.interior.normal_equations import CHUNK, DENSE, NormalEquations
from solvers.numerics.array_types import Array, Floats

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


def around(X: sp.csr_matrix, losses: Losses, W: Floats) -> dict[str, Array]:
    """The state of a starting point at W (n_features, n_classes), as from the solution of a problem with other bounds.

    Slacks and dual variables are the centred ones: all products of a slack and its multiplier are equal, and together
    as large as the objective at W. What the point lacks of the central path is then that W and alpha do not agree.
    """
    present = losses.bounds > 0
    margins = losses.margins - losses.signs * (X @ W)
    primal = 0.5 * float(np.vdot(W, W)) + float((losses.bounds * np.maximum(margins, 0.0)).sum())
    if primal == 0.0:
        return _start(X.shape[1], losses).state()
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
    X: sp.csr_matrix, losses: Losses, sum_to_zero: bool, state: Mapping[str, Array] | None
) -> Iterator[Iterate]:
    newton = _Newton(X, losses, sum_to_zero)
    point = _start(X.shape[1], losses) if state is None else _Point.of(state)
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
    def of(cls, state: Mapping[str, Array]) -> "_Point":
        """From a state, by copies."""
        W, weights, alpha, beta, slack, xi, progress = (np.array(state[name]) for name in cls._fields)
        return cls(W, weights, alpha, beta, slack, xi, _Progress(*progress.tolist()))

    def state(self) -> dict[str, Array]:
        """The arrays, live, and the progress as one of its own."""
        return self._asdict() | {"progress": np.array(astuple(self.progress))}


def _start(n_features: int, losses: Losses) -> _Point:
    """Dual variables in the middle of their box; W = 0, which is feasible, and slacks about as large as the margins."""
    present = losses.bounds > 0
    m = losses.margins
    centre = float(m[present].mean()) if present.any() else 0.0
    xi = np.where(present, 0.5 * (m + np.hypot(m, 2.0 * (centre or 1.0))), 0.0)
    half = 0.5 * losses.bounds
    W = np.zeros((n_features, m.shape[1]))
    return _Point(W, W.copy(), half, half.copy(), np.where(present, xi - m, 0.0), xi, _Progress())


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
        at, W = point.progress, point.weights
        F = self.X @ W
        hinge, linear, self.gap, violation = barrier_blocks.measure(
            *self.spec, F, *point[2:6], self.v, self.D, self.signed
        )
        U = self.equations.centred(self.transposed @ self.signed)
        self.lack = U - W
        square = float(np.vdot(U, U))
        t = min(1.0, linear / square) if square > 0 else 1.0
        primal = 0.5 * float(np.vdot(W, W)) + hinge
        if primal < at.primal:
            at.primal = primal
            point.W[:] = W
        at.dual = min(max(at.dual, t * linear - 0.5 * t * t * square), at.primal)
        total = self.gap + 0.5 * float(np.vdot(self.lack, self.lack))
        if total < 0.9 * at.least_gap:
            at.least_gap, at.least_gap_at = total, at.number
        elif at.number - at.least_gap_at >= PATIENCE:
            at.stalled = 1.0
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
        length, cross = barrier_blocks.predict(*point[2:6], self.dalpha)
        length = min(1.0, length)
        share = max(0.0, 1.0 - length + length * length * cross / self.gap)
        target = share**3 * self.gap / (2 * self.count)
        barrier_blocks.correct(target, *point[2:6], self.v, self.dalpha, self.r, self.q, self.signed)
        Z = self._direction(self.signed)
        if Z is None:
            return False
        length = min(1.0, BACK_OFF * barrier_blocks.finish(*point[2:6], self.dalpha, self.r, self.q))
        if not length > 1e-9:
            return False
        barrier_blocks.advance(length, self.spec[2], *point[2:6], self.dalpha, self.r, self.q)
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
            barrier_blocks.move(self.spec[0], self.D, self.X @ Y, self.dalpha, self.signed)
            lack = self.equations.centred(self.lack + self.transposed @ self.signed - Z)
            left = float(np.vdot(lack, lack))
            if left <= 1e-9 * self.gap or not left < 0.25 * before:
                break
            before = left
        return Z if left <= max(self.gap, 0.25 * float(np.vdot(self.lack, self.lack))) else None
