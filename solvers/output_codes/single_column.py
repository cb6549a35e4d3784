"""The quadratic design of one column of a continuous code beside others that are kept.

    minimise  1/2 |m|^2 + sum_i C_i max(0, max_{r != y} b_ir + h_i (m_r - m_y))

over one number a class. Crammer and Singer 2002, equation 32 with the squared norm: their block step on the dual
variables of one example, where the inner product of two examples is h_i h_j and m is kept beside.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.numerics.block_roots import simplex_root


@njit(cache=True, nogil=True)
def visit(
    h: NDArray[np.float64],
    y: NDArray[np.int32],
    bounds: NDArray[np.float64],
    b: NDArray[np.float64],
    order: NDArray[np.int64],
    alpha: NDArray[np.float64],
    m: NDArray[np.float64],
) -> None:
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
def certify(
    h: NDArray[np.float64],
    y: NDArray[np.int32],
    bounds: NDArray[np.float64],
    b: NDArray[np.float64],
    alpha: NDArray[np.float64],
    m: NDArray[np.float64],
) -> tuple[float, float]:
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
