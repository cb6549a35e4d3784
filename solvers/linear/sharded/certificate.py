"""Primal, dual and violations over all shards, by sums whose order depends on neither shards nor threads.

Sums over examples are kept a class, in a fixed number of parts of the data; the classes are added up at the end, in
their global order. Over classes, an example takes maxima and minima alone, which no order can change.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.costs import Costs, add_costs, cost_of, total_cost
from solvers.linear.layouts import class_lists, hybrid_layout
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.sharded.shard_weights import PARTS, ShardWeights
from solvers.linear.sharded.task import Examples, Shard
from solvers.numerics import scaling_search
from solvers.numerics.array_types import Array, Floats, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows, above
from solvers.numerics.scaling_search import note
from solvers.numerics.simd import largest
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.exchange import Exchange, gather


class Bounds(NamedTuple):
    """Objective and dual value, the multiple of W that the objective is of, and an example's f_y and violation."""

    primal: float
    dual: float
    scale: float
    f_y: Array
    violation: Floats


def certify(
    largest_loss: bool,
    examples: Examples,
    weights: ShardWeights,
    pool: Coefficients,
    costs: Costs | None,
    answers: Costs | None,
    thread_pool: ThreadPool,
    exchange: Exchange,
) -> Bounds:
    """Rebuild the shard's weights from the dual variables and measure them with all others; two rounds.

    ``costs`` are those among all classes, ``answers`` those of the shard's answers. With costs the largest loss is
    measured at W itself, since at its multiples another class may violate most.

    Raises
    ------
    ExchangeError
        A peer is lost.
    """
    rows, y, bounds, owner = examples
    weights.rebuild(pool, thread_pool)
    shard, lists = weights.shard, weights.lists
    n, stops, features = len(y), pieces(len(y), PARTS), pieces(weights.n_features, PARTS)
    f_y = np.zeros(n, shard.W.dtype)
    thread_pool.run(partial(_own_scores, rows, y, shard, lists, f_y, a, b) for a, b in stops)
    rank_of = owner[y]
    for rank, (part,) in enumerate(gather(exchange, [f_y[rank_of == exchange.rank]])):
        f_y[rank_of == rank] = part

    losses, norms = (np.zeros((len(parts), shard.W.shape[1])) for parts in (stops, features))
    terms = scaling_search.blank(len(stops))
    up, low = np.full(n, -np.inf), np.full(n, np.inf)
    args = (largest_loss, examples, shard, lists, pool, answers, f_y)
    thread_pool.run(
        [partial(_margins, *args, losses[p], terms[p], up, low, a, b) for p, (a, b) in enumerate(stops)]
        + [partial(_norms, shard.W, lists, norms[p], a, b) for p, (a, b) in enumerate(features)]
    )
    sums = [part.sum(axis=0)[: len(shard.own)] for part in (losses, norms)]
    # what is below 1 is empty
    noted = terms.sum(axis=0)[:, scaling_search.ONE :]
    loss, norm, terms = np.zeros(len(owner)), np.zeros(len(owner)), scaling_search.blank()
    message = [shard.own, *sums, up.astype(f_y.dtype), low.astype(f_y.dtype), noted]
    for classes, loss_of_part, norm_of_part, up_of_part, low_of_part, noted_of_part in gather(exchange, message):
        loss[classes], norm[classes] = loss_of_part, norm_of_part
        terms[:, scaling_search.ONE :] += noted_of_part
        np.maximum(up, up_of_part, out=up)
        np.minimum(low, low_of_part, out=low)
    if costs is None:
        up, low = 1.0 - f_y + up, 1.0 - f_y + low
    used = _sums(y, pool, costs if costs is not None and costs.slack else None)
    violation, weighted = _violations(largest_loss, examples, used, up, low)
    if not largest_loss:
        weighted = float(loss.sum())
    elif costs is None:
        _note_worst(up, np.where(rows.squares > 0, bounds, 0.0), terms)
    half = 0.5 * float(norm.sum())
    primal, scale = half + weighted, 1.0
    if costs is None or not largest_loss:
        primal, scale = scaling_search.best_point(half, weighted, terms, scaling_search.ONE)
    linear = _sums(y, pool, None).sum() if costs is None or costs.slack else total_cost(costs, y, pool)
    return Bounds(primal, float(linear) - half, scale, f_y, violation)


def _violations(
    largest_loss: bool, examples: Examples, sums: Floats, above: Floats, below: Floats
) -> tuple[Floats, float]:
    """How far each example is from its optimality conditions, and the sum of the weighted largest losses.

    ``above`` is the largest gradient of a variable that may grow, ``below`` the least of one that may fall.
    """
    seen, worst = examples.rows.squares > 0, np.maximum(above, 0.0)
    if largest_loss:
        # the slack bound - sum alpha is a variable of gradient 0; sums of alpha below the bound leave it free
        slack = sums < examples.bounds * (1.0 - 1e-9)
        violation = np.maximum(worst - np.minimum(below, np.where(slack, 0.0, np.inf)), 0.0)
    else:
        violation = np.maximum(worst, -below)
    violation[~seen] = 0.0
    return violation, float((examples.bounds * worst)[seen].sum())


