"""Block steps of the machines with absolute margins where the classes are partitioned, each with its own weights.

The notation is that of :mod:`solvers.linear.steps.absolute`. All that the step of an example takes from other parts is
T = sum_c s_c alpha_c: before the step, and at its root. Labels are columns of the part, -1 where another part has the
class. Examples of a batch are e, of the whole set i.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solvers.linear.steps.absolute import Margins, measure
from solvers.linear.visits import Task
from solvers.numerics.rows import Rows, score
from solvers.numerics.scaling_search import note


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

    examples: NDArray[np.int32]
    f: NDArray[Any]
    b: NDArray[np.float64]
    new: NDArray[Any]
    steps: NDArray[Any]


@njit(cache=True, nogil=True)
def prepare(
    task: Task,
    margins: Margins,
    W: NDArray[Any],
    alpha: NDArray[Any],
    totals: NDArray[np.float64],
    examples: NDArray[np.int32],
    f: NDArray[Any],
    b: NDArray[np.float64],
    measures: NDArray[np.float64],
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
    labels: NDArray[np.int32],
    bounds: NDArray[np.float64],
    n_classes: int,
    margins: Margins,
    examples: NDArray[np.int32],
    b: NDArray[np.float64],
    T: NDArray[np.float64],
    which: NDArray[np.int64],
    sums: NDArray[np.float64],
    free: NDArray[np.int32],
    begin: int,
    end: int,
) -> None:
    """The part's share of sum_c s_c alpha_c at T, and how many variables are within their bounds there."""
    for at in range(begin, end):
        e = which[at]
        i = examples[e]
        y, other, own, shift = (
            labels[i],
            margins.other_share * bounds[i],
            margins.own_share * bounds[i],
            T[e] / n_classes,
        )
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
    alpha: NDArray[Any],
    T: NDArray[np.float64],
    mean: NDArray[np.float64],
    changed: NDArray[np.uint8],
    figures: NDArray[np.float64],
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
        y, other, own, shift = (
            labels[i],
            margins.other_share * bounds[i],
            margins.own_share * bounds[i],
            T[e] / n_classes,
        )
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
def apply(
    rows: Rows,
    examples: NDArray[np.int32],
    f: NDArray[Any],
    steps: NDArray[Any],
    W: NDArray[Any],
    begin: int,
    end: int,
    cross: NDArray[np.float64],
) -> None:
    """Add all steps to columns begin to end of W; in cross, the inner products between steps of different examples.

    When the step of an example is added, the scores that W gives it tell of the steps before it.
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
def take_back(
    rows: Rows, examples: NDArray[np.int32], steps: NDArray[Any], W: NDArray[Any], part: float, begin: int, end: int
) -> None:
    """Take a part of all steps off columns begin to end of W again."""
    for e in range(examples.shape[0]):
        i = examples[e]
        step = steps[e, begin:end]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], W.dtype.type(part) * rows.data[p]
            for c in range(w.shape[0]):
                w[c] -= x * step[c]


@njit(cache=True, nogil=True)
def accept(examples: NDArray[np.int32], new: NDArray[Any], part: float, alpha: NDArray[Any]) -> None:
    """Move the variables a part of the way to their new values."""
    for e in range(examples.shape[0]):
        a = alpha[examples[e]]
        for c in range(a.shape[0]):
            a[c] = new[e, c] if part == 1.0 else a[c] + part * (np.float64(new[e, c]) - a[c])


@njit(cache=True, nogil=True)
def signed_sums(
    labels: NDArray[np.int32], alpha: NDArray[Any], totals: NDArray[np.float64], begin: int, end: int
) -> None:
    """The part's share of sum_c s_c alpha_c of examples begin to end."""
    for i in range(begin, end):
        total = 0.0
        for c in range(alpha.shape[1]):
            total -= np.float64(alpha[i, c])
        if labels[i] >= 0:
            total += 2.0 * np.float64(alpha[i, labels[i]])
        totals[i] = total


@njit(cache=True, nogil=True)
def rebuild(
    rows: Rows,
    labels: NDArray[np.int32],
    n_classes: int,
    alpha: NDArray[Any],
    totals: NDArray[np.float64],
    W: NDArray[Any],
    begin: int,
    end: int,
) -> None:
    """Columns begin to end of W from alpha afresh."""
    step = np.zeros(end - begin, W.dtype)
    W[:, begin:end] = 0
    for i in range(labels.shape[0]):
        if rows.squares[i] == 0.0:
            continue
        mean = totals[i] / n_classes
        for c in range(end - begin):
            step[c] = -alpha[i, begin + c] - mean
        if begin <= labels[i] < end:
            step[labels[i] - begin] = alpha[i, labels[i]] - mean
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], rows.data[p]
            for c in range(w.shape[0]):
                w[c] += x * step[c]


@njit(cache=True, nogil=True)
def certify(
    task: Task,
    margins: Margins,
    W: NDArray[Any],
    alpha: NDArray[Any],
    gaps: NDArray[np.float64],
    terms: NDArray[np.float64],
    sums: NDArray[np.float64],
    begin: int,
    end: int,
) -> None:
    """The part's share of losses and of sum_c m_c alpha_c in sums, of examples begin to end; gaps and terms as of W."""
    rows, labels, bounds, _ = task
    n_own = alpha.shape[1]
    f, g = np.zeros(W.shape[1], W.dtype), np.empty(n_own)
    losses, total = 0.0, 0.0
    for i in range(begin, end):
        if rows.squares[i] == 0.0:
            continue
        y, a = labels[i], alpha[i]
        score(rows, i, W, f)
        own, other = margins.own_share * bounds[i], margins.other_share * bounds[i]
        for c in range(n_own):
            g[c] = margins.other + np.float64(f[c])
            total += margins.other * a[c]
            if c != y:
                note(margins.other, f[c], other, terms)
        if y >= 0:
            g[y] = margins.own - np.float64(f[y])
            total += (margins.own - margins.other) * a[y]
            note(margins.own, -f[y], own, terms)
        gaps[i], loss, _ = measure(g, a, y, n_own, own, other, False, bounds[i])
        losses += loss
    sums[0], sums[1] = losses, total
