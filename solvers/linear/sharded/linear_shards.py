"""What the linear machines share that shards of one gang train together: who owns which class, and the whole model."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import ShardedLinearModel, block_name
from solvers.linear.driver.params import precision
from solvers.linear.sharded.forecast import forecast
from solvers.linear.sharded.weights.sparse_part import has_sparse_part, sparse_model
from solvers.numerics.array_types import Array, Ints, Ints32
from solvers.sharding.exchange import ExchangeKind
from solvers.sharding.partition import partition_classes
from solvers.sharding.plan import Forecast, Rates
from solvers.sharding.shardable import Arrays, Shardable


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
    """A linear machine whose shards have classes of their own."""

    def partition(self, problem: Problem, size: int) -> Ints32:
        """The rank that owns each class, shape (n_classes,); raises ValueError for more shards than classes."""
        return partition_classes(problem.y, problem.n_classes, size)

    def forecast(
        self,
        counts: Ints,
        n_features: int,
        nnz: int,
        size: int,
        rates: Rates | None = None,
        kind: ExchangeKind | None = None,
    ) -> Forecast:
        """Predict a training in shards; as :func:`solvers.linear.sharded.forecast.forecast`."""
        itemsize = precision(self.params).itemsize
        kind, memory_mb = kind or self.exchange_kinds[0], self.params.memory_mb
        return forecast(counts, n_features, nnz, size, itemsize, self.threads, rates, kind=kind, memory_mb=memory_mb)

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
