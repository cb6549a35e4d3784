"""One binary machine a class against all others, all classes of an example in one step.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_c max(0, 1 - s_ic w_c' x_i)^q,   s_ic = +1 if c = y_i else -1

with q = 1 (hinge) or q = 2 (squared hinge). The dual step is that of Hsieh et al. 2008, Algorithm 1; the classes do
not depend on each other, so that one reading of an example serves all of them.
"""

from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field

from solvers.ascent import AscentParams, DualAscent, Task
from solvers.base import Handles
from solvers.kernels.coefficients import Coefficients, foresee, put, score_listed
from solvers.kernels.rows import above, score, update
from solvers.kernels.visit import NEGLIGIBLE, scratch


class OneVsRestParams(AscentParams):
    """Parameters of :class:`OneVsRest`."""

    loss: Literal["hinge", "squared_hinge"] = Field(default="hinge", description="Loss of each binary machine.")


class OneVsRest(DualAscent[OneVsRestParams]):
    """One linear SVM a class against the rest; the highest score wins."""

    name = "one_vs_rest"
    title = "One-vs-rest SVM"
    paper = "Hsieh et al. 2008; Rifkin and Klautau 2004"
    handles = Handles(flat=True)
    Params = OneVsRestParams

    def visit(self, *args: Any) -> int:
        return int(_visit(*args, self.params.loss == "squared_hinge"))

    def certify(self, *args: Any) -> tuple[float, float]:
        return _certify(*args, self.params.loss == "squared_hinge")  # type: ignore[no-any-return]

    def loss_at_zero(self, n_classes: int) -> float:
        return float(n_classes)


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
    squared: bool,
) -> int:
    """Exact steps on all variables of order[begin:end], or on the listed ones; all but order changes in place."""
    k, block = task.n_classes, scratch(W, task.n_classes)
    f, classes, moved, moves = block.f, block.classes, block.moved, block.moves
    for at in range(begin, end):
        if pool.used[0] + k > pool.classes.shape[0]:
            return at
        i = order[at]
        foresee(task.rows, pool, order, at, end, W, full)
        if not full and pool.length[i] == 0:
            continue
        y, C, K = task.y[i], task.bounds[i], task.rows.squares[i]
        ridge = 0.5 / C if squared else 0.0
        top = np.inf if squared else C
        own, n = 0.0, 0
        if full:
            score(task.rows, i, W, f)
        else:
            score_listed(task.rows, pool, i, W, f)
        f_y = f[y]
        for t in range(pool.start[i], pool.start[i] + pool.length[i]):
            c = pool.classes[t]
            if c == y:
                own = pool.values[t]
                continue
            classes[n], block.old[n], block.b[n] = c, -pool.values[t], 1.0 + f[c]
            f[c] = -np.inf
            n += 1
        f[y] = -np.inf
        m = above(f, k, -1.0, classes, n) if full else n
        for t in range(n, m):
            block.old[t], block.b[t] = 0.0, 1.0 + f[classes[t]]
        n = m
        if own > 0.0 or (full and f_y < 1.0):
            classes[n], block.old[n], block.b[n] = y, own, 1.0 - f_y
            n += 1

        changes = 0
        for t in range(n):
            margin, old = block.b[t], block.old[t]
            loss = C * max(margin, 0.0) ** (2 if squared else 1)
            if full:
                tally[0] += loss - old * margin + 0.5 * ridge * old * old
                tally[1] += loss
            g = margin - ridge * old
            if (g > 0.0 and old < top) or (g < 0.0 and old > 0.0):
                tally[2] = max(tally[2], abs(g))
            new = min(max(old + g / (K + ridge), 0.0), top)
            if abs(new - old) > NEGLIGIBLE * max(new, old):
                moved[changes] = classes[t]
                moves[changes] = new - old if classes[t] == y else old - new
                changes += 1
                tally[3] += 0.5 * (K + ridge) * (new - old) ** 2
            else:
                new = old
            block.new[t] = new
        if changes == 0:
            if full:
                rest[i] = min(rest[i] + 1, 255)
            continue
        rest[i] = 0
        update(task.rows, i, W, moved, moves, changes)
        kept = 0
        for t in range(n):
            if block.new[t] > 0.0:
                moved[kept] = classes[t]
                moves[kept] = block.new[t] if classes[t] == y else -block.new[t]
                kept += 1
        put(pool, i, moved, moves, kept)
    return end


@njit(cache=True, nogil=True)
def _certify(
    task: Task, W: NDArray[Any], pool: Coefficients, gaps: NDArray[np.float64], squared: bool
) -> tuple[float, float]:
    """Weighted losses and dual objective without its norm, over all examples that are not empty; gaps in place."""
    f = np.empty(W.shape[1], W.dtype)
    found = np.empty(task.n_classes, np.int32)
    losses, total = 0.0, 0.0
    for i in range(task.y.shape[0]):
        if task.rows.squares[i] == 0.0:
            continue
        score(task.rows, i, W, f)
        y, C = task.y[i], task.bounds[i]
        f[y] = -f[y]
        loss, dual, inner = 0.0, 0.0, 0.0
        for t in range(above(f, task.n_classes, -1.0, found, 0)):
            margin = 1.0 + f[found[t]]
            loss += C * (margin * margin if squared else margin)
        for t in range(pool.start[i], pool.start[i] + pool.length[i]):
            v = abs(pool.values[t])
            dual += v - (0.25 / C * v * v if squared else 0.0)
            inner -= v * f[pool.classes[t]]
        gaps[i] = loss + inner - dual
        losses += loss
        total += dual
    return losses, total
