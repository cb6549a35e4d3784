"""Visits that concern one shard alone: examples of its classes, with those classes of its own that their lists name.

They touch no weights but the shard's and no dual variable that another shard would change, so that all shards visit at
the same time without a message, each step exact on its part of the variables; what has changed is reported afterwards.
"""

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, cost_of
from solvers.linear.sharded.shard_weights import ShardWeights
from solvers.linear.sharded.task import Shard
from solvers.linear.steps import joint
from solvers.linear.visits import STATISTICS, Progress, Task, Visits
from solvers.numerics import coefficients
from solvers.numerics.array_types import Array, Bools, Floats, Floats32, Ints32
from solvers.numerics.coefficients import Coefficients, put
from solvers.numerics.rows import Rows
from solvers.sharding.exchange import Arrays


def visit(
    largest_loss: bool,
    rows: Rows,
    y: Ints32,
    bounds: Floats,
    weights: ShardWeights,
    costs: Costs | None,
    own_costs: Costs | None,
    pool: Coefficients,
    order: Ints32,
    gains: Floats32,
) -> tuple[Arrays, float]:
    """Exact block steps on the examples of order, all of the shard's classes; its weights and gains change.

    ``own_costs`` are the costs among the shard's classes, by their columns.

    Returns
    -------
    arrays : list of arrays
        The examples, their gains, the lengths of their lists, and the lists' classes and values, for :func:`enter`.
    gain : float
        What the dual has gained.
    """
    shard, lists = weights.shard, weights.lists
    n, n_own = len(y), len(shard.own)
    own, other_bounds = coefficients.empty(n, int(pool.length[order].sum()) + n_own), bounds.copy()
    _take(pool, shard, order, largest_loss, costs, own, other_bounds)
    task = Task(rows, shard.local[y], other_bounds, n_own)
    progress = Progress(np.zeros(n, np.uint8), gains, np.zeros(1, STATISTICS))
    at = 0
    while at < len(order):
        visits = Visits(order, at, len(order), False, 0)
        at = joint.visit(task, visits, largest_loss, shard.W, lists, own, progress, own_costs)
        if at < len(order):
            lists = weights.with_capacity()
    lengths, classes, values = _lists(pool, shard, order, own)
    return [order, gains[order], lengths, classes, values], float(progress.statistics["gain"][0])


def worthwhile(pool: Coefficients, shard: Shard, gains: Floats32, threshold: float, mine: Ints32) -> Ints32:
    """Those of the examples whose last visit gained more than the threshold and that list a class to visit."""
    found = mine[(gains[mine] > threshold) & (pool.length[mine] > 1)]
    keep: Ints32 = found[_lists_own(pool, shard, found)]
    return keep


def enter(pool: Coefficients, gains: Floats32, parts: list[Arrays]) -> Coefficients:
    """The pool with the lists that all shards have reported."""
    for order, gained, lengths, classes, values in parts:
        gains[order] = gained
        pool = coefficients.with_capacity(pool, int(lengths.sum()))
        _put_all(pool, order, lengths, classes, values)
    return pool


@njit(cache=True, nogil=True)
def crossing(pool: Coefficients, y: Ints32, owner: Ints32, gains: Floats32, threshold: float) -> Ints32:
    """Examples whose last visit gained more than the threshold and that list a class of another shard than their own's.

    Every shard finds the same.
    """
    found, n = np.empty(gains.shape[0], np.int32), 0
    for i in range(gains.shape[0]):
        if gains[i] > threshold:
            for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
                if owner[pool.classes[t]] != owner[y[i]]:
                    found[n] = i
                    n += 1
                    break
    return found[:n].copy()


@njit(cache=True, nogil=True)
def _lists_own(pool: Coefficients, shard: Shard, examples: Ints32) -> Bools:
    """Whether each example lists a class of the shard beside its true one."""
    found = np.zeros(examples.shape[0], np.bool_)
    for e in range(examples.shape[0]):
        i = examples[e]
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            if shard.local[pool.classes[t]] >= 0:
                found[e] = True
                break
    return found


@njit(cache=True, nogil=True)
def _take(
    pool: Coefficients, shard: Shard, order: Ints32, shared: bool, costs: Costs | None, own: Coefficients,
    bounds: Floats
) -> None:  # fmt: skip
    """Copy the shard's part of the lists, by its columns; where variables share a bound, what others hold is off it."""
    for e in range(order.shape[0]):
        i = order[e]
        begin, total, n = own.used[0], 0.0, 1
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            c = shard.local[pool.classes[t]]
            if c >= 0:
                own.classes[begin + n], own.values[begin + n] = c, pool.values[t]
                total -= pool.values[t]
                n += 1
            elif shared:
                used = -pool.values[t]
                if costs is not None and costs.slack:
                    used /= cost_of(costs, pool.classes[pool.start[i]], pool.classes[t])
                bounds[i] -= used
        own.classes[begin], own.values[begin] = shard.local[pool.classes[pool.start[i]]], total
        own.start[i], own.length[i], own.capacity[i] = begin, n, n
        own.used[0] += n
        bounds[i] = max(bounds[i], 0.0)


@njit(cache=True, nogil=True)
def _lists(pool: Coefficients, shard: Shard, order: Ints32, own: Coefficients) -> tuple[Ints32, Ints32, Floats]:
    """The lists of the examples after the visits: what the shard's part has become, and the others' as it was."""
    lengths = np.zeros(order.shape[0], np.int32)
    room = 0
    for e in range(order.shape[0]):
        room += pool.length[order[e]]
    classes, values, n = np.empty(room, np.int32), np.empty(room), 0
    for e in range(order.shape[0]):
        i = order[e]
        begin, total = n, 0.0
        n += 1
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            if shard.local[pool.classes[t]] < 0:
                classes[n], values[n] = pool.classes[t], pool.values[t]
                total -= values[n]
                n += 1
        for t in range(own.start[i] + 1, own.start[i] + own.length[i]):
            classes[n], values[n] = shard.own[own.classes[t]], own.values[t]
            total -= values[n]
            n += 1
        if n == begin + 1:
            n = begin
        else:
            classes[begin], values[begin] = pool.classes[pool.start[i]], total
        lengths[e] = n - begin
    return lengths, classes[:n], values[:n]


@njit(cache=True, nogil=True)
def _put_all(pool: Coefficients, order: Ints32, lengths: Ints32, classes: Ints32, values: Array) -> None:
    at = 0
    for e in range(order.shape[0]):
        n = lengths[e]
        put(pool, order[e], classes[at : at + n], values[at : at + n], n)
        at += n
