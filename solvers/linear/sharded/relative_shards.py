"""Shards of the machines with relative margins, which exchange the scores of few classes of each example."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear.driver.params import precision
from solvers.linear.layouts import hybrid_layout
from solvers.linear.layouts.hybrid_layout import fits_dense, weights_in
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.shard_weights import weights_of
from solvers.linear.sharded.task import DualLists, Plan
from solvers.linear.sharded.training import train
from solvers.numerics.array_types import Array, Ints32
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange
from solvers.sharding.reshard import OWN
from solvers.sharding.shardable import Arrays


class RelativeShards(LinearShards):
    """Shards of a machine with relative margins."""

    def sharded(self, problem: Problem, exchange: Exchange, state: State | None = None) -> Iterator[Step]:
        problem = self.solver.prepared(problem)
        return train(partial(ScoreTraining, problem, self.plan(problem), exchange), self.solver.threads, state)

    def plan(self, problem: Problem) -> Plan:
        """How a shard trains."""
        params, zero = self.solver.params, self.solver.loss.at_zero(problem.n_classes)
        costs = self.solver.costs_among(problem.classes, problem.taxonomy)
        return Plan(
            params.C, params.tol, params.max_epochs, precision(params), self.solver.seed, zero,
            largest_loss=self.solver.largest_loss, memory_mb=params.memory_mb, costs=costs,
        )  # fmt: skip

    def split(self, state: State) -> tuple[dict[str, Array], dict[str, Array]]:
        alone, common = super().split(state)
        return alone | {name: common.pop(name) for name in [*common] if name.startswith("list_")}, common

    def gathered(self, parts: Sequence[Arrays], own: Ints32) -> dict[str, Array]:
        """As for all methods; of lists, or where columns take too much memory, without weights if classes move.

        These are made afresh of the dual variables then.
        """
        same = next((part for part in parts if np.array_equal(part[OWN], own)), None)
        if same is not None:
            return dict(same) if "list_start" in same else super().gathered(parts, own)
        n_rows = max((len(part["W"]) for part in parts), default=0)
        fits = fits_dense(n_rows, len(own), precision(self.solver.params), self.solver.params.memory_mb)
        if fits and not any("list_start" in part for part in parts):
            return super().gathered(parts, own)
        return super().gathered([{OWN: part[OWN]} for part in parts], own)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.solver.prepared(problem), np.asarray(state["own"])
        if "W" not in state:
            state = {**state, **self._weights(prepared, state, own)}
        count = np.bincount(prepared.X.indices, minlength=prepared.n_features)
        features = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
        ascending = np.argsort(features)
        named = np.maximum(state["pool_length"].astype(np.int64) - 1, 0).sum()
        duals = share(named, int(filled(prepared).sum()) * (prepared.n_classes - 1))
        if "list_start" in state:
            rank = np.empty(len(features), np.int64)
            rank[ascending] = np.arange(len(features))
            columns = np.arange(len(own), dtype=np.int32)
            sparse = hybrid_layout.to_csr(weights_in(state), rank, len(features), len(own), columns)
            sparse.data *= sparse.dtype.type(state["scale"][0])
            return Part(features[ascending], own, sparse, self.solver.params.bias, duals)
        W = np.ascontiguousarray(state["W"][np.ix_(ascending, np.arange(len(own)))])
        W *= W.dtype.type(state["scale"][0])
        return Part(features[ascending], own, W, self.solver.params.bias, duals)

    def assembled(self, problem: Problem, owner: Ints32, arrays: Arrays, reports: Sequence[Mapping[str, Any]]) -> Model:
        model = super().assembled(problem, owner, arrays, reports)
        model.costs = self.solver.params.costs_of(problem)
        return model

    def _weights(self, prepared: Problem, state: State, own: Ints32) -> dict[str, Array]:
        """The arrays of the weights that the dual variables of a state make."""
        duals = DualLists(0, 0)
        duals.restore(state)
        weights = weights_of(prepared, precision(self.solver.params), own, self.solver.params.memory_mb, lists=True)
        with ThreadPool(self.solver.threads) as thread_pool:
            weights.rebuild(duals.pool, thread_pool)
        return weights.state()
