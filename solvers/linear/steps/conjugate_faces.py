"""Faces of the feasible set of the dual variables that conjugate gradients move together.

The notation is that of :mod:`solvers.linear.steps.conjugate`.
"""

from typing import NamedTuple

from numba import njit

from solvers.numerics.array_types import Bools, Floats, Ints, Ints32

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
        Where the values of the variables stand in the pool.
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
