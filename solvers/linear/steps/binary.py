"""Steps of binary machines for a block of columns at once, held in registers from the scores to the update.

A column splits the classes into two sides: t_c = +1 or -1 by the example's class, or 0 where it is left out. The
signed variables beta_ic = t_ic alpha_ic make w_c = sum_i beta_ic x_i, and the best beta_c is
clip(beta_c + (t_c - f_c - ridge beta_c) / (|x|^2 + ridge)) between 0 and t_c top; columns do not depend on each other.
"""

from typing import Any

import numpy as np
from numba import njit

from solvers.linear.steps.binary_simd import step1, step2, step4
from solvers.numerics.array_types import Array, Floats, Floats32, Ints32
from solvers.numerics.row_sums import sum_rows
from solvers.numerics.rows import ALIGNMENT, Rows
from solvers.numerics.simd import prefetch

AHEAD = 4


def block_width(n_columns: int, dtype: np.dtype[Any]) -> int:
    """Columns of one block: one, two or four vectors."""
    lanes = ALIGNMENT // dtype.itemsize
    return lanes * (1 if n_columns <= lanes else 2 if n_columns <= 2 * lanes else 4)


@njit(cache=True, nogil=True)
def visit(
    rows: Rows,
    kinds: Ints32,
    signs: Array,
    inverse: Array,
    ridge: Array,
    top: Array,
    order: Ints32,
    trifle: float,
    W: Array,
    beta: Array,
    gains: Floats32,
) -> float:
    """Exact steps on the examples of order for one block of columns; W (n_features, width), beta (n_samples, width).

    Row ``kinds[i]`` of ``signs`` (n_kinds, width) says on which side of each column the example stands. Returns the
    least that the dual has gained.
    """
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    vectors = W.shape[1] * W.itemsize // ALIGNMENT
    cells, width = W.reshape(-1), W.shape[1]
    spot = beta.reshape(-1)
    small, total = W.dtype.type(trifle), 0.0
    for at in range(order.shape[0]):
        if at + AHEAD < order.shape[0]:
            i = order[at + AHEAD]
            for p in range(indptr[i], indptr[i + 1], 16):
                prefetch(indices, p)
                prefetch(data, p)
            for c in range(0, width, ALIGNMENT // W.itemsize):
                prefetch(spot, np.int64(i) * width + c)
        if at + 2 < order.shape[0]:
            i = order[at + 2]
            for p in range(indptr[i], indptr[i + 1]):
                for c in range(0, width, ALIGNMENT // W.itemsize):
                    prefetch(cells, np.int64(indices[p]) * width + c)
        i = order[at]
        low, high = indptr[i], indptr[i + 1]
        one, side = beta[i], signs[kinds[i]]
        if vectors == 1:
            moved = step1(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        elif vectors == 2:
            moved = step2(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        else:
            moved = step4(W, indices, data, low, high, one, side, inverse[i], ridge[i], top[i], small)
        gains[i] = 0.0
        if moved > small:
            gains[i] = 0.5 * moved / inverse[i]
            total += gains[i]
    return total


@njit(cache=True, nogil=True)
def certify(
    rows: Rows, kinds: Ints32, signs: Array, bounds: Floats, squared: bool, W: Array, beta: Array, gaps: Floats,
    best: Array
) -> tuple[float, float]:  # fmt: skip
    """Of one block: weighted losses, and the dual objective without its norm; adds each example's gap to gaps.

    ``best[i]`` are the highest scores of example i on the two sides, -1 and +1; minus infinity where there is none.
    """
    f = np.zeros(W.shape[1], W.dtype)
    losses, total = 0.0, 0.0
    for i in range(kinds.shape[0]):
        low, high = rows.indptr[i], rows.indptr[i + 1]
        if low == high:
            continue
        sum_rows(W, rows.indices, rows.data, low, high, f)
        side = signs[kinds[i]]
        C, loss, dual, inner = bounds[i], 0.0, 0.0, 0.0
        other = own = -np.inf
        for c in range(f.shape[0]):
            if side[c] == 0:
                continue
            if side[c] > 0:
                own = max(own, np.float64(f[c]))
            else:
                other = max(other, np.float64(f[c]))
            score, alpha = np.float64(side[c] * f[c]), abs(np.float64(beta[i, c]))
            margin = max(1.0 - score, 0.0)
            loss += margin * margin if squared else margin
            dual += alpha - (0.25 / C * alpha * alpha if squared else 0.0)
            inner += alpha * score
        gaps[i] += C * loss + inner - dual
        best[i, 0], best[i, 1] = other, own
        losses += C * loss
        total += dual
    return losses, total


@njit(cache=True, nogil=True)
def rebuild(rows: Rows, W: Array, beta: Array) -> float:
    """W of one block afresh from beta, free of the rounding of many small updates; returns the sum of its squares."""
    W[:] = 0
    for i in range(beta.shape[0]):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p]], rows.data[p]
            for c in range(w.shape[0]):
                w[c] += x * beta[i, c]
    total = 0.0
    for j in range(W.shape[0]):
        part = 0.0
        for c in range(W.shape[1]):
            part += np.float64(W[j, c]) * np.float64(W[j, c])
        total += part
    return total
