"""The multi-class machine of Weston and Watkins, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Weston and Watkins 1999; dual and notation of Alber et al. 2017, equations (3) and (5). There Algorithm 3 moves one
variable alpha_ic at a time; here all variables of one example move together, to the exact maximum: with
b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum is clip(b_c - S, 0, C) at the root S of its own sum.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.ascent import AscentParams, DualAscent, Task
from solvers.base import Handles
from solvers.kernels.blocks import box_root
from solvers.kernels.coefficients import Coefficients, foresee, score_listed
from solvers.kernels.rows import above, score
from solvers.kernels.visit import give, scratch, take


class WestonWatkins(DualAscent[AscentParams]):
    """All-in-one machine that sums the margin violations of an example over the wrong classes."""

    name = "weston_watkins"
    title = "Weston-Watkins SVM"
    paper = "Weston and Watkins 1999; Alber et al. 2017"
    handles = Handles(flat=True)
    Params = AscentParams

    def visit(self, *args: Any) -> int:
        return int(_visit(*args))

    def certify(self, *args: Any) -> tuple[float, float]:
        return _certify(*args)  # type: ignore[no-any-return]

    def loss_at_zero(self, n_classes: int) -> float:
        return n_classes - 1.0


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
        # the variables that are not zero come first: their own root bounds the root of all from below
        m, S0 = take(pool, i, f_y, K, block)
        S = box_root(b, m, C, 1.0, S0)
        n = m if not full else above(f, k, f_y - 1.0 + min(0.0, K * (S - S0)), block.classes, m)
        if n > m:
            for t in range(m, n):
                b[t], old[t] = (1.0 - f_y + f[block.classes[t]]) / K + S0, 0.0
            S = box_root(b, n, C, 1.0, S)
        for t in range(n):
            g = (b[t] - old[t] - S0) * K
            if full:
                tally[0] += C * max(g, 0.0) - old[t] * g
                tally[1] += C * max(g, 0.0)
            if (g > 0.0 and old[t] < C) or (g < 0.0 and old[t] > 0.0):
                tally[2] = max(tally[2], abs(g))
            new[t] = min(max(b[t] - S, 0.0), C)
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
    found = np.empty(task.n_classes, np.int32)
    losses, total = 0.0, 0.0
    for i in range(task.y.shape[0]):
        if task.rows.squares[i] == 0.0:
            continue
        score(task.rows, i, W, f)
        f_y = np.float64(f[task.y[i]])
        f[task.y[i]] = -np.inf
        loss, dual = 0.0, 0.0
        for t in range(above(f, task.n_classes, f_y - 1.0, found, 0)):
            loss += 1.0 - f_y + f[found[t]]
        gaps[i] = task.bounds[i] * loss
        first = pool.start[i]
        for t in range(first + 1, first + pool.length[i]):
            dual -= pool.values[t]
            gaps[i] += pool.values[t] * (1.0 - f_y + f[pool.classes[t]])
        losses += task.bounds[i] * loss
        total += dual
    return losses, total
