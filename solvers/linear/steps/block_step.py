"""The exact step on all dual variables of one example, for the machines with relative margins.

With g_c = 1 - f_y + f_c, the derivative of the dual along alpha_c, K = |x|^2, S0 = sum alpha and
b_c = g_c / K + alpha_c + S0, the optimum of the summed losses (Weston and Watkins 1999; Alber et al. 2017, equation 3)
is clip(b_c - S, 0, C) at the root S of its own sum, and that of the largest loss (Crammer and Singer 2002, equation 37)
is (b_c - theta)_+ at the root theta of sum (b_c - theta)_+ = min(theta, C).

All functions are inlined where they are called: passing arrays on costs reference counts, half the time of a visit. An
array that an inlined function takes into a branch with a call in it is counted as well, at every visit: so the two
roots are called where they are needed, and visits read and write their lists of coefficients themselves.

Sparse dual variables that were scaled, brought to their bounds where rounding has kept them from there.
"""

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, costs_of
from solvers.numerics.array_types import Array, Floats, Ints, Ints32
from solvers.numerics.block_roots import box_root, simplex_root
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import ALIGNMENT, PARTS, best_of_parts
from solvers.numerics.scaling_search import LARGEST, note
from solvers.numerics.simd import above_mask, largest, lowest_bit

NEAR = 1.0 - 16.0 * float(np.finfo(np.float64).eps)


@njit(cache=True, nogil=True)
def snap_to_bounds(start: Ints, length: Ints32, values: Floats, bounds: Floats) -> None:
    """In the lists of a pool, whose first entry is the sum of the others with its sign turned; values in place."""
    for i in range(start.shape[0]):
        first, total = start[i], 0.0
        for t in range(first + 1, first + length[i]):
            if -values[t] >= NEAR * bounds[i]:
                values[t] = -bounds[i]
            total -= values[t]
        if length[i] > 0:
            values[first] = total


# a change below this share of the variable is rounding: at a large C, margins have to be known to far less than 1 / C
NEGLIGIBLE = 1e-15
# of more than so many candidates, those that a better bound leaves are searched again, by the best of so many parts
MANY = 64


@njit(inline="always")
def candidates(
    f: Array,
    f_y: float,
    C: float,
    K: float,
    S0: float,
    m: int,
    n_classes: int,
    most: int,
    largest_loss: bool,
    classes: Ints32,
    b: Floats,
    old: Floats,
) -> tuple[int, float, float]:
    """Every class whose variable is or becomes positive: how many; the loss; sum alpha g.

    The scores f are those of the other classes alone, -inf at the own class, and come to be -inf at the m listed ones.
    At most ``most`` are found, or a few more: an exact step on a part of the variables. b is made for all that are.
    """
    for c in range(n_classes, f.shape[0]):
        f[c] = -np.inf
    held, loss, worst = 0.0, 0.0, 0.0
    for t in range(m):
        g = 1.0 - f_y + f[classes[t]]
        f[classes[t]] = -np.inf
        b[t] = g / K + old[t] + S0
        held += old[t] * g
        loss += max(g, 0.0)
        worst = max(worst, g)
    g_top = 1.0 - f_y + np.float64(largest(f))
    b_top = g_top / K + S0
    if largest_loss:
        loss = max(worst, g_top)
    elif g_top > 0.0:
        loss += _summed(f, f_y, C, None)

    # two lower bounds of the root: from the positive variables alone, and from the best other class alone
    floor = max(0.0, min(0.5 * b_top, C), b_top - C if largest_loss else 0.0)
    if m > 0:
        floor = max(floor, simplex_root(b, m, C) if largest_loss else box_root(b, m, C, 1.0, S0))
    n, width, begin, many = m, ALIGNMENT // f.itemsize, 0, m + MANY
    level = f.dtype.type(f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y))
    while b_top > floor and begin < n_classes and n < most:
        mask = above_mask(f, begin, level)
        while mask:
            c = begin + lowest_bit(mask)
            mask &= mask - np.uint32(1)
            classes[n], old[n] = c, 0.0
            b[n] = (1.0 - f_y + f[c]) / K + S0
            n += 1
        begin += width
        if n >= many and begin < n_classes:
            # the root over the best class of every so many bounds that of all as well, and far better
            n, many, begin = m, n_classes + width, 0
            known = _best_of_parts(f, f_y, K, S0, b, m)
            floor = max(floor, simplex_root(b, known, C) if largest_loss else box_root(b, known, C, 1.0, S0))
            level = f.dtype.type(f_y - 1.0 + (floor - S0) * K - 1e-7 * abs(f_y))
    return n, loss, held


