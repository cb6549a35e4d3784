"""The flat machines with relative margins: one kernel; each method says how an example's violations become its loss."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step
from solvers.core.dual_variables import filled, share
from solvers.core.memory import limit_bytes
from solvers.core.model import LinearModel
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear.ascent import LIVE_SHARE, WORTH, A, DualAscent, Run, Task, order_of_classes, precision
from solvers.linear.layouts import hybrid_weights
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.hybrid_layout import DENSE_SHARE, HybridLayout
from solvers.linear.layouts.layouts import DenseLayout, Layout
from solvers.linear.sharded import score_exchange, tournament
from solvers.linear.sharded.linear_shards import LinearShards, Part
from solvers.linear.sharded.task import Plan
from solvers.linear.steps import conjugate, joint, joint_dense
from solvers.linear.steps.bounds_snapping import settle
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.coefficients import Coefficients
from solvers.sharding.exchange import Exchange, ExchangeKind

CLIMB_FROM, CLIMB_EVERY, LONGEST_WAIT = 10, 4, 31
LIST_BYTES = 12
FEWEST_PRODUCTS, MOST_PRODUCTS, REDUCTION = 8, 40, 1e-3


class RelativeMargins(DualAscent[A], LinearShards):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    largest_loss: ClassVar[bool]

    def loss_at_zero(self, n_classes: int) -> float:
        return 1.0 if self.largest_loss else n_classes - 1.0

    def multiply(self, task: Task, duals: Coefficients, factor: float) -> None:
        super().multiply(task, duals, factor)
        if not self.largest_loss:
            settle(duals.start, duals.length, duals.values, task.bounds)

    def layout(self, problem: Problem) -> Layout:
        dtype = precision(self.params)
        if DenseLayout.suits(problem.X):
            return DenseLayout.of(problem.X, problem.n_classes, dtype)
        return HybridLayout.within(problem.X, problem.n_classes, dtype, self.params.memory_mb)

    def rebuild(self, task: Task, duals: Coefficients, W: Any) -> None:
        if isinstance(task.rows, DenseRows):
            joint_dense.rebuild(task.rows, duals, W)
        elif W.lists is None:
            coefficients.rebuild(task.rows, duals, W.hot)
        elif not hybrid_weights.rebuild(task.rows, duals, W.hot, W.lists):
            raise RuntimeError("weights made afresh take more room than before")

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        dense = super().bytes_needed(n_samples, n_features, n_classes)
        if dense <= DENSE_SHARE * limit_bytes(self.params.memory_mb):
            return dense
        # how long the lists become shows only in training
        return LIST_BYTES * n_features + 16 * n_samples

    def fitted(self, problem: Problem, state: State) -> LinearModel | SparseLinearModel:
        layout = self.layout(problem)
        if not isinstance(layout, HybridLayout) or len(state["W"]) == len(layout.features):
            return super().fitted(problem, state)
        W = layout.csr(state, problem.n_features, order_of_classes(problem))
        W.data *= W.dtype.type(state["scale"][0])
        return SparseLinearModel(problem.classes, W)

    def sharded(
        self, problem: Problem, exchange: Exchange, state: State | None = None, kind: ExchangeKind | None = None
    ) -> Iterator[Step]:
        problem, params = self.prepared(problem), self.params
        zero = self.loss_at_zero(problem.n_classes)
        plan = Plan(
            params.C, params.tol, params.max_epochs, precision(params), self.seed, zero, largest_loss=self.largest_loss
        )
        train = tournament.train if kind == "weights" else score_exchange.train
        return train(problem, plan, exchange, self.threads, state)

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

    def refine(self, task: Task, run: Run, budget: float) -> float:
        if not isinstance(task.rows, DenseRows):
            spent = self._climb(task, run, budget) if run.refined and run.refined % CLIMB_EVERY == 0 else 0.0
            return spent + super().refine(task, run, budget - spent)
        clock = (self.seed, run.epoch, run.refined, self.most_refinements(run.epoch))
        rule = (LIVE_SHARE, WORTH * float(run.pace[0]), budget)
        order, cost, spent, passes = joint_dense.refine(
            *task, self.largest_loss, run.W, run.duals, run.rest, run.gains, run.tally, run.layout.listed, clock, rule,
            run.mean_gain,
        )  # fmt: skip
        run.order, run.position, run.pace[1] = order, len(order), cost
        run.refined += passes
        return float(spent)

    def _climb(self, task: Task, run: Run, budget: float) -> float:
        """Conjugate gradients on the examples that gain more than the mean; where that did not pay, less often."""
        if run.epoch < max(CLIMB_FROM, run.pace[2]):
            return 0.0
        some = np.flatnonzero((run.duals.length > 0) & (run.gains > run.mean_gain)).astype(np.int32)
        price = 2.0 * float((run.layout.listed[some] * run.duals.length[some]).sum())
        most = int(min(MOST_PRODUCTS, budget // max(price, 1.0)))
        if len(some) == 0 or most < FEWEST_PRODUCTS:
            return 0.0
        assert isinstance(run.layout, HybridLayout)
        run.blank = run.layout.no_change(run.W, run.blank)
        gain, products = conjugate.climb(some, *task, self.largest_loss, *run.W, run.duals, *run.blank, most, REDUCTION)
        cost = price * (products + 1)
        run.pace[3] = 0.0 if gain > WORTH * run.pace[0] * cost else min(2 * run.pace[3] + 1, LONGEST_WAIT)
        run.pace[2] = run.epoch + run.pace[3]
        return float(cost)

    def visit(
        self,
        task: Task,
        order: NDArray[np.int32],
        begin: int,
        end: int,
        full: bool,
        most: int,
        W: Any,
        duals: Coefficients,
        rest: NDArray[np.uint8],
        gains: NDArray[np.float32],
        tally: NDArray[np.float64],
    ) -> int:
        fixed = (*task, order, begin, end, full, most, self.largest_loss)
        changing = (duals, rest, gains, tally)
        if isinstance(task.rows, DenseRows):
            return int(joint_dense.visit(*fixed, W, *changing))
        return int(joint.visit(*fixed, *W, *changing))

    def measure(self, task: Task, run: Run, gaps: NDArray[np.float64]) -> tuple[float, float, float]:
        terms = scaling_search.blank()
        if isinstance(task.rows, DenseRows):
            loss, total = joint_dense.certify(*task, self.largest_loss, run.W, run.duals, gaps, terms)
        else:
            loss, total = joint.certify(*task, self.largest_loss, *run.W, run.duals, gaps, terms)
        half = 0.5 * run.layout.square_norm(run.W)
        # what violates no margin at W violates none at a larger multiple: smaller ones would take all margins
        primal, multiple = scaling_search.best_point(half, loss, terms, scaling_search.ONE)
        return primal, total - half, multiple
