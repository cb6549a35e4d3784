"""Conjugate gradients on the dual variables of a few examples, for the machines with relative margins.

Steps of single examples creep where rows are nearly parallel: near-duplicates with different labels trade tiny amounts.
Here the listed variables of all given examples move together, by preconditioned conjugate gradients on the face of the
feasible set that they are on. A step that leaves the feasible set is projected back onto it, shortened to the best
point of the way there, and the method starts again on the new face (compare Moré and Toraldo 1991).

With v the change of the variables alpha_ic and dW = sum_i x_i ((sum_c v_ic) e_y - sum_c v_ic e_c)', the dual gains
g'v - |dW|^2 / 2, where g_ic = 1 - f_y + f_c.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.kernels.coefficients import Coefficients
from solvers.kernels.rows import Rows

Vector = NDArray[np.float64]
NEGLIGIBLE = 1e-12


@njit(cache=True, nogil=True)
def climb(
    some: NDArray[np.int32],
    rows: Rows,
    labels: NDArray[np.int32],
    bounds: Vector,
    n_classes: int,
    largest_loss: bool,
    W: NDArray[Any],
    pool: Coefficients,
    blank: NDArray[Any],
    most: int,
    reduction: float,
) -> tuple[float, int]:
    """Ascend on the listed variables of ``some`` examples, in place.

    ``blank`` is zero, of W's shape, and is left so. Ends after ``most`` products with the Hessian, or where the
    squared gradient has fallen to ``reduction`` of what it was. Returns what the dual has gained, and the products.
    """
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    cells, moved, width = W.reshape(-1), blank.reshape(-1), np.uint64(W.shape[1])
    begin, classes, at = _variables(some, pool)
    size = classes.shape[0]
    fixed = (indptr, indices, data, labels, some, begin, classes)
    alpha = np.empty(size)
    for t in range(size):
        alpha[t] = -pool.values[at[t]]
    first = alpha.copy()
    gradient = np.empty(size)
    _score(*fixed, cells, width, gradient)
    for t in range(size):
        gradient[t] = 1.0 - gradient[t]
    held = np.zeros(size, np.bool_)
    tied = np.zeros(some.shape[0], np.bool_)
    _faces(some, begin, bounds, largest_loss, alpha, gradient, held, tied)
    r, z, image, step = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    size_of_r = _precondition(some, begin, rows.squares, held, tied, gradient, r, z)
    goal = reduction * size_of_r
    p = z.copy()
    gain, products = 0.0, 0
    while products < most and size_of_r > goal:
        _add(*fixed, moved, width, p, 1.0)
        _score(*fixed, moved, width, image)
        _wipe(*fixed, moved, width)
        products += 1
        curvature = np.dot(p, image)
        if curvature <= 0.0:
            break
        length = size_of_r / curvature
        if _project(some, begin, bounds, largest_loss, alpha, p, length, step):
            gain += 0.5 * length * size_of_r
            for t in range(size):
                alpha[t] += length * p[t]
                gradient[t] -= length * image[t]
            before = size_of_r
            size_of_r = _precondition(some, begin, rows.squares, held, tied, gradient, r, z)
            for t in range(size):
                p[t] = z[t] + size_of_r / before * p[t]
            continue
        _add(*fixed, moved, width, step, 1.0)
        _score(*fixed, moved, width, image)
        _wipe(*fixed, moved, width)
        products += 1
        slope, curvature = np.dot(gradient, step), np.dot(step, image)
        if slope <= 0.0:
            break
        length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        gain += length * (slope - 0.5 * length * curvature)
        for t in range(size):
            alpha[t] += length * step[t]
            gradient[t] -= length * image[t]
        _faces(some, begin, bounds, largest_loss, alpha, gradient, held, tied)
        size_of_r = _precondition(some, begin, rows.squares, held, tied, gradient, r, z)
        p[:] = z
    for t in range(size):
        step[t] = alpha[t] - first[t]
    _add(*fixed, cells, width, step, 1.0)
    _write(some, begin, at, alpha, pool)
    return gain, products


@njit(cache=True, nogil=True)
def _variables(
    some: NDArray[np.int32], pool: Coefficients
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Where the variables of each example begin, and of each variable the class and the place in the pool."""
    begin = np.zeros(some.shape[0] + 1, np.int64)
    for e in range(some.shape[0]):
        begin[e + 1] = begin[e] + max(pool.length[some[e]] - 1, 0)
    classes, at = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int64)
    for e in range(some.shape[0]):
        for t in range(begin[e + 1] - begin[e]):
            place = pool.start[some[e]] + 1 + t
            classes[begin[e] + t], at[begin[e] + t] = pool.classes[place], place
    return begin, classes, at


@njit(cache=True, nogil=True)
def _score(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    labels: NDArray[np.int32],
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    classes: NDArray[np.int32],
    cells: NDArray[Any],
    width: np.uint64,
    out: Vector,
) -> None:
    """f_y - f_c of every variable, from the weights in cells."""
    for e in range(some.shape[0]):
        i = some[e]
        y, low, high = np.uint64(labels[i]), indptr[i], indptr[i + 1]
        f_y = cells.dtype.type(0)
        for p in range(low, high):
            f_y += data[p] * cells[np.uint64(indices[p]) * width + y]
        for t in range(begin[e], begin[e + 1]):
            c, f = np.uint64(classes[t]), cells.dtype.type(0)
            for p in range(low, high):
                f += data[p] * cells[np.uint64(indices[p]) * width + c]
            out[t] = f_y - f


