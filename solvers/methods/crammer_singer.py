"""The multi-class machine of Crammer and Singer, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Crammer and Singer 2002, section 4, with C = 1/beta and margin 1. All dual variables of one example move together:
with b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum over alpha >= 0, sum alpha <= C is (b_c - theta)_+ at
the root theta of sum_c (b_c - theta)_+ = min(theta, C).
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.ascent import AscentParams, DualAscent, Task
from solvers.base import Handles
from solvers.kernels.blocks import simplex_root
from solvers.kernels.coefficients import Coefficients, foresee, score_listed
from solvers.kernels.rows import above, score
from solvers.kernels.visit import give, scratch, take


class CrammerSinger(DualAscent[AscentParams]):
    """All-in-one machine that takes the largest margin violation of an example."""

    name = "crammer_singer"
    title = "Crammer-Singer SVM"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True)
    Params = AscentParams

    def visit(self, *args: Any) -> int:
        return int(_visit(*args))

    def certify(self, *args: Any) -> tuple[float, float]:
        return _certify(*args)  # type: ignore[no-any-return]

    def loss_at_zero(self, n_classes: int) -> float:
        return 1.0


@njit(cache=True, nogil=True)
def _visit(
    task: Task,
    order: NDArray[np.int32],
    begin: int,
    end: int,
    full: bool,
    W: NDArray[Any],
    pool: Coefficients,
    rest: NDArray[np.uint8],
    tally: NDArray[np.float64],
) -> int:
    """Exact block steps on order[begin:end], over all classes or the listed ones; all else changes in place."""
    k, block = task.n_classes, scratch(W, task.n_classes)
    f, b, old, new = block.f, block.b, block.old, block.new
    for at in range(begin, end):
        if pool.used[0] + k > pool.classes.shape[0]:
            return at
        i = order[at]
        foresee(task.rows, pool, order, at, end, W, full)
        if not full and pool.length[i] == 0:
            continue
        y, C, K = task.y[i], task.bounds[i], task.rows.squares[i]
        if full:
            score(task.rows, i, W, f)
        else:
            score_listed(task.rows, pool, i, W, f)
        f_y = np.float64(f[y])
        f[y] = -np.inf
        m, S0 = take(pool, i, f_y, K, block)
        theta = simplex_root(b, m, C)
        n = m if not full else above(f, k, f_y - 1.0 + min(0.0, K * (theta - S0)), block.classes, m)
        if n > m:
            for t in range(m, n):
                b[t], old[t] = (1.0 - f_y + f[block.classes[t]]) / K + S0, 0.0
            theta = simplex_root(b, n, C)
        worst, held, low, used = 0.0, 0.0, np.inf, 0.0
        for t in range(n):
            g = (b[t] - old[t] - S0) * K
            worst = max(worst, g)
            held += old[t] * g
            if old[t] > 0.0:
                low = min(low, g)
            new[t] = max(b[t] - theta, 0.0)
            used += new[t]
        # where C is tiny against b, rounding may lift the sum above it, and the dual value with it
        if used > C:
            for t in range(n):
                new[t] *= C / used
        if full:
            tally[0] += C * worst - held
            tally[1] += C * worst
        # the slack C - sum alpha is one more variable, of gradient 0 (Crammer and Singer 2002, equation 24)
        if S0 < C * (1.0 - 1e-9):
            low = min(low, 0.0)
        if low < worst:
            tally[2] = max(tally[2], worst - low)
        gain = give(task.rows, i, y, W, pool, block, n)
        tally[3] += gain
        if gain > 0.0:
            rest[i] = 0
        elif full:
            rest[i] = min(rest[i] + 1, 255)
    return end


@njit(cache=True, nogil=True)
def _certify(task: Task, W: NDArray[Any], pool: Coefficients, gaps: NDArray[np.float64]) -> tuple[float, float]:
    """Weighted losses and dual variables summed over all examples that are not empty; gaps in place."""
    f = np.empty(W.shape[1], W.dtype)
    losses, total = 0.0, 0.0
    for i in range(task.y.shape[0]):
        if task.rows.squares[i] == 0.0:
            continue
        score(task.rows, i, W, f)
        f_y = np.float64(f[task.y[i]])
        f[task.y[i]] = -np.inf
        worst = np.float64(f[0])
        for c in range(1, task.n_classes):
            worst = max(worst, np.float64(f[c]))
        loss = task.bounds[i] * max(0.0, 1.0 - f_y + worst)
        gaps[i] = loss
        first = pool.start[i]
        for t in range(first + 1, first + pool.length[i]):
            total -= pool.values[t]
            gaps[i] += pool.values[t] * (1.0 - f_y + f[pool.classes[t]])
        losses += loss
    return losses, total
