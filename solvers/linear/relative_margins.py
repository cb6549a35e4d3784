"""The flat machines with relative margins: one driver; each method says how an example's violations become its loss."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share, warm_state
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.memory import limit_bytes, refuse
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear.driver.ascent import Ascent, fitted, weights_bytes
from solvers.linear.driver.class_order import order_of_classes
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.params import A, precision
from solvers.linear.layouts import hybrid_weights
from solvers.linear.layouts.hybrid_layout import DENSE_SHARE, HybridLayout, fits_dense, weights_in
from solvers.linear.layouts.layouts import DenseLayout
from solvers.linear.relative_loss import RelativeLoss
from solvers.linear.sharded.dual_lists import DualLists
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.tournament import WEIGHTS_HELD, TournamentTraining
from solvers.linear.sharded.training import train
from solvers.linear.sharded.weights.shard_weights import weights_of
from solvers.numerics.array_types import Array, Ints32
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Exchange, ExchangeKind
from solvers.sharding.reshard import OWN
from solvers.sharding.shardable import Arrays

LIST_BYTES = 12


class RelativeMargins(Machine[A], LinearShards):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    largest_loss: ClassVar[bool]
    starts_warm = True

    @property
    def _loss(self) -> RelativeLoss:
        return RelativeLoss(self.largest_loss, self.params, self.seed, self.name)

    @property
    def ascent(self) -> Ascent:
        """The driver."""
        loss = self._loss
        long_passes = LongPasses(loss, self.seed, self.params.tol)
        return Ascent(loss, self.params, self.seed, loss.inner_pass, loss.end_game, long_passes)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return self.ascent.steps(problem, state)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return self.ascent.rescaled(problem, state, ratio)

    def shares_of(self, problem: Problem, state: State) -> sp.csr_matrix:
        return self.ascent.shares(problem, state)

    def started(self, problem: Problem, shares: sp.csr_matrix) -> State:
        shape = problem.X, problem.n_classes, precision(self.params), self.params.memory_mb
        if not DenseLayout.suits(problem.X) and HybridLayout.takes_lists(*shape):
            raise ProblemError("weights in lists of classes cannot be made from dual variables: train from the start")
        return warm_state(shares)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        # each list begins with the own class, whose coefficient is no dual variable
        named = np.maximum(state["dual_length"].astype(np.int64) - 1, 0).sum()
        return share(named, int(filled(problem).sum()) * (problem.n_classes - 1))

    @property
    def weight_bytes(self) -> int:
        return precision(self.params).itemsize

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        dense = weights_bytes(n_samples, n_features, n_classes, precision(self.params))
        if dense <= DENSE_SHARE * limit_bytes(self.params.memory_mb):
            return dense
        # how long the lists become shows only in training
        return LIST_BYTES * n_features + 16 * n_samples

    def fitted(self, problem: Problem, state: State) -> LinearModel | SparseLinearModel:
        layout = self._loss.layout(problem)
        if not isinstance(layout, HybridLayout) or len(state["W"]) == len(layout.features):
            return fitted(problem, layout, state)
        W = layout.csr(state, problem.n_features, order_of_classes(problem))
        W.data *= W.dtype.type(state["scale"][0])
        return SparseLinearModel(problem.classes, W)

    def sharded(
        self, problem: Problem, exchange: Exchange, state: State | None = None, kind: ExchangeKind | None = None
    ) -> Iterator[Step]:
        problem, params = self.prepared(problem), self.params
        zero = self._loss.at_zero(problem.n_classes)
        plan = Plan(
            params.C, params.tol, params.max_epochs, precision(params), self.seed, zero, largest_loss=self.largest_loss,
            memory_mb=params.memory_mb,
        )  # fmt: skip
        if kind == "weights":
            self._check_weights_travel(problem, exchange.size)
        training = TournamentTraining if kind == "weights" else ScoreTraining
        return train(partial(training, problem, plan, exchange), self.threads, state)

    def _check_weights_travel(self, problem: Problem, size: int) -> None:
        """Raise TooLargeError where the weights of all features that half-shards travel with, all dense, do not fit."""
        n_used = int(np.count_nonzero(np.bincount(problem.X.indices, minlength=problem.n_features)))
        n_own = -(-problem.n_classes // size)
        needed = WEIGHTS_HELD * weights_bytes(problem.n_samples, n_used, n_own, precision(self.params))
        refuse(f"{self.name} in {size} shards that exchange weights (scores take less)", needed, self.params.memory_mb)

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
        fits = fits_dense(n_rows, len(own), precision(self.params), self.params.memory_mb)
        if fits and not any("list_start" in part for part in parts):
            return super().gathered(parts, own)
        return super().gathered([{OWN: part[OWN]} for part in parts], own)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.prepared(problem), np.asarray(state["own"])
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
            sparse = hybrid_weights.to_csr(weights_in(state), rank, len(features), len(own), columns)
            sparse.data *= sparse.dtype.type(state["scale"][0])
            return Part(features[ascending], own, sparse, self.params.bias, duals)
        W = np.ascontiguousarray(state["W"][np.ix_(ascending, np.arange(len(own)))])
        W *= W.dtype.type(state["scale"][0])
        return Part(features[ascending], own, W, self.params.bias, duals)

    def _weights(self, prepared: Problem, state: State, own: Ints32) -> dict[str, Array]:
        """The arrays of the weights that the dual variables of a state make."""
        duals = DualLists(0, 0)
        duals.restore(state)
        weights = weights_of(prepared, precision(self.params), own, self.params.memory_mb, lists=True)
        with ThreadPool(self.threads) as thread_pool:
            weights.rebuild(duals.pool, thread_pool)
        return weights.state()
