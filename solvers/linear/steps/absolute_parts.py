"""Block steps of the machines with absolute margins where the classes are partitioned, each with its own weights.

The notation is that of :mod:`solvers.linear.steps.absolute`. All that the step of an example takes from other parts is
T = sum_c s_c alpha_c: before the step, and at its root. Labels are columns of the part, -1 where another part has the
class. Examples of a batch are e, of the whole set i.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.linear.steps.absolute import Margins, measure
from solvers.linear.visits import Task
from solvers.numerics.array_types import Array, Bytes, Floats, Ints, Ints32
from solvers.numerics.rows import Rows, score


class Batch(NamedTuple):
    """Examples whose steps are found together.

    Attributes
    ----------
    examples : int32 array, shape (n,)
    f : float array, shape (n or more, padded number of classes)
        Scores before the steps.
    b : float64 array, shape (n or more, n_own)
        Of the block steps.
    new, steps : float arrays, shape (n or more, n_own)
        The variables at the root, and the steps of the weights.
    """

    examples: Ints32
    f: Array
    b: Floats
    new: Array
    steps: Array


@njit(cache=True, nogil=True)
def prepare(
    task: Task,
    margins: Margins,
    W: Array,
    alpha: Array,
    totals: Floats,
    examples: Ints32,
    f: Array,
    b: Floats,
    measures: Floats,
    begin: int,
    end: int,
) -> None:
    """Scores f and the b of the block step of examples begin to end, and each one's share of gap, loss, violation."""
    rows, labels, bounds, n_classes = task
    n_own = alpha.shape[1]
    g = np.empty(n_own)
    for e in range(begin, end):
        i = examples[e]
        y, K, a, shift = labels[i], rows.squares[i], alpha[i], totals[i] / n_classes
        score(rows, i, W, f[e])
        for c in range(n_own):
            g[c] = margins.other + np.float64(f[e, c])
            b[e, c] = g[c] / K + a[c] + shift
        if y >= 0:
            g[y] = margins.own - np.float64(f[e, y])
            b[e, y] = g[y] / K + a[y] - shift
        own, other = margins.own_share * bounds[i], margins.other_share * bounds[i]
        gap, loss, violation = measure(g, a, y, n_own, own, other, False, bounds[i])
        measures[e, 0], measures[e, 1], measures[e, 2] = gap, loss, violation


@njit(cache=True, nogil=True)
def evaluate(
    labels: Ints32,
    bounds: Floats,
    n_classes: int,
    margins: Margins,
    examples: Ints32,
    b: Floats,
    T: Floats,
    which: Ints,
    sums: Floats,
    free: Ints32,
    begin: int,
    end: int,
) -> None:
    """The part's share of sum_c s_c alpha_c at T, and how many variables are within their bounds there."""
    for at in range(begin, end):
        e = which[at]
        i = examples[e]
        y, shift = labels[i], T[e] / n_classes
        other, own = margins.other_share * bounds[i], margins.own_share * bounds[i]
        inside, total = 0, 0.0
        for c in range(b.shape[1]):
            v = b[e, c] - shift
            inside += (v > 0.0) & (v < other)
            total -= min(max(v, 0.0), other)
        if y >= 0:
            v = b[e, y] - shift
            inside -= (v > 0.0) & (v < other)
            total += min(max(v, 0.0), other)
            v = b[e, y] + shift
            inside += (v > 0.0) & (v < own)
            total += min(max(v, 0.0), own)
        sums[at], free[at] = total, inside


@njit(cache=True, nogil=True)
def find(
    task: Task,
    margins: Margins,
    batch: Batch,
    alpha: Array,
    T: Floats,
    mean: Floats,
    changed: Bytes,
    figures: Floats,
    begin: int,
    end: int,
) -> None:
    """The variables of examples begin to end at T, the steps of the weights, and what the dual gains along them.

    ``mean[e]`` is what the mean of all weights would move by. ``figures[e]`` has the linear term of the gain, and the
    squared length of the part's share of the step.
    """
    rows, labels, bounds, n_classes = task
    examples, f, b, new, steps = batch
    trifle = 4.0 * np.finfo(steps.dtype).eps
    for e in range(begin, end):
        i = examples[e]
        y, shift = labels[i], T[e] / n_classes
        other, own = margins.other_share * bounds[i], margins.own_share * bounds[i]
        moved, linear, square = False, 0.0, 0.0
        for c in range(alpha.shape[1]):
            value = min(max(b[e, c] - shift, 0.0), other)
            if c == y:
                value = min(max(b[e, c] + shift, 0.0), own)
            old = np.float64(alpha[i, c])
            new[e, c] = value
            d = np.float64(new[e, c]) - old
            moved |= abs(d) > trifle * max(value, old)
            if c == y:
                linear += d * (margins.own - np.float64(f[e, c]))
            else:
                linear += d * (margins.other + np.float64(f[e, c]))
                d = -d
            d -= mean[e]
            steps[e, c] = d
            square += d * d
        changed[e] = moved
        figures[e, 0], figures[e, 1] = linear, rows.squares[i] * square


@njit(cache=True, nogil=True)
def apply(rows: Rows, examples: Ints32, f: Array, steps: Array, W: Array, begin: int, end: int, cross: Floats) -> None:
    """Add all steps to columns begin to end of W; in cross, the inner products between steps of different examples.

    When the step of an example is added, the scores that W gives it include the steps before it.
    """
    found = np.empty(end - begin, W.dtype)
    total = 0.0
    for e in range(examples.shape[0]):
        i = examples[e]
        step = steps[e, begin:end]
        found[:] = 0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], rows.data[p]
            for c in range(w.shape[0]):
                before = w[c]
                found[c] += x * before
                w[c] = before + x * step[c]
        for c in range(end - begin):
            total += np.float64(step[c]) * (np.float64(found[c]) - np.float64(f[e, begin + c]))
    cross[0] = total


@njit(cache=True, nogil=True)
def undo_part(rows: Rows, examples: Ints32, steps: Array, W: Array, part: float, begin: int, end: int) -> None:
    """Take a part of all steps off columns begin to end of W again."""
    for e in range(examples.shape[0]):
        i = examples[e]
        step = steps[e, begin:end]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], W.dtype.type(part) * rows.data[p]
            for c in range(w.shape[0]):
                w[c] -= x * step[c]


@njit(cache=True, nogil=True)
def accept(examples: Ints32, new: Array, part: float, alpha: Array) -> None:
    """Move the variables a part of the way to their new values."""
    for e in range(examples.shape[0]):
        a = alpha[examples[e]]
        for c in range(a.shape[0]):
            a[c] = new[e, c] if part == 1.0 else a[c] + part * (np.float64(new[e, c]) - a[c])