@njit(cache=True, nogil=True)
def _best_of_parts(f: Array, f_y: float, K: float, S0: float, b: Floats, m: int) -> int:
    """b from the highest score of each of PARTS parts of the classes, behind the first m; returns the end."""
    best = np.empty(PARTS, f.dtype)
    best_of_parts(f, best)
    for t in range(PARTS):
        b[m + t] = (1.0 - f_y + best[t]) / K + S0
    return m + PARTS


@njit(cache=True, nogil=True)
def _summed(f: Array, f_y: float, C: float, terms: Floats | None) -> float:
    """Sum of max(0, 1 - f_y + f_c); ``terms``, if there are any, note them times C."""
    width = ALIGNMENT // f.itemsize
    level = f.dtype.type(f_y - 1.0)
    loss = 0.0
    for begin in range(0, f.shape[0], width):
        mask = above_mask(f, begin, level)
        while mask:
            g = 1.0 - f_y + f[begin + lowest_bit(mask)]
            loss += max(0.0, g)
            if terms is not None and g > 0.0:
                note(1.0, g - 1.0, C, terms)
            mask &= mask - np.uint32(1)
    return loss


@njit(inline="always")
def root(b: Floats, n: int, C: float, S0: float, largest_loss: bool) -> float:
    """What the first n of b exceed to be positive."""
    found: float = simplex_root(b, n, C) if largest_loss else box_root(b, n, C, 1.0, S0)
    return found


@njit(inline="always")
def solve(b: Floats, n: int, C: float, S0: float, largest_loss: bool, new: Floats) -> None:
    """The best variables of one example, given b."""
    used = 0.0
    if largest_loss:
        shift, top = simplex_root(b, n, C), np.inf
    else:
        shift, top = box_root(b, n, C, 1.0, S0), C
    for t in range(n):
        new[t] = min(max(b[t] - shift, 0.0), top)
        used += new[t]
    # where C is tiny against b, rounding may lift the sum above it, and the dual value with it
    if largest_loss and used > C:
        for t in range(n):
            new[t] *= C / used


@njit(inline="always")
def violation_of(b: Floats, old: Floats, n: int, S0: float, K: float, C: float, largest_loss: bool) -> float:
    """How far the example is from its optimality conditions, before the step."""
    violation, worst, low = 0.0, 0.0, np.inf
    for t in range(n):
        g = (b[t] - old[t] - S0) * K
        worst = max(worst, g)
        if old[t] > 0.0:
            low = min(low, g)
        if (g > 0.0 and old[t] < C) or (g < 0.0 and old[t] > 0.0):
            violation = max(violation, abs(g))
    if largest_loss:
        # the slack C - sum alpha is one more variable, of gradient 0 (Crammer and Singer 2002, equation 24)
        if S0 < C * (1.0 - 1e-9):
            low = min(low, 0.0)
        violation = max(0.0, worst - low)
    return violation


