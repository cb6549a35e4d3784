"""Projected conjugate gradients on the dual variables of a few examples, for the machines with relative margins.

Steps of single examples creep where rows are nearly parallel: near-duplicates with different labels trade tiny amounts.
Here the listed variables of all given examples move together, by preconditioned conjugate gradients on the face of the
feasible set that they are on. A step that leaves the feasible set is projected back onto it, shortened to the best
point of the way there, and the method starts again on the new face (compare Moré and Toraldo 1991).

With v the change of the variables alpha_ic and dW = sum_i x_i ((sum_c v_ic) e_y - sum_c v_ic e_c)', the dual gains
g'v - |dW|^2 / 2, where g_ic = 1 - f_y + f_c, or with costs their own in place of 1.

Faces of the feasible set of the dual variables that conjugate gradients move together.

The notation is that of :mod:`solvers.linear.steps.conjugate`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, cost_of
from solvers.linear.layouts import class_lists
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.visits import Task
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.copies import copy

Vector = Floats
NEGLIGIBLE = 1e-12


class Chosen(NamedTuple):
    """The examples that move together, and their listed variables.

    Attributes
    ----------
    some : int32 array, shape (n_chosen,)
    begin : int64 array, shape (n_chosen + 1,)
        Where the variables of each example begin.
    classes : int32 array, shape (n_variables,)
    at : int64 array, shape (n_variables,)
        The places of the values of the variables in the pool.
    """

    some: Ints32
    begin: Ints
    classes: Ints32
    at: Ints


@njit(cache=True, nogil=True)
def faces(
    chosen: Chosen, bounds: Vector, largest_loss: bool, alpha: Vector, gradient: Vector, held: Bools, tied: Bools
) -> None:
    """Which variables stay at a bound, and which examples keep the sum of theirs, being at it and pushed outwards."""
    some, begin = chosen.some, chosen.begin
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
def precondition(
    chosen: Chosen, squares: Vector, held: Bools, tied: Bools, gradient: Vector, r: Vector, z: Vector
) -> float:
    """The gradient r along the face, z = r by the inverse of each example's own block |x|^2 (I + 11'); returns r'z."""
    some, begin = chosen.some, chosen.begin
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
def project(
    chosen: Chosen, bounds: Vector, largest_loss: bool, alpha: Vector, p: Vector, length: float, step: Vector
) -> bool:
    """The step to the feasible point nearest to alpha + length p, and whether that is alpha + length p itself."""
    some, begin = chosen.some, chosen.begin
    inside = True
    for e in range(some.shape[0]):
        C, total, top, theta = bounds[some[e]], 0.0, 0.0, 0.0
        for t in range(begin[e], begin[e + 1]):
            value = alpha[t] + length * p[t]
            inside = inside and value >= 0.0 and (largest_loss or value <= C)
            total += max(value, 0.0)
            top = max(top, value)
        if largest_loss and total > C * (1.0 + NEGLIGIBLE):
            inside = False
            # relative to the largest value: far outside, where C vanishes beside that, both would be the same number
            theta = -min(top, C)
            for _ in range(begin[e + 1] - begin[e]):
                above, total = 0, 0.0
                for t in range(begin[e], begin[e + 1]):
                    value = alpha[t] + length * p[t] - top
                    if value >= theta:
                        above += 1
                        total += value
                if (total - C) / above <= theta:
                    break
                theta = (total - C) / above
        else:
            top = 0.0
        for t in range(begin[e], begin[e + 1]):
            value = max(alpha[t] + length * p[t] - top - theta, 0.0)
            step[t] = (value if largest_loss else min(value, C)) - alpha[t]
    return inside


class Values(NamedTuple):
    """Weights or a change of them: dense rows, and for entry e of the lists ``values[scale e + offset]``."""

    dense: Array
    values: Array
    scale: int
    offset: int


class Scratch(NamedTuple):
    """For the variables of one example and its own class: the classes, their scores or steps, their list entries."""

    wanted: Ints32
    f: Array
    slots: Ints


