"""The weights of one shard's classes: dense rows, or lists of these classes where features are rare.

What is dense and what is not changes no bit, as without shards (:mod:`solvers.linear.layouts.hybrid_weights`), so every
shard decides by its own classes and its own memory.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from solvers.core.problem import Problem
from solvers.linear.layouts import hybrid_weights
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.layouts.hybrid_weights import Weights
from solvers.linear.sharded.task import Examples, Plan, Shard
from solvers.numerics import coefficients
from solvers.numerics.array_types import Array, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.partition import partition_classes

PARTS = 16


class ShardWeights:
    """The weights of a shard, whose lists get another pool where more room is needed.

    Parameters
    ----------
    layout : HybridLayout
        Of the shard's classes, by their columns.
    own, local : int32 arrays
        As :class:`Shard` has them.

    Attributes
    ----------
    shard : Shard
        Its ``W`` has the dense rows.
    lists : Lists, optional
        The weights of all other features, where there are any.
    """

    def __init__(self, layout: HybridLayout, own: Ints32, local: Ints32) -> None:
        self.layout, W = layout, layout.weights()
        self.shard, self.lists = Shard(own, local, W.hot), W.lists

    @property
    def n_features(self) -> int:
        """Features that some example has."""
        return len(self.layout.features)

    def with_room(self) -> Lists | None:
        """The lists, with room for what the last visit lacked.

        Raises
        ------
        TooLargeError
            They would take more memory than allowed.
        """
        self.lists = self.layout.with_room(Weights(self.shard.W, self.lists)).lists
        return self.lists

    def rebuild(self, pool: Coefficients, thread_pool: ThreadPool) -> None:
        """Make all weights afresh from the dual variables of all classes; raises TooLargeError."""
        rows, shard = self.layout.rows, self.shard
        if self.lists is None:
            some = pieces(shard.W.shape[0], PARTS)
            thread_pool.run(partial(_rebuild, rows, shard, pool, begin, end) for begin, end in some)
            return
        own = coefficients.empty(len(pool.start), int(pool.length.sum()))
        _copy_own(pool, shard.local, own)
        while not hybrid_weights.rebuild(rows, own, shard.W, self.lists):
            # as they were they had room: this is the start from a state that has no weights
            self.lists = self.layout.larger(Weights(shard.W, self.lists)).lists

    def state(self) -> dict[str, Array]:
        """The arrays of the weights, for a step."""
        return self.layout.state(Weights(self.shard.W, self.lists))

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up the arrays of a step, dense rows for as many features as they have."""
        W = self.layout.restored(state)
        self.shard, self.lists = self.shard._replace(W=W.hot), W.lists


def partitioned(problem: Problem, plan: Plan, rank: int, size: int, *, lists: bool) -> tuple[Examples, ShardWeights]:
    """The examples, and what the shard of that rank has of the classes, all dense without ``lists``.

    Raises ValueError for more shards than classes.
    """
    owner = partition_classes(problem.y, problem.n_classes, size)
    weights = weights_of(problem, plan.dtype, np.flatnonzero(owner == rank).astype(np.int32), plan.memory_mb, lists)
    return Examples(weights.layout.rows, problem.y, plan.C * problem.weights, owner), weights


def weights_of(problem: Problem, dtype: np.dtype[Any], own: Ints32, memory_mb: int | None, lists: bool) -> ShardWeights:
    """Zero weights of some classes of a problem."""
    local = np.full(problem.n_classes, -1, np.int32)
    local[own] = np.arange(len(own), dtype=np.int32)
    given = problem.X, len(own), dtype, memory_mb
    layout = HybridLayout.within(*given, len(own) / problem.n_classes) if lists else HybridLayout.dense(*given[:3])
    # the schedule of shards counts what visits cost by itself
    return ShardWeights(replace(layout, full=np.empty(0), listed=np.empty(0)), own, local)


@njit(cache=True, nogil=True)
def _rebuild(rows: Rows, shard: Shard, pool: Coefficients, begin: int, end: int) -> None:
    """Rows begin to end of the shard's weights afresh from the coefficients."""
    W = shard.W
    W[begin:end] = 0
    for i in range(pool.start.shape[0]):
        start, stop = pool.start[i], pool.start[i] + pool.length[i]
        if start == stop:
            continue
        p, last = rows.indptr[i], rows.indptr[i + 1]
        if begin > 0:
            p += np.searchsorted(rows.indices[p:last], begin)
        while p < last and rows.indices[p] < end:
            w, x = W[rows.indices[p]], rows.data[p]
            for t in range(start, stop):
                c = shard.local[pool.classes[t]]
                if c >= 0:
                    w[c] += pool.values[t] * x
            p += 1


@njit(cache=True, nogil=True)
def _copy_own(pool: Coefficients, local: Ints32, own: Coefficients) -> None:
    """Copy what the lists of all examples have of the shard's classes, by its columns; ``own`` is empty."""
    end = 0
    for i in range(pool.start.shape[0]):
        own.start[i] = end
        for t in range(pool.start[i], pool.start[i] + pool.length[i]):
            c = local[pool.classes[t]]
            if c >= 0:
                own.classes[end], own.values[end] = c, pool.values[t]
                end += 1
        own.length[i] = own.capacity[i] = end - own.start[i]
    own.used[0] = end
