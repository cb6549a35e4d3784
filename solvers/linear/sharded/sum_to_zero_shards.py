"""Shards of the machines whose weights add up to zero: by block steps, or by the interior point method.

What an iteration of the interior point method in shards will take, computed from counts before anything runs.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.problem import Problem
from solvers.linear.driver.params import precision
from solvers.linear.interior.interior_point import estimate_bytes
from solvers.linear.interior.normal_equations import ShardSums
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.sharded.sum_exchange import SumTraining
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.training import train
from solvers.linear.sum_to_zero import NEXT_TO_NOTHING, used_features
from solvers.numerics.array_types import Ints, Ints32
from solvers.numerics.rows import features_by_frequency
from solvers.sharding.exchange import Exchange
from solvers.sharding.partition import balanced
from solvers.sharding.plan import Forecast, Rates, Share

# of an iteration with two refinements of each of its two directions: sums that all shards wait for, and how many of
# them have a number for each feature
ROUNDS, VECTORS = 29, 16


def forecast(
    counts: Ints, n_features: int, nnz: int, size: int, threads: int = 1, rates: Rates | None = None
) -> Forecast:
    """Predict a training in shards as :meth:`LinearShards.forecast`, an iteration as an epoch."""
    rates = rates or Rates()
    n, d, owner = int(counts.sum()), n_features, balanced(counts, size)
    density = nnz / max(1, n * d)
    shares = []
    for rank in range(size):
        own = owner == rank
        n_own = int(own.sum())
        shares.append(Share(n_own, int(counts[own].sum()), estimate_bytes(n, d, n_own, density)))
    widest = max(share.classes for share in shares)
    # half of a Gram matrix, the factor and its inverse; in double precision
    products = widest * (0.5 * nnz * d + float(d) ** 3)
    sent = size * 8 * (d * d + VECTORS * d + ROUNDS)
    exchanging = 0.0 if size == 1 else ROUNDS * rates.round_trip + size * sent / rates.bandwidth
    seconds = products / (0.5 * rates.products * threads) + exchanging
    return Forecast(shares, ROUNDS, sent, seconds)


class SumToZeroShards(LinearShards):
    """Shards of a machine whose weights add up to zero."""

    # of block ascent the first two
    columns = ("W", "alpha", "weights", "beta", "slack", "xi")
    exchange_kind = "sums"

    def forecast(self, counts: Ints, n_features: int, nnz: int, size: int, rates: Rates | None = None) -> Forecast:
        if not self.solver.suits_interior(int(counts.sum()), n_features, len(counts)):
            return super().forecast(counts, n_features, nnz, size, rates)
        return forecast(counts, n_features, nnz, size, self.solver.threads, rates)

    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        problem = self.solver.prepared(problem)
        features = used_features(problem)
        if self.solver.takes_interior(problem, features):
            return self._interior_shard(problem, features, exchange, state)
        training = partial(SumTraining, problem, self.plan(problem), self.solver.margins(problem.n_classes), exchange)
        return train(training, self.solver.threads, state)

    def plan(self, problem: Problem) -> Plan:
        """How a shard trains by block steps."""
        params, zero = self.solver.params, self.solver.loss.at_zero(problem.n_classes)
        return Plan(params.C, params.tol, params.max_epochs, precision(params), self.solver.seed, zero)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.solver.prepared(problem), np.asarray(state["own"])
        if "slack" in state:
            return self._interior_part(prepared, own, state)
        features = features_by_frequency(prepared.X)
        W = np.ascontiguousarray(state["W"][np.argsort(features), : len(own)])
        W *= W.dtype.type(state["scale"][0])
        _, _, own_share, other_share, _ = self.solver.margins(prepared.n_classes)
        mine = np.bincount(prepared.y[filled(prepared)], minlength=prepared.n_classes)[own]
        each = (own_share > 0) * mine + (other_share > 0) * (int(filled(prepared).sum()) - mine)
        duals = share(np.count_nonzero(state["alpha"][:, : len(own)]), float(each.sum()))
        return Part(np.sort(features), own, W, self.solver.params.bias, duals)

    def _interior_shard(
        self, problem: Problem, features: Ints, exchange: Exchange, state: State | None
    ) -> Iterator[Step]:
        """The same iterations by all shards, each with the weights and dual variables of its own classes."""
        owner = self.partition(problem, exchange.size)
        own = np.flatnonzero(owner == exchange.rank).astype(np.int32)
        sums = ShardSums(exchange, problem.n_classes)
        for step in self.solver.interior_steps(problem, features, state, own, sums):
            yield replace(step, state={**step.state, "own": own})

    def _interior_part(self, prepared: Problem, own: Ints32, state: State) -> Part:
        features = used_features(prepared)
        W = np.ascontiguousarray(state["W"][:, : len(own)], precision(self.solver.params))
        bounds = self.solver.interior_problem(prepared, features)[1].bounds[:, own]
        some = filled(prepared)
        held = np.count_nonzero((state["alpha"][:, : len(own)] > NEXT_TO_NOTHING * bounds)[some])
        return Part(features, own, W, self.solver.params.bias, share(held, float(np.count_nonzero(bounds[some]))))