@njit(cache=True, nogil=True)
def projected_conjugate_gradients(
    some: Ints32,
    task: Task,
    largest_loss: bool,
    W: Array,
    lists: Lists | None,
    pool: Coefficients,
    blank: Array,
    blank_values: Array,
    most: int,
    reduction: float,
    costs: Costs | None,
) -> tuple[float, int]:
    """Ascend on the listed variables of ``some`` examples, in place.

    ``blank``, of W's shape, and ``blank_values``, with a number for each entry of the lists, vanish, and are left so.
    Ends after ``most`` products with the Hessian, or where the squared gradient has fallen to ``reduction`` of what it
    was. Returns what the dual has gained, and the products.
    """
    bounds, squares = task.bounds, task.rows.squares
    chosen = _variables(some, pool)
    scratch, size = _scratch(task, chosen, lists, W), chosen.classes.shape[0]
    # the value of entry e of a list is at 2 e + 1 in the lists themselves, at e in a change of them
    weights, change = Values(W, blank_values, 1, 0), Values(blank, blank_values, 1, 0)
    if lists is not None:
        weights = Values(W, lists.cells, 2, 1)
    alpha = np.empty(size)
    for t in range(size):
        alpha[t] = -pool.values[chosen.at[t]]
    first = alpha.copy()
    gradient = np.empty(size)
    _score(task, chosen, lists, weights, scratch, gradient)
    for t in range(size):
        gradient[t] = 1.0 - gradient[t]
    if costs is not None:
        for e in range(some.shape[0]):
            for t in range(chosen.begin[e], chosen.begin[e + 1]):
                gradient[t] += cost_of(costs, task.y[some[e]], chosen.classes[t]) - 1.0
    held = np.zeros(size, np.bool_)
    tied = np.zeros(some.shape[0], np.bool_)
    faces(chosen, bounds, largest_loss, alpha, gradient, held, tied)
    r, z, image, step = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    size_of_r = precondition(chosen, squares, held, tied, gradient, r, z)
    goal = reduction * size_of_r
    p = z.copy()
    gain, products = 0.0, 0
    while products < most and size_of_r > goal:
        _multiply(task, chosen, lists, change, scratch, p, image)
        products += 1
        curvature = np.dot(p, image)
        if curvature <= 0.0:
            break
        length = size_of_r / curvature
        if length == np.inf:
            break
        if project(chosen, bounds, largest_loss, alpha, p, length, step):
            gain += 0.5 * length * size_of_r
            _move(length, p, image, alpha, gradient)
            before = size_of_r
            size_of_r = precondition(chosen, squares, held, tied, gradient, r, z)
            for t in range(size):
                p[t] = z[t] + size_of_r / before * p[t]
            continue
        _multiply(task, chosen, lists, change, scratch, step, image)
        products += 1
        slope, curvature = np.dot(gradient, step), np.dot(step, image)
        if slope <= 0.0:
            break
        length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        gain += length * (slope - 0.5 * length * curvature)
        _move(length, step, image, alpha, gradient)
        faces(chosen, bounds, largest_loss, alpha, gradient, held, tied)
        size_of_r = precondition(chosen, squares, held, tied, gradient, r, z)
        copy(z, p)
    for t in range(size):
        step[t] = alpha[t] - first[t]
    _add(task, chosen, lists, weights, scratch, step)
    _write(chosen, alpha, pool)
    return gain, products


@njit(cache=True, nogil=True)
def _variables(some: Ints32, pool: Coefficients) -> Chosen:
    """Where the variables of each example begin, and of each variable the class and the place in the pool."""
    begin = np.zeros(some.shape[0] + 1, np.int64)
    for e in range(some.shape[0]):
        begin[e + 1] = begin[e] + max(pool.length[some[e]] - 1, 0)
    classes, at = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int64)
    for e in range(some.shape[0]):
        for t in range(begin[e + 1] - begin[e]):
            place = pool.start[some[e]] + 1 + t
            classes[begin[e] + t], at[begin[e] + t] = pool.classes[place], place
    return Chosen(some, begin, classes, at)