@njit(cache=True, nogil=True)
def _own_scores(rows: Rows, y: Ints32, shard: Shard, lists: Lists | None, f_y: Array, begin: int, end: int) -> None:
    wanted, slots = np.empty(1, np.int32), np.empty(1, np.int64)
    for i in range(begin, end):
        own = shard.local[y[i]]
        if own >= 0:
            high = rows.indptr[i + 1]
            mid = high
            if lists is not None:
                mid = lists.middle[i]
            total = 0.0
            for p in range(rows.indptr[i], mid):
                total += np.float64(rows.data[p]) * np.float64(shard.W[rows.indices[p], own])
            if lists is not None:
                n_hot, cells, bits = shard.W.shape[0], lists.cells, lists.counters[0].bits
                if high - mid > slots.shape[0]:
                    slots = np.empty(2 * (high - mid), np.int64)
                wanted[0] = own
                class_lists.place(
                    rows.indices, mid, high, n_hot, lists.start, lists.length, cells, bits, wanted, 1, slots
                )
                for p in range(mid, high):
                    if slots[p - mid] >= 0:
                        total += np.float64(rows.data[p]) * np.float64(cells[2 * slots[p - mid] + 1])
            f_y[i] = total


@njit(cache=True, nogil=True)
def _margins(
    largest_loss: bool,
    examples: Examples,
    shard: Shard,
    lists: Lists | None,
    pool: Coefficients,
    answers: Costs | None,
    f_y: Array,
    losses: Floats,
    terms: Floats,
    up: Floats,
    low: Floats,
    begin: int,
    end: int,
) -> None:
    """Losses a class, also at multiples of W; the highest score that could still gain; the lowest of those held.

    With costs both are of the violations of the margins instead; of the largest loss, these times their factors.
    """
    rows, labels, bounds, _ = examples
    k = shard.own.shape[0]
    f, found = np.empty(shard.W.shape[1], shard.W.dtype), np.empty(k, np.int32)
    if answers is not None:
        row = np.empty(k)
    for i in range(begin, end):
        if rows.squares[i] == 0.0:
            continue
        hybrid_layout.score(rows, i, shard.W, lists, f)
        own, bound = shard.local[labels[i]], bounds[i]
        if own >= 0:
            f[own] = -np.inf
        f[k:] = -np.inf
        base = 1.0 - np.float64(f_y[i])
        if answers is not None:
            row[:] = 0.0
            add_costs(answers, labels[i], 0.0, row)
            for c in range(k):
                if c == own:
                    continue
                margin, weight = row[c], 1.0
                if answers.slack:
                    margin, weight = 1.0, row[c]
                pull = np.float64(f[c]) - np.float64(f_y[i])
                g = margin + pull
                if not largest_loss and weight * g > 0.0:
                    losses[c] += bound * weight * g
                    note(margin, pull, bound * weight, terms)
                f[c] = weight * g if largest_loss else g if weight > 0.0 else -np.inf
        elif not largest_loss:
            # a little below the margin, as the level is rounded
            for t in range(above(f, k, -base - 1e-6 * (1.0 + abs(base)), found, k)):
                c = found[t]
                g = base + np.float64(f[c])
                if g > 0.0:
                    losses[c] += bound * g
                    note(1.0, g - 1.0, bound, terms)
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            c = shard.local[pool.classes[t]]
            if c >= 0:
                low[i] = min(low[i], np.float64(f[c]))
                most = bound
                if answers is not None and answers.slack:
                    most *= row[c]
                if not largest_loss and -pool.values[t] >= most:
                    f[c] = -np.inf
        up[i] = largest(f)


@njit(cache=True, nogil=True)
def _note_worst(worst: Floats, bounds: Floats, terms: Floats) -> None:
    """Note the largest violations of all examples."""
    for i in range(worst.shape[0]):
        if worst[i] > 0.0:
            note(1.0, worst[i] - 1.0, bounds[i], terms)


@njit(cache=True, nogil=True)
def _norms(W: Array, lists: Lists | None, norms: Floats, begin: int, end: int) -> None:
    """Sums of squares a class over the features begin to end."""
    for j in range(begin, min(end, W.shape[0])):
        for c in range(W.shape[1]):
            norms[c] += np.float64(W[j, c]) * np.float64(W[j, c])
    if lists is not None:
        raw, step = lists.cells.view(np.int32), lists.cells.itemsize // 2
        for j in range(max(begin, W.shape[0]) - W.shape[0], end - W.shape[0]):
            for at in range(lists.start[j], lists.start[j] + lists.length[j]):
                value = np.float64(lists.cells[2 * at + 1])
                norms[raw[step * at]] += value * value


@njit(cache=True, nogil=True)
def _sums(y: Ints32, pool: Coefficients, costs: Costs | None) -> Floats:
    """The sum of each example's dual variables, or of what they are of their costs."""
    sums = np.zeros(pool.start.shape[0])
    for i in range(pool.start.shape[0]):
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            if costs is None:
                sums[i] -= pool.values[t]
            else:
                sums[i] -= pool.values[t] / cost_of(costs, y[i], pool.classes[t])
    return sums
