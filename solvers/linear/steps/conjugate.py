"""Projected conjugate gradients on the dual variables of a few examples, for the machines with relative margins.

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

from solvers.linear.layouts import class_lists
from solvers.linear.layouts.class_lists import BITS, Lists
from solvers.linear.visits import Task
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.copies import copy

Vector = NDArray[np.float64]
NEGLIGIBLE = 1e-12


@njit(cache=True, nogil=True)
def projected_conjugate_gradients(
    some: NDArray[np.int32],
    task: Task,
    largest_loss: bool,
    W: NDArray[Any],
    lists: Lists | None,
    pool: Coefficients,
    blank: NDArray[Any],
    blank_values: NDArray[Any],
    most: int,
    reduction: float,
) -> tuple[float, int]:
    """Ascend on the listed variables of ``some`` examples, in place.

    ``blank``, of W's shape, and ``blank_values``, with a number for each entry of the lists, vanish, and are left so.
    Ends after ``most`` products with the Hessian, or where the squared gradient has fallen to ``reduction`` of what it
    was. Returns what the dual has gained, and the products.
    """
    rows, labels, bounds, _ = task
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    cells, moved, width = W.reshape(-1), blank.reshape(-1), np.uint64(W.shape[1])
    begin, classes, at = _variables(some, pool)
    size, longest, most_slots = classes.shape[0], 0, 0
    for e in range(some.shape[0]):
        n = begin[e + 1] - begin[e] + 1
        longest = max(longest, n)
        if lists is not None:
            most_slots = max(most_slots, n * (indptr[some[e] + 1] - lists.middle[some[e]]))
    scratch = (np.empty(longest, np.int32), np.empty(longest, W.dtype), np.empty(most_slots, np.int64))
    fixed = (indptr, indices, data, labels, some, begin, classes, lists, W.shape[0], width, *scratch)
    # the value of entry e of a list stands at 2 e + 1 in the lists themselves, at e in a change of them
    weights, changes = (cells, blank_values, 1, 0), (moved, blank_values, 1, 0)
    if lists is not None:
        weights = (cells, lists.cells, 2, 1)
    alpha = np.empty(size)
    for t in range(size):
        alpha[t] = -pool.values[at[t]]
    first = alpha.copy()
    gradient = np.empty(size)
    _score(*fixed, *weights, gradient)
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
        _add(*fixed, *changes, p)
        _score(*fixed, *changes, image)
        _wipe(*fixed, *changes)
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
        _add(*fixed, *changes, step)
        _score(*fixed, *changes, image)
        _wipe(*fixed, *changes)
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
        copy(z, p)
    for t in range(size):
        step[t] = alpha[t] - first[t]
    _add(*fixed, *weights, step)
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
    lists: Lists | None,
    n_hot: int,
    width: np.uint64,
    wanted: NDArray[np.int32],
    f: NDArray[Any],
    slots: NDArray[np.int64],
    cells: NDArray[Any],
    values: NDArray[Any],
    scale: int,
    offset: int,
    out: Vector,
) -> None:
    """f_y - f_c of every variable, from the weights in cells and, for features from middle on, in values."""
    for e in range(some.shape[0]):
        i = some[e]
        low, high, first, n = indptr[i], indptr[i + 1], begin[e], begin[e + 1] - begin[e]
        mid = high if lists is None else lists.middle[i]
        for t in range(n + 1):
            wanted[t] = classes[first + t] if t < n else labels[i]
            c, total = np.uint64(wanted[t]), cells.dtype.type(0)
            for p in range(low, mid):
                total += data[p] * cells[np.uint64(indices[p]) * width + c]
            f[t] = total
        if lists is not None:
            _place(indices, mid, high, n_hot, lists, wanted, n + 1, slots)
            for p in range(mid, high):
                x, slot = data[p], (p - mid) * (n + 1)
                for t in range(n + 1):
                    f[t] += x * values[scale * slots[slot + t] + offset]
        for t in range(n):
            out[first + t] = f[n] - f[t]


@njit(cache=True, nogil=True)
def _place(
    indices: NDArray[np.int32],
    low: int,
    high: int,
    n_hot: int,
    lists: Lists,
    wanted: NDArray[np.int32],
    n: int,
    slots: NDArray[np.int64],
) -> None:
    """Where the weights of n classes stand in the lists, where all of them have some."""
    class_lists.place(
        indices, low, high, n_hot, lists.start, lists.length, lists.cells, lists.clock[BITS], wanted, n, slots
    )


@njit(cache=True, nogil=True)
def _add(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    labels: NDArray[np.int32],
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    classes: NDArray[np.int32],
    lists: Lists | None,
    n_hot: int,
    width: np.uint64,
    wanted: NDArray[np.int32],
    f: NDArray[Any],
    slots: NDArray[np.int64],
    cells: NDArray[Any],
    values: NDArray[Any],
    scale: int,
    offset: int,
    v: Vector,
) -> None:
    """Add to cells what the variables' change v makes of the weights."""
    for e in range(some.shape[0]):
        i, own, n = some[e], 0.0, 0
        low, high = indptr[i], indptr[i + 1]
        mid = high if lists is None else lists.middle[i]
        for t in range(begin[e], begin[e + 1]):
            own += v[t]
            if v[t] != 0.0:
                wanted[n], f[n] = classes[t], cells.dtype.type(-v[t])
                n += 1
        if own != 0.0:
            wanted[n], f[n] = labels[i], cells.dtype.type(own)
            n += 1
        for t in range(n):
            c, s = np.uint64(wanted[t]), f[t]
            for p in range(low, mid):
                cells[np.uint64(indices[p]) * width + c] += s * data[p]
        if lists is not None:
            _place(indices, mid, high, n_hot, lists, wanted, n, slots)
            for p in range(mid, high):
                x, slot = data[p], (p - mid) * n
                for t in range(n):
                    values[scale * slots[slot + t] + offset] += f[t] * x


@njit(cache=True, nogil=True)
def _wipe(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    labels: NDArray[np.int32],
    some: NDArray[np.int32],
    begin: NDArray[np.int64],
    classes: NDArray[np.int32],
    lists: Lists | None,
    n_hot: int,
    width: np.uint64,
    wanted: NDArray[np.int32],
    f: NDArray[Any],
    slots: NDArray[np.int64],
    cells: NDArray[Any],
    values: NDArray[Any],
    scale: int,
    offset: int,
) -> None:
    """Zero all cells that :func:`_add` may have touched."""
    zero = cells.dtype.type(0)
    for e in range(some.shape[0]):
        i, first, n = some[e], begin[e], begin[e + 1] - begin[e]
        low, high = indptr[i], indptr[i + 1]
        mid = high if lists is None else lists.middle[i]
        for t in range(n + 1):
            wanted[t] = classes[first + t] if t < n else labels[i]
        for p in range(low, mid):
            base = np.uint64(indices[p]) * width
            for t in range(n + 1):
                cells[base + np.uint64(wanted[t])] = zero
        if lists is not None:
            _place(indices, mid, high, n_hot, lists, wanted, n + 1, slots)
            for t in range((high - mid) * (n + 1)):
                values[scale * slots[t] + offset] = zero


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
