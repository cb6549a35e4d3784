"""The flat machines with relative margins: one driver; each method says how an example's violations become its loss."""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share, warm_state
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.memory import limit_bytes
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear.driver.ascent import (
    A,
    Ascent,
    fitted,
    order_of_classes,
    precision,
    weights_bytes,
)
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.layouts.hybrid_layout import DENSE_SHARE, HybridLayout
from solvers.linear.layouts.layouts import DenseLayout
from solvers.linear.relative_loss import RelativeLoss
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.task import Plan
from solvers.linear.sharded.tournament import TournamentTraining
from solvers.linear.sharded.training import train
from solvers.sharding.exchange import Exchange, ExchangeKind

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
            params.C, params.tol, params.max_epochs, precision(params), self.seed, zero, largest_loss=self.largest_loss
        )
        training = TournamentTraining if kind == "weights" else ScoreTraining
        return train(partial(training, problem, plan, exchange), self.threads, state)

    def part(self, problem: Problem, state: State) -> Part:
        prepared, own = self.prepared(problem), np.asarray(state["own"])
        count = np.bincount(prepared.X.indices, minlength=prepared.n_features)
        features = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
        ascending = np.argsort(features)
        W = np.ascontiguousarray(state["W"][np.ix_(ascending, np.arange(len(own)))])
        W *= W.dtype.type(state["scale"][0])
        named = np.maximum(state["pool_length"].astype(np.int64) - 1, 0).sum()
        duals = share(named, int(filled(prepared).sum()) * (prepared.n_classes - 1))
        return Part(features[ascending], own, W, self.params.bias, duals)
