"""What the linear machines share that shards of one gang train together: who owns which class, and the whole model.

What a training of a linear machine in shards will take, computed from counts before anything runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import ShardedLinearModel, block_name
from solvers.linear.driver.params import precision
from solvers.linear.layouts.hybrid_layout import FREQUENT, expected_lengths, fits_dense
from solvers.linear.sharded.batches.walk import LARGEST_BATCH
from solvers.linear.sharded.shard_weights import has_sparse_part, sparse_model
from solvers.linear.sharded.sum_exchange import LARGEST_BATCH as LARGEST_SUMS
from solvers.linear.steps import binary
from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.numerics.rows import ALIGNMENT
from solvers.sharding.exchange import ExchangeKind
from solvers.sharding.partition import balanced, partition_classes
from solvers.sharding.plan import BOUNDS_BYTES, Forecast, Rates, Share
from solvers.sharding.shardable import Arrays, Shardable

_POOL_ENTRIES, _ENTRY_BYTES = 8, 12
# of each example, what inner passes and certificates make and drop: lists, violations, messages
_PASSING_BYTES = 100
_WIDTH = 128
_BOUNDS_ROUNDS = 3
# of scores, what each shard sends beside candidates: of an example their numbers, in two visits; and with a certificate
# two scores of each example and what it notes for the best multiple of the weights
_COUNTS_BYTES, _NOTED_BYTES = 2, 1 << 16
# of block steps by sums: examples a batch, rounds it takes to find its roots, and how often an example is in a round
_SUMS_BATCH, _SUMS_ROUNDS, _SUMS_LOOKS, _SUMS_BYTES = 128, 5.0, 3.3, 12
# lists of classes: of their entries, the room that the pool has; of a feature, where its list is
_LIST_ROOM, _LIST_BYTES = 1.5, 12


def forecast(
    counts: Ints,
    n_features: int,
    nnz: int,
    size: int,
    itemsize: int,
    threads: int = 1,
    rates: Rates | None = None,
    *,
    kind: ExchangeKind = "scores",
    memory_mb: int | None = None,
) -> Forecast:
    """Predict a training in shards.

    Parameters
    ----------
    counts : int64 array, shape (n_classes,)
        Training examples of each class.
    n_features : int
        Features that some training example has.
    nnz : int
        Entries of the training examples.
    size : int
        Number of shards.
    itemsize : int
        Bytes of a weight: 4 or 8.
    threads : int
        Of each shard.
    kind : str
        What the shards exchange. Bounds can be counted beforehand; of scores the rates are taken for granted, and hold
        from two shards on (one alone has fewer rounds), of sums the examples a batch and the rounds that their roots
        take.
    memory_mb : int, optional
        The megabytes that the weights of a shard may take, None: those that this machine has; weights that would take
        more, or are of very many classes, are kept in lists where scores are exchanged, whose length is an estimate.

    Raises
    ------
    ValueError
        More shards than classes.
    """
    rates = rates or Rates()
    n, k = int(counts.sum()), len(counts)
    owner = balanced(counts, size)
    shares = []
    for rank in range(size):
        own = owner == rank
        n_own = int(own.sum())
        memory = memory_bytes(n, n_features, nnz, n_own, k, itemsize, kind, memory_mb)
        shares.append(Share(n_own, int(counts[own].sum()), memory))
    n_rounds, sent, passes = _traffic(n, k, size, itemsize, rates, kind)
    widest = max(share.classes for share in shares)
    compute = passes * float(nnz) * widest * (itemsize / 4) / (rates.products * threads)
    # messages go in and out of Redis once; what all shards read goes out once for each, by the one link of its machine
    travel = n_rounds * rates.round_trip + size * sent / rates.bandwidth
    return Forecast(shares, n_rounds, sent, compute + travel)


def _traffic(n: int, k: int, size: int, itemsize: int, rates: Rates, kind: ExchangeKind) -> tuple[int, int, float]:
    """Rounds and bytes of an epoch, and how often it reads the weights of every entry."""
    if kind == "bounds":
        return 1, BOUNDS_BYTES * size, 1.0
    if kind == "scores":
        return int(np.ceil(n / rates.batch)) + _BOUNDS_ROUNDS, int(score_bytes(n, k, size, itemsize, rates)), 1.0
    batches = np.ceil(n / _SUMS_BATCH)
    return int(batches * _SUMS_ROUNDS) + _BOUNDS_ROUNDS, int(n * size * (1 + _SUMS_BYTES * _SUMS_LOOKS)), 3.0


def score_bytes(n: int, k: int, size: int, itemsize: int, rates: Rates) -> float:
    """The bytes of an epoch that all shards send of scores; all as :func:`forecast` has it.

    A shard offers the classes that may come to hold a dual variable by all that it knows, which is its own classes.
    With all classes at hand these are hardly more than come to it; a shard of few classes offers most of them. In
    between, the candidates of a shard with very many classes and the classes that it has add up by their inverses, a
    rule that was measured, not derived.
    """
    entry = (2 if k <= 1 << 16 else 4) + itemsize
    candidates, classes = rates.message / entry, k / size
    offered = entry * candidates * classes / (candidates + classes)
    each = _COUNTS_BYTES * n + rates.certificates * (2 * itemsize * n + _NOTED_BYTES)
    return float(n * (rates.once + (size - 1) * offered) + size * each)


def memory_bytes(
    n: int,
    n_features: int,
    nnz: int,
    n_own: int,
    k: int,
    itemsize: int,
    kind: ExchangeKind,
    memory_mb: int | None = None,
) -> int:
    """The bytes of the arrays of a shard that has ``n_own`` of ``k`` classes; all else as :func:`forecast` has it."""
    cells = ALIGNMENT // itemsize
    weights: float = n_features * -(-n_own // cells) * ALIGNMENT
    # the matrix as it was given, in float64, and as it is laid out
    rows = nnz * 12 + 8 * n + nnz * (4 + itemsize) + 16 * n
    # labels, weights, bounds, f_y, unchanged visits, gains and orders of examples
    examples = n * (4 + 8 + 8 + 8 + 1 + 4 + 8)
    pool = (_POOL_ENTRIES * n + LARGEST_BATCH * (_WIDTH + 1)) * _ENTRY_BYTES + 16 * n
    if kind == "scores":
        # two batches, and half of each again for those that go in two messages
        batches = 3 * LARGEST_BATCH * min(_WIDTH, k) * (4 + itemsize)
        if not fits_dense(n_features, n_own, np.dtype(f"f{itemsize}"), memory_mb):
            weights = _listed_bytes(n, n_features, nnz, n_own, k, itemsize)
        return int(weights + rows + examples + pool + batches + _PASSING_BYTES * n)
    if kind == "bounds":
        width = binary.block_width(n_own, np.dtype(f"f{itemsize}"))
        blocks = -(-n_own // width)
        # weights and dual variables; of each example and block gain, unchanged visits and, in a certificate, its gap
        return int(rows + examples + blocks * ((n_features + n) * width * itemsize + n * (4 + 1 + 8)))
    padded = -(-n_own // cells) * ALIGNMENT
    batches = LARGEST_SUMS * (2 * (padded + 2 * n_own * itemsize) + 8 * n_own)
    return int(weights + rows + examples + n * n_own * itemsize + batches)


def _listed_bytes(n: int, n_features: int, nnz: int, n_own: int, k: int, itemsize: int) -> float:
    """The bytes of weights whose rare features have lists, where features are as frequent as Zipf's law has words."""
    ranks = np.arange(1, n_features + 1)
    low, high = 0.0, float(nnz)
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(middle / ranks, n).sum() < nnz else (low, middle)
    counts = np.minimum(high / ranks, n)
    dense = counts >= FREQUENT * k
    entries = expected_lengths(counts[~dense], k).sum() * n_own / k
    hot = np.count_nonzero(dense) * -(-n_own // (ALIGNMENT // itemsize)) * ALIGNMENT
    # an entry is a class and a value, each in the room of a weight; where an example's lists begin
    return float(hot + _LIST_ROOM * 2 * itemsize * entries + _LIST_BYTES * n_features + 8 * n)


class Part(NamedTuple):
    """What one shard holds of a linear model.

    Attributes
    ----------
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; the same in every shard.
    own : int32 array, shape (n_own,)
        The shard's classes, ascending.
    W : float array or csr_matrix, shape (n_rows, n_own)
        All weights, or those that are not zero.
    bias : float
        Not 0: the last feature is a constant of this value, which no example to be scored has.
    nonzero_duals : float
        The share of the dual variables that are not zero, among examples that are not empty: its mean over the shards,
        weighted by their classes, is that of the model.
    """

    features: Ints
    own: Ints32
    W: Array | sp.csr_matrix
    bias: float
    nonzero_duals: float

    def files(self, rank: int) -> Arrays:
        """The weights, and from one shard what all have alike."""
        alike = {"features": self.features, "bias": np.array([self.bias])} if rank == 0 else {}
        if sp.issparse(self.W):
            mine = {"indptr": self.W.indptr, "indices": self.W.indices, "data": self.W.data}
            return {f"{name}-{rank}": array for name, array in mine.items()} | alike
        return {block_name(rank): self.W, **alike}

    def report(self) -> dict[str, Any]:
        """Of the model's report."""
        weights = self.W[:-1] if self.bias else self.W
        nonzero = weights.nnz if sp.issparse(weights) else np.count_nonzero(weights)
        return {"nonzero_weights": int(nonzero), "nonzero_duals": self.nonzero_duals}


class LinearShards(Shardable):
    """Shards of a linear machine, each of which has classes of its own."""

    def partition(self, problem: Problem, size: int) -> Ints32:
        """The rank that owns each class, shape (n_classes,); raises ValueError for more shards than classes."""
        return partition_classes(problem.y, problem.n_classes, size)

    def forecast(self, counts: Ints, n_features: int, nnz: int, size: int, rates: Rates | None = None) -> Forecast:
        """Predict a training in shards; as :func:`solvers.linear.sharded.linear_shards.forecast`."""
        params, threads = self.solver.params, self.solver.threads
        kind, memory_mb, itemsize = self.exchange_kind, params.memory_mb, precision(params).itemsize
        return forecast(counts, n_features, nnz, size, itemsize, threads, rates, kind=kind, memory_mb=memory_mb)

    def assembled(self, problem: Problem, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> Model:
        classes, n_features = tuple(problem.classes), problem.n_features
        model: Model
        if has_sparse_part(arrays):
            model = sparse_model(classes, n_features, owner, arrays)
        else:
            model = ShardedLinearModel.from_arrays(classes, n_features, {**arrays, "owner": owner})
        counts = np.bincount(owner)
        duals = float(np.average([part["nonzero_duals"] for part in reports], weights=counts))
        weights = sum(part["nonzero_weights"] for part in reports) / (problem.n_classes * problem.n_features)
        model.report = {"nonzero_weights": weights, "nonzero_duals": duals}
        return model