@njit(inline="always")
def changes(
    old: Floats, new: Floats, n: int, classes: Ints32, moved: Ints32, steps: Array, places: Ints32
) -> tuple[int, float, float, int, float]:
    """The step ``w_c -= change x`` of n variables, without changes that are negligible.

    The classes that move go to ``moved``, the factors of x to ``steps``, their numbers among the n to ``places``. Then
    the positive variables and their classes move to the front of ``new`` and ``classes``.

    Returns
    -------
    count, total, square : int, float, float
        How many change; the sum of their changes, by which ``w_y += total x``; and the sum of the squared changes.
    kept, held : int, float
        How many variables are positive, and their sum.
    """
    count, total, square, kept, held = 0, 0.0, 0.0, 0, 0.0
    for t in range(n):
        change = new[t] - old[t]
        if abs(change) > NEGLIGIBLE * max(new[t], old[t]):
            moved[count], steps[count], places[count] = classes[t], -change, t
            count += 1
            total += change
            square += change * change
        else:
            new[t] = old[t]
        if new[t] > 0.0:
            classes[kept], new[kept] = classes[t], new[t]
            held += new[t]
            kept += 1
    return count, total, square, kept, held


@njit(inline="always")
def weighted_loss(f: Array, f_y: float, C: float, largest_loss: bool, terms: Floats) -> float:
    """The weighted loss of an example, whose terms are noted for the scaling line search; f without its own class."""
    if largest_loss:
        pull = np.float64(largest(f)) - f_y
        if 1.0 + pull > 0.0:
            note(1.0, pull, C, terms)
        return C * max(0.0, 1.0 + pull)
    return C * float(_summed(f, f_y, C, terms))


@njit(inline="always")
def certify_example(
    i: int, y: int, f: Array, n_classes: int, C: float, largest_loss: bool, pool: Coefficients, gaps: Floats,
    leads: Floats, terms: Floats, costs: Costs | None, multiple: float, margins: Floats, losses: float, total: float
) -> tuple[float, float]:  # fmt: skip
    """Add the weighted loss of example i, and its dual variables times their margins, to the sums.

    Its gap goes to ``gaps``, and its lead to ``leads``. The scores f lose that of its own class.
    """
    f_y = np.float64(f[y])
    f[y] = -np.inf
    f[n_classes:] = -np.inf
    leads[i] = f_y - largest(f)
    if costs is None:
        gaps[i] = weighted_loss(f, f_y, C, largest_loss, terms)
    else:
        gaps[i] = costly_loss(costs, y, f, f_y, C, multiple, largest_loss, margins, terms)
    losses += gaps[i]
    first = pool.start[i]
    for t in range(first + 1, first + pool.length[i]):
        if costs is None:
            total -= pool.values[t]
            gaps[i] += pool.values[t] * (1.0 - f_y + f[pool.classes[t]])
        else:
            margin = margins[pool.classes[t]]
            total -= pool.values[t] * margin
            gaps[i] += pool.values[t] * (margin - multiple * (f_y - f[pool.classes[t]]))
    return losses, total


@njit(cache=True, nogil=True)
def costly_loss(
    costs: Costs, y: int, f: Array, f_y: float, C: float, multiple: float, largest_loss: bool, margins: Floats,
    terms: Floats
) -> float:  # fmt: skip
    """The weighted loss of an example of class y at a multiple of W; its margins go to ``margins``.

    These are costs, or 1 where the losses are multiplied by costs. The scores f are without its own class. Which class
    violates its margin most may change along the line search. So what is noted of the largest loss, a convex function,
    is the chord from the one at W to that at the end of the grid.
    """
    costs_of(costs, y, margins)
    loss, far = 0.0, 0.0
    for c in range(costs.other.shape[0]):
        if c == y:
            continue
        pull, margin, weight = multiple * (np.float64(f[c]) - f_y), margins[c], 1.0
        if costs.slack:
            margin, weight, margins[c] = 1.0, margin, 1.0
        value = weight * (margin + pull)
        if largest_loss:
            loss, far = max(loss, value), max(far, weight * (margin + LARGEST * pull))
        elif value > 0.0:
            loss += value
            note(margin, pull, C * weight, terms)
    if largest_loss and max(loss, far) > 0.0:
        slope = (far - loss) / (LARGEST - 1.0)
        note(loss - slope, slope, C, terms)
    return C * loss
