"""The quadratic design of one column of a continuous code beside others that are kept.

    minimise  1/2 |m|^2 + sum_i C_i max(0, max_{r != y} b_ir + h_i (m_r - m_y))

over one number a class. Crammer and Singer 2002, equation 32 with the squared norm: their block step on the dual
variables of one example, where the inner product of two examples is h_i h_j and m is kept beside.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit

from solvers.core.base import State, Step, relative_gap
from solvers.core.model import Model
from solvers.numerics.array_types import Floats, Ints, Ints32
from solvers.numerics.block_roots import simplex_root
from solvers.output_codes.design.programs import Program
from solvers.output_codes.design.task import Design

SLICE_CELLS = 1 << 26
CERTIFY_EVERY = 4


class QuadraticColumn(Design):
    """The squared l2 norm of one column beside others, by block ascent over single examples."""

    def __init__(self, program: Program, tol: float, max_epochs: int, seed: int) -> None:
        assert program.offsets is not None
        self._program = program
        self._fixed = (np.ascontiguousarray(program.H[:, 0]), program.y, program.bounds, program.offsets)
        self._tol = tol
        self._max_epochs = max_epochs
        self._seed = seed

    def steps(self, state: State | None) -> Iterator[Step]:
        n, k = len(self._program.y), self._program.n_classes
        begin: State = {"alpha": np.zeros((n, k)), "m": np.zeros(k), "epoch": np.zeros(1, np.int64)}
        alpha, m, epoch = (np.array((state or begin)[name]) for name in ("alpha", "m", "epoch"))
        slice_epochs = CERTIFY_EVERY * max(1, SLICE_CELLS // (CERTIFY_EVERY * n * k))
        converged = False
        while epoch[0] < self._max_epochs and not converged:
            stop = min(int(epoch[0]) + slice_epochs, self._max_epochs)
            while epoch[0] < stop and not converged:
                epoch += 1
                order = np.random.default_rng([self._seed, int(epoch[0])]).permutation(n)
                _visit(*self._fixed, order, alpha, m)
                if epoch[0] % CERTIFY_EVERY == 0 or epoch[0] == stop:
                    primal, dual = _certify(*self._fixed, alpha, m)
                    dual = min(primal, dual)
                    converged = relative_gap(primal, dual) <= self._tol
            arrays = {"alpha": alpha, "m": m, "epoch": epoch}
            yield Step(int(epoch[0]), primal, dual, float("nan"), converged, arrays)

    def code(self, state: State) -> Floats | Model:
        return np.array(state["m"])[:, None]

    def nonzero_duals(self, state: State) -> float:
        return float(np.count_nonzero(state["alpha"])) / (len(self._program.y) * (self._program.n_classes - 1))


@njit(cache=True, nogil=True)
def _visit(h: Floats, y: Ints32, bounds: Floats, b: Floats, order: Ints, alpha: Floats, m: Floats) -> None:
    """Exact block steps on the examples of order; alpha (n_samples, n_classes) and m change in place."""
    k = m.shape[0]
    goals = np.empty(k)
    for at in range(order.shape[0]):
        i = order[at]
        own, K, S0 = y[i], h[i] * h[i], 0.0
        if K == 0.0:
            continue
        for c in range(k):
            S0 += alpha[i, c]
        for c in range(k):
            goals[c] = (b[i, c] + h[i] * (m[c] - m[own])) / K + alpha[i, c] + S0
        goals[own] = -np.inf
        theta = simplex_root(goals, k, bounds[i])
        total = 0.0
        for c in range(k):
            new = max(goals[c] - theta, 0.0)
            change = new - alpha[i, c]
            alpha[i, c] = new
            m[c] -= h[i] * change
            total += change
        m[own] += h[i] * total


@njit(cache=True, nogil=True)
def _certify(h: Floats, y: Ints32, bounds: Floats, b: Floats, alpha: Floats, m: Floats) -> tuple[float, float]:
    """Primal and dual value; m is made afresh, and examples that no column moves (h = 0) take their best alpha."""
    k = m.shape[0]
    losses, linear = 0.0, 0.0
    m[:] = 0.0
    for i in range(h.shape[0]):
        for c in range(k):
            m[c] -= h[i] * alpha[i, c]
            m[y[i]] += h[i] * alpha[i, c]
    for i in range(h.shape[0]):
        best, held, own = 0.0, 0.0, y[i]
        for c in range(k):
            if c != own:
                best = max(best, b[i, c] + h[i] * (m[c] - m[own]))
                held += alpha[i, c] * b[i, c]
        losses += bounds[i] * best
        linear += bounds[i] * best if h[i] == 0.0 else held
    half = 0.5 * float((m * m).sum())
    return half + losses, linear - half