@njit(cache=True, nogil=True)
def _add(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    labels: NDArray[np.int32],
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    classes: NDArray[np.int32],
    cells: NDArray[Any],
    width: np.uint64,
    v: Vector,
    scale: float,
) -> None:
    """Add to cells what the variables' change v makes of the weights."""
    for e in range(some.shape[0]):
        i = some[e]
        y, low, high = np.uint64(labels[i]), indptr[i], indptr[i + 1]
        own = 0.0
        for t in range(begin[e], begin[e + 1]):
            own += v[t]
            if v[t] != 0.0:
                c, s = np.uint64(classes[t]), cells.dtype.type(-scale * v[t])
                for p in range(low, high):
                    cells[np.uint64(indices[p]) * width + c] += s * data[p]
        if own != 0.0:
            s = cells.dtype.type(scale * own)
            for p in range(low, high):
                cells[np.uint64(indices[p]) * width + y] += s * data[p]


@njit(cache=True, nogil=True)
def _wipe(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    labels: NDArray[np.int32],
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    classes: NDArray[np.int32],
    cells: NDArray[Any],
    width: np.uint64,
) -> None:
    """Zero all cells that :func:`_add` may have touched."""
    zero = cells.dtype.type(0)
    for e in range(some.shape[0]):
        i = some[e]
        y = np.uint64(labels[i])
        for p in range(indptr[i], indptr[i + 1]):
            base = np.uint64(indices[p]) * width
            cells[base + y] = zero
            for t in range(begin[e], begin[e + 1]):
                cells[base + np.uint64(classes[t])] = zero


@njit(cache=True, nogil=True)
def _faces(
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    bounds: Vector,
    largest_loss: bool,
    alpha: Vector,
    gradient: Vector,
    held: NDArray[np.bool_],
    tied: NDArray[np.bool_],
) -> None:
    """Which variables stay at a bound, and which examples keep the sum of theirs, being at it and pushed outwards."""
    for e in range(some.shape[0]):
        C, total, free, push = bounds[some[e]], 0.0, 0, 0.0
        for t in range(begin[e], begin[e + 1]):
            total += alpha[t]
            held[t] = (alpha[t] <= 0.0 and gradient[t] <= 0.0) or (
                not largest_loss and alpha[t] >= C and gradient[t] >= 0.0
            )
            if not held[t]:
                free += 1
                push += gradient[t]
        tied[e] = largest_loss and total >= C * (1.0 - NEGLIGIBLE) and free > 0 and push >= 0.0


@njit(cache=True, nogil=True)
def _precondition(
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    squares: Vector,
    held: NDArray[np.bool_],
    tied: NDArray[np.bool_],
    gradient: Vector,
    r: Vector,
    z: Vector,
) -> float:
    """The gradient r along the face, z = r by the inverse of each example's own block |x|^2 (I + 11'); returns r'z."""
    product = 0.0
    for e in range(some.shape[0]):
        free, total = 0, 0.0
        for t in range(begin[e], begin[e + 1]):
            if not held[t]:
                free += 1
                total += gradient[t]
        mean = total / max(free, 1)
        shift = 0.0 if tied[e] else total / (free + 1)
        for t in range(begin[e], begin[e + 1]):
            r[t] = z[t] = 0.0
            if not held[t]:
                r[t] = gradient[t] - mean if tied[e] else gradient[t]
                z[t] = (r[t] - shift) / squares[some[e]]
                product += r[t] * z[t]
    return product


@njit(cache=True, nogil=True)
def _project(
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    bounds: Vector,
    largest_loss: bool,
    alpha: Vector,
    p: Vector,
    length: float,
    step: Vector,
) -> bool:
    """The step to the feasible point nearest to alpha + length p, and whether that is alpha + length p itself."""
    inside = True
    for e in range(some.shape[0]):
        C, total, theta = bounds[some[e]], 0.0, 0.0
        for t in range(begin[e], begin[e + 1]):
            value = alpha[t] + length * p[t]
            inside = inside and value >= 0.0 and (largest_loss or value <= C)
            total += max(value, 0.0)
        if largest_loss and total > C * (1.0 + NEGLIGIBLE):
            inside = False
            for _ in range(begin[e + 1] - begin[e]):
                above, total = 0, 0.0
                for t in range(begin[e], begin[e + 1]):
                    if alpha[t] + length * p[t] > theta:
                        above += 1
                        total += alpha[t] + length * p[t]
                if (total - C) / above <= theta:
                    break
                theta = (total - C) / above
        for t in range(begin[e], begin[e + 1]):
            value = max(alpha[t] + length * p[t] - theta, 0.0)
            step[t] = (value if largest_loss else min(value, C)) - alpha[t]
    return inside


@njit(cache=True, nogil=True)
def _write(
    some: NDArray[np.int32], begin: NDArray[np.int64], at: NDArray[np.int64], alpha: Vector, pool: Coefficients
) -> None:
    """Put the variables back into the pool; lists lose those that vanish."""
    for e in range(some.shape[0]):
        i, kept, total = some[e], 0, 0.0
        first = pool.start[i]
        for t in range(begin[e], begin[e + 1]):
            if alpha[t] > 0.0:
                kept += 1
                pool.classes[first + kept], pool.values[first + kept] = pool.classes[at[t]], -alpha[t]
                total += alpha[t]
        if pool.length[i] > 0:
            pool.values[first] = total
            pool.length[i] = kept + 1 if kept > 0 else 0
