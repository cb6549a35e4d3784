"""The flat machines with relative margins: one driver; each method says how an example's violations become its loss.

The losses with relative margins, as the driver takes them: the largest violation, or the sum of all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step
from solvers.core.certain_answers import Reach
from solvers.core.dual_variables import filled, share, warm_state
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.memory import limit_bytes, refuse
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.linear.driver.ascent import Ascent, EndGame, fitted, weights_bytes
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.params import A, AscentParams, precision
from solvers.linear.driver.run import Run
from solvers.linear.end_games import NewtonSteps, ProximalSteps
from solvers.linear.inner_passes import InnerPasses
from solvers.linear.layouts import hybrid_layout
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.hybrid_layout import DENSE_SHARE, HybridLayout
from solvers.linear.layouts.layouts import DenseLayout, Layout, holding_back, order_of_classes
from solvers.linear.steps import joint, joint_dense
from solvers.linear.steps.block_step import snap_to_bounds
from solvers.linear.visits import Task, Visits
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.array_types import Floats
from solvers.numerics.coefficients import Coefficients

ENTRY_BYTES = 12
ROOM = 1 << 16


@dataclass(frozen=True)
class RelativeLoss:
    """The violations ``1 - f_y + f_c`` of an example: the largest, or their sum."""

    largest: bool
    params: AscentParams
    name: str

    @property
    def end_games(self) -> tuple[EndGame, ...]:
        """The first that suits a problem ends its trainings."""
        return ProximalSteps(self.largest, self.params), NewtonSteps(self.largest, self.params)

    def at_zero(self, n_classes: int) -> float:
        return 1.0 if self.largest else n_classes - 1.0

    def layout(self, problem: Problem) -> Layout:
        k, dtype, dense = problem.n_classes, precision(self.params), DenseLayout.suits(problem.X)

        def make(X: sp.csr_matrix) -> Layout:
            if dense:
                return DenseLayout.from_matrix(X, k, dtype)
            return HybridLayout.within(X, k, dtype, self.params.memory_mb)

        # the end games take rows and weights as they are
        if any(game.suits(*problem.X.shape, k, dense=dense) for game in self.end_games):
            return make(problem.X)
        return holding_back(make, problem.X, self.params.bias, self.params.C * problem.weights, k)

    def duals(self, task: Task) -> Coefficients:
        return coefficients.empty(len(task.y), max(ROOM, 4 * task.n_classes))

    def with_capacity(self, task: Task, duals: Coefficients) -> Coefficients:
        room = max(ROOM, 2 * task.n_classes)
        if duals.used[0] + room > len(duals.classes):
            copies = (len(duals.classes) + coefficients.size_of_copy(duals, room)) * ENTRY_BYTES
            held, all_of_them = int(duals.length.sum()), f"{len(task.y):,} x {task.n_classes:,}"
            what = f"{self.name} has {held:,} dual variables of {all_of_them} so far, and"
            refuse(what, copies, self.params.memory_mb)
        return coefficients.with_capacity(duals, room)

    def visit(self, task: Task, run: Run, visits: Visits) -> int:
        if isinstance(task.rows, DenseRows):
            return int(joint_dense.visit(task, visits, self.largest, run.W, run.duals, run.progress))
        return int(joint.visit(task, visits, self.largest, *run.W, run.duals, run.progress))

    def measure(self, task: Task, run: Run, gaps: Floats, leads: Floats) -> tuple[float, float, float]:
        terms = scaling_search.blank()
        losses, total = self.certify(task, run, gaps, leads, terms)
        half = 0.5 * run.layout.square_norm(run.W)
        # what violates no margin at W violates none at a larger multiple: smaller ones would take all margins
        primal, multiple = scaling_search.best_point(half, losses, terms, scaling_search.ONE)
        return primal, total - half, multiple

    def certify(self, task: Task, run: Run, gaps: Floats, leads: Floats, terms: Floats) -> tuple[float, float]:
        """As :func:`solvers.linear.steps.joint.certify`."""
        found = run.duals, gaps, leads, terms
        if isinstance(task.rows, DenseRows):
            losses, total = joint_dense.certify(task, self.largest, run.W, *found)
        else:
            losses, total = joint.certify(task, self.largest, *run.W, *found)
        return losses, total

    def rebuild(self, task: Task, duals: Coefficients, W: Any) -> None:
        if isinstance(task.rows, DenseRows):
            joint_dense.rebuild(task.rows, duals, W)
        elif W.lists is None:
            coefficients.rebuild(task.rows, duals, W.hot)
        elif not hybrid_layout.rebuild(task.rows, duals, W.hot, W.lists):
            raise RuntimeError("recomputed weights take more memory than before")

    def sums(self, task: Task, duals: Coefficients) -> Floats:
        return np.asarray(coefficients.sums(duals, task.n_classes))

    def linear_part(self, task: Task, duals: Coefficients) -> float:
        # the sum of an example's dual variables is the own class's coefficient
        return float(duals.values[duals.start[duals.length > 0]].sum())

    def multiply(self, task: Task, duals: Coefficients, factor: float) -> None:
        np.multiply(duals.values, factor, out=duals.values)
        if not self.largest:
            snap_to_bounds(duals.start, duals.length, duals.values, task.bounds)

    def shares(self, task: Task, duals: Coefficients) -> sp.csr_matrix:
        return coefficients.shares(duals, task.bounds, task.n_classes)

    def of_shares(self, task: Task, shares: sp.csr_matrix) -> Coefficients:
        return coefficients.of_shares(shares, task.y, task.bounds, self.largest)


LIST_BYTES = 12


class RelativeMargins(Machine[A]):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    shards = "solvers.linear.sharded.relative_shards:RelativeShards"
    largest_loss: ClassVar[bool]
    starts_warm = True
    bounds_answers = True

    @property
    def loss(self) -> RelativeLoss:
        """The loss of one example."""
        return RelativeLoss(self.largest_loss, self.params, self.name)

    @property
    def ascent(self) -> Ascent:
        """The driver."""
        loss = self.loss
        long_passes = LongPasses(loss, self.seed, self.params.tol)
        inner_passes = InnerPasses(self.largest_loss, self.seed)
        return Ascent(loss, self.params, self.seed, inner_passes, loss.end_games, long_passes)

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

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach:
        return self.ascent.reach(self.prepared(problem), state, model, primal, dual)

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
        layout = self.loss.layout(problem)
        if not isinstance(layout, HybridLayout) or len(state["W"]) == len(layout.features):
            return fitted(problem, layout, state)
        W = layout.csr(state, problem.n_features, order_of_classes(problem))
        W.data *= W.dtype.type(state["scale"][0])
        return SparseLinearModel(problem.classes, W)
