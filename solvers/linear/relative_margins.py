"""The flat machines with relative margins: one driver; each method says how an example's violations become its loss.

The losses with relative margins, as the driver takes them: the largest violation, or the sum of all. With costs of
wrong answers each margin is the cost of its answer (margin rescaling; Taskar et al. 2004): the violations are
``cost(y, c) - f_y + f_c``, and the linear part of the dual is ``sum_ic cost(y_i, c) alpha_ic``. Or each violation is
multiplied by its cost (slack rescaling; Tsochantaridis et al. 2005): then the bounds of the dual variables are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Outline, State, Step
from solvers.core.certain_answers import Reach
from solvers.core.cost_params import CostParams
from solvers.core.dual_variables import filled, share, warm_state
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.memory import limit_bytes, refuse
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.labels.costs import Costs, total_cost
from solvers.labels.taxonomy import Taxonomy
from solvers.linear.driver.ascent import Ascent, EndGame, fitted, weights_bytes
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.driver.run import Run, duals_of
from solvers.linear.end_games import NewtonSteps, ProximalSteps
from solvers.linear.inner_passes import InnerPasses
from solvers.linear.layouts import hybrid_layout
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.hybrid_layout import DENSE_SHARE, HybridLayout
from solvers.linear.layouts.layouts import DenseLayout, Layout, holding_back, order_of_classes, rank_of_classes
from solvers.linear.steps import joint, joint_dense
from solvers.linear.steps.block_step import snap_to_bounds
from solvers.linear.visits import Task, Visits
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.array_types import Bools, Floats
from solvers.numerics.coefficients import Coefficients

ENTRY_BYTES = 12
ROOM = 1 << 16


@dataclass(frozen=True)
class RelativeLoss:
    """The violations ``1 - f_y + f_c`` of an example, or with costs those of their margins: the largest, or their sum.

    ``costs`` number the classes as the columns of the weights do.
    """

    largest: bool
    params: AscentParams
    name: str
    costs: Costs | None = None

    @property
    def end_games(self) -> tuple[EndGame, ...]:
        """The first that suits a problem ends its trainings; they take no costs."""
        if self.costs is not None:
            return ()
        return ProximalSteps(self.largest, self.params), NewtonSteps(self.largest, self.params)

    def at_zero(self, n_classes: int) -> float:
        """The loss of an example whose scores all vanish, as those of an empty row always do."""
        return 1.0 if self.largest else n_classes - 1.0

    def constant(self, task: Task, empty: Bools) -> float:
        if self.costs is None:
            return float(task.bounds[empty].sum()) * self.at_zero(task.n_classes)
        return float(task.bounds[empty] @ self.costs.at_zero(task.y[empty], largest=self.largest))

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
            return int(joint_dense.visit(task, visits, self.largest, run.W, run.duals, run.progress, self.costs))
        return int(joint.visit(task, visits, self.largest, *run.W, run.duals, run.progress, self.costs))

    def measure(self, task: Task, run: Run, gaps: Floats, leads: Floats) -> tuple[float, float, float]:
        terms = scaling_search.blank()
        losses, total = self.certify(task, run, gaps, leads, terms)
        half = 0.5 * run.layout.square_norm(run.W)
        # what violates no margin at W violates none at a larger multiple: smaller ones would take all margins
        primal, multiple = scaling_search.best_point(half, losses, terms, scaling_search.ONE)
        if self.costs is not None and self.largest and multiple != 1.0:
            # what was noted is a bound there
            there = self.certify(task, run, np.zeros_like(gaps), np.zeros_like(leads), scaling_search.blank(), multiple)
            primal = multiple**2 * half + there[0]
        return primal, total - half, multiple

    def certify(
        self, task: Task, run: Run, gaps: Floats, leads: Floats, terms: Floats, multiple: float = 1.0
    ) -> tuple[float, float]:
        """As :func:`solvers.linear.steps.joint.certify`."""
        found = run.duals, gaps, leads, terms, self.costs, multiple
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
        if self.costs is not None and not self.costs.slack:
            return float(total_cost(self.costs, task.y, duals))
        # the sum of an example's dual variables is the own class's coefficient
        return float(duals.values[duals.start[duals.length > 0]].sum())

    def multiply(self, task: Task, duals: Coefficients, factor: float) -> None:
        np.multiply(duals.values, factor, out=duals.values)
        if not self.largest and (self.costs is None or not self.costs.slack):
            snap_to_bounds(duals.start, duals.length, duals.values, task.bounds)

    def shares(self, task: Task, duals: Coefficients) -> sp.csr_matrix:
        return coefficients.shares(duals, task.bounds, task.n_classes)

    def of_shares(self, task: Task, shares: sp.csr_matrix) -> Coefficients:
        most = None
        if self.costs is not None and self.costs.slack:
            rows = np.repeat(task.y, np.diff(shares.indptr))
            most = self.costs.between(rows, shares.indices)
        return coefficients.of_shares(shares, task.y, task.bounds, self.largest, most)


LIST_BYTES = 12


class RelativeParams(CostParams, AscentParams):
    """Parameters of the machines with relative margins."""

    cost_scaling: Literal["margin", "slack"] = Field(
        default="margin",
        description="How training minimises costs: margin takes the cost of an answer as the margin of the right label "
        "over it, slack multiplies the loss of each answer by its cost.",
    )

    @field_validator("cost_scaling")
    @classmethod
    def _is_of_costs(cls, scaling: str, info: ValidationInfo) -> str:
        if scaling != "margin" and info.data.get("costs") is None:
            raise ValueError("cost_scaling needs costs")
        return scaling


class RelativeMargins(Machine[RelativeParams]):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    shards = "solvers.linear.sharded.relative_shards:RelativeShards"
    largest_loss: ClassVar[bool]
    starts_warm = True
    bounds_answers = True

    @property
    def loss(self) -> RelativeLoss:
        """The loss of one example, without costs."""
        return RelativeLoss(self.largest_loss, self.params, self.name)

    def loss_on(self, problem: Problem) -> RelativeLoss:
        """The loss of one example, with the costs among the classes of a problem."""
        classes = [problem.classes[c] for c in order_of_classes(problem).tolist()]
        return replace(self.loss, costs=self.costs_among(classes, problem.taxonomy))

    def costs_among(self, classes: Sequence[str], tree: Taxonomy | None) -> Costs | None:
        """The costs that a training with these classes, in this order, takes; None where all are 1."""
        costs = self.params.costs_among(classes, tree)
        if costs is None or costs.are_one:
            return None
        return costs._replace(slack=self.params.cost_scaling == "slack")

    @property
    def ascent(self) -> Ascent:
        """The driver, without costs."""
        return self._ascent(self.loss)

    def ascent_on(self, problem: Problem) -> Ascent:
        """The driver, with the costs among the classes of a problem."""
        return self._ascent(self.loss_on(problem))

    def _ascent(self, loss: RelativeLoss) -> Ascent:
        # a sample of the losses says less of all where their margins differ
        long_passes = LongPasses(loss, self.seed, self.params.tol) if loss.costs is None else None
        inner_passes = InnerPasses(self.largest_loss, self.seed, loss.costs)
        return Ascent(loss, self.params, self.seed, inner_passes, loss.end_games, long_passes)

    def check_request(self, outline: Outline) -> None:
        super().check_request(outline)
        self.params.check_costs(outline)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return self.ascent_on(problem).steps(problem, state)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return self.ascent_on(problem).rescaled(problem, state, ratio)

    def shares_of(self, problem: Problem, state: State) -> sp.csr_matrix:
        return self.ascent_on(problem).shares(problem, state)

    def started(self, problem: Problem, shares: sp.csr_matrix) -> State:
        shape = problem.X, problem.n_classes, precision(self.params), self.params.memory_mb
        if not DenseLayout.suits(problem.X) and HybridLayout.takes_lists(*shape):
            raise ProblemError("weights in lists of classes cannot be made from dual variables: train from the start")
        return warm_state(shares)

    def answering(self, problem: Problem, fitted: Model) -> Model:
        model = super().answering(problem, fitted)
        model.costs = self.params.costs_of(problem)
        return model

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach:
        prepared = self.prepared(problem)
        return self.ascent_on(prepared).reach(prepared, state, model, primal, dual)

    def multiple(self, problem: Problem, state: State) -> float | None:
        return self.ascent.multiple(self.prepared(problem), state)

    def dual_variables(self, problem: Problem, state: State) -> Floats:
        """The dual variables of a state on the prepared problem, shape (n_samples, n_classes)."""
        duals = duals_of(coefficients.Coefficients, state)
        return np.asarray(coefficients.duals(duals, problem.n_classes)[:, rank_of_classes(problem)])

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
        layout = self.loss_on(problem).layout(problem)
        if not isinstance(layout, HybridLayout) or len(state["W"]) == len(layout.features):
            return fitted(problem, layout, state)
        W = layout.csr(state, problem.n_features, order_of_classes(problem))
        W.data *= W.dtype.type(state["scale"][0])
        return SparseLinearModel(problem.classes, W)