@njit(cache=True, nogil=True)
def _scratch(task: Task, chosen: Chosen, lists: Lists | None, W: Array) -> Scratch:
    """As much as the example with the most variables takes."""
    some, begin, indptr, longest, most_slots = chosen.some, chosen.begin, task.rows.indptr, 0, 0
    for e in range(some.shape[0]):
        n = begin[e + 1] - begin[e] + 1
        longest = max(longest, n)
        if lists is not None:
            most_slots = max(most_slots, n * (indptr[some[e] + 1] - lists.middle[some[e]]))
    return Scratch(np.empty(longest, np.int32), np.empty(longest, W.dtype), np.empty(most_slots, np.int64))


@njit(inline="always")
def _multiply(
    task: Task, chosen: Chosen, lists: Lists | None, change: Values, scratch: Scratch, v: Vector, out: Vector
) -> None:
    """The product of the Hessian with v; ``change`` vanishes before and after."""
    _add(task, chosen, lists, change, scratch, v)
    _score(task, chosen, lists, change, scratch, out)
    _wipe(task, chosen, lists, change, scratch)


@njit(inline="always")
def _move(length: float, direction: Vector, image: Vector, alpha: Vector, gradient: Vector) -> None:
    """Go so far in a direction, of which ``image`` is the product with the Hessian."""
    for t in range(alpha.shape[0]):
        alpha[t] += length * direction[t]
        gradient[t] -= length * image[t]


@njit(cache=True, nogil=True)
def _score(task: Task, chosen: Chosen, lists: Lists | None, weights: Values, scratch: Scratch, out: Vector) -> None:
    """f_y - f_c of every variable."""
    some, begin, classes, _ = chosen
    indptr, indices, data, labels = task.rows.indptr, task.rows.indices, task.rows.data, task.y
    cells, width = weights.dense.reshape(-1), np.uint64(weights.dense.shape[1])
    _, values, scale, offset = weights
    wanted, f, slots = scratch
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
            _place(indices, mid, high, weights.dense.shape[0], lists, wanted, n + 1, slots)
            for p in range(mid, high):
                x, slot = data[p], (p - mid) * (n + 1)
                for t in range(n + 1):
                    f[t] += x * values[scale * slots[slot + t] + offset]
        for t in range(n):
            out[first + t] = f[n] - f[t]


@njit(inline="always")
def _place(indices: Ints32, low: int, high: int, n_hot: int, lists: Lists, wanted: Ints32, n: int, slots: Ints) -> None:
    """The places of the weights of n classes in the lists, where all of them have some."""
    class_lists.place(
        indices, low, high, n_hot, lists.start, lists.length, lists.cells, lists.counters[0].bits, wanted, n, slots
    )


@njit(cache=True, nogil=True)
def _add(task: Task, chosen: Chosen, lists: Lists | None, weights: Values, scratch: Scratch, v: Vector) -> None:
    """Add to the weights what the variables' change v makes of them."""
    some, begin, classes, _ = chosen
    indptr, indices, data, labels = task.rows.indptr, task.rows.indices, task.rows.data, task.y
    cells, width = weights.dense.reshape(-1), np.uint64(weights.dense.shape[1])
    _, values, scale, offset = weights
    wanted, f, slots = scratch
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
            _place(indices, mid, high, weights.dense.shape[0], lists, wanted, n, slots)
            for p in range(mid, high):
                x, slot = data[p], (p - mid) * n
                for t in range(n):
                    values[scale * slots[slot + t] + offset] += f[t] * x


@njit(cache=True, nogil=True)
def _wipe(task: Task, chosen: Chosen, lists: Lists | None, change: Values, scratch: Scratch) -> None:
    """Zero all weights that :func:`_add` may have touched."""
    some, begin, classes, _ = chosen
    indptr, indices, labels = task.rows.indptr, task.rows.indices, task.y
    cells, width = change.dense.reshape(-1), np.uint64(change.dense.shape[1])
    _, values, scale, offset = change
    wanted, _, slots = scratch
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
            _place(indices, mid, high, change.dense.shape[0], lists, wanted, n + 1, slots)
            for t in range((high - mid) * (n + 1)):
                values[scale * slots[t] + offset] = zero


@njit(cache=True, nogil=True)
def _write(chosen: Chosen, alpha: Vector, pool: Coefficients) -> None:
    """Put the variables back into the pool; lists lose those that vanish."""
    some, begin, _, at = chosen
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
