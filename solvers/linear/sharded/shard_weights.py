"""The weights of one shard's classes: dense rows, or lists of these classes where features are rare.

What is dense and what is not changes no bit, as without shards (:mod:`solvers.linear.layouts.hybrid_layout`), so every
shard decides by its own classes and its own memory.

The whole model of shards' parts most of whose weights are zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import block_name
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.labels import stored_arrays
from solvers.linear.layouts import hybrid_layout
from solvers.linear.layouts.class_lists import Lists
from solvers.linear.layouts.hybrid_layout import HybridLayout, Weights
from solvers.linear.sharded.task import Examples, Plan, Shard
from solvers.numerics import coefficients
from solvers.numerics.array_types import AnyFloats, Array, Ints, Ints32
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows
from solvers.numerics.thread_pool import ThreadPool, pieces
from solvers.sharding.partition import partition_classes

CHUNK = 1 << 24


def has_sparse_part(arrays: Mapping[str, Array]) -> bool:
    """Whether any shard has given sparse weights."""
    return any(name.startswith("indptr-") for name in arrays)


def sparse_model(
    classes: Sequence[str], n_features: int, owner: Ints32, arrays: Mapping[str, Array]
) -> SparseLinearModel:
    """The model of the files of all shards, of which some may have given dense weights.

    Parameters
    ----------
    n_features : int
        Without the constant.
    owner : int32 array, shape (n_classes,)
        The rank of each class.
    arrays : mapping
        May be memory-mapped.

    Raises
    ------
    ArrayFault
        The arrays do not fit one another.
    """
    n_shards, bias = int(owner.max()) + 1, float(arrays["bias"][0])
    features = np.asarray(arrays["features"])
    stored_arrays.require_ascending("features", features, n_features + (bias != 0))
    owns = [np.flatnonzero(owner == rank).astype(np.int32) for rank in range(n_shards)]
    blocks = [_block(rank, arrays, len(features), len(own)) for rank, own in enumerate(owns)]
    intercept: AnyFloats | None = None
    if bias != 0:
        intercept = np.empty(len(classes), blocks[0].dtype)
        for own, block in zip(owns, blocks, strict=True):
            intercept[own] = block[-1].toarray()[0] * block.dtype.type(bias)
    W = _side_by_side(blocks, owns, features[: len(features) - (bias != 0)], n_features)
    return SparseLinearModel(classes, W, intercept)


def _block(rank: int, arrays: Mapping[str, Array], n_rows: int, n_own: int) -> sp.csr_matrix:
    """The weights of a shard; dense ones are read some rows at a time."""
    if block_name(rank) not in arrays:
        mine = {name: np.asarray(arrays[f"{name}-{rank}"]) for name in ("indptr", "indices", "data")}
        return stored_arrays.sparse(mine, n_rows, n_own)
    W = arrays[block_name(rank)]
    stored_arrays.require_floats(block_name(rank), W, n_rows, n_own)
    step = max(1, CHUNK // n_own)
    return sp.csr_matrix(sp.vstack([sp.csr_matrix(W[j : j + step]) for j in range(0, n_rows, step)], format="csr"))


def _side_by_side(
    blocks: Sequence[sp.csr_matrix], owns: Sequence[Ints32], features: Ints, n_features: int
) -> sp.csr_matrix:
    """One matrix of all features and classes: row j of a block is that of ``features[j]``, its columns are ``owns``."""
    n_rows, indptr = len(features), np.zeros(n_features + 1, np.int64)
    for block in blocks:
        indptr[features + 1] += np.diff(block.indptr[: n_rows + 1])
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], blocks[0].dtype)
    free = indptr[features]
    for block, own in zip(blocks, owns, strict=True):
        _put(np.asarray(block.indptr, np.int64), block.indices, block.data, own, free, indices, data)
    W = sp.csr_matrix((data, indices, indptr), shape=(n_features, sum(map(len, owns))))
    W.sort_indices()
    return W


@njit(cache=True, nogil=True)
def _put(begins: Ints, columns: Ints32, weights: Array, own: Ints32, free: Ints, indices: Ints32, data: Array) -> None:
    """Copy the rows of a block, each to where the matrix has room for it, which moves behind it."""
    for j in range(free.shape[0]):
        to = free[j]
        for p in range(begins[j], begins[j + 1]):
            indices[to], data[to] = own[columns[p]], weights[p]
            to += 1
        free[j] = to


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

    def with_capacity(self) -> Lists | None:
        """The lists, with room for what the last visit lacked.

        Raises
        ------
        TooLargeError
            They would take more memory than allowed.
        """
        self.lists = self.layout.with_capacity(Weights(self.shard.W, self.lists)).lists
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
        while not hybrid_layout.rebuild(rows, own, shard.W, self.lists):
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
