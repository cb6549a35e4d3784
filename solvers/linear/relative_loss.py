"""The losses with relative margins, as the driver takes them: the largest violation, or the sum of all."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.memory import limit_bytes, refuse
from solvers.core.problem import Problem
from solvers.linear import active_set, augmented_lagrangian
from solvers.linear.driver.ascent import LIVE_SHARE, WORTH, most_inner_passes
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.driver.run import Run
from solvers.linear.layouts import hybrid_weights
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.layouts.layouts import DenseLayout, Layout, holding_back
from solvers.linear.steps import conjugate, joint, joint_dense
from solvers.linear.steps.bounds_snapping import snap_to_bounds
from solvers.linear.steps.joint_dense import Inner
from solvers.linear.visits import Task, Visits
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.array_types import Floats
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import live

GRADIENTS_FROM, GRADIENTS_EVERY, LONGEST_WAIT = 10, 4, 31
END_GAME_BELOW = 1e-4
# proximal steps: from which epoch on, and, of larger tolerances, at a gap above how many of them
PROXIMAL_FROM, FAR = 10, 10.0
FEWEST_PRODUCTS, MOST_PRODUCTS, REDUCTION = 8, 40, 1e-3
ENTRY_BYTES = 12
ROOM = 1 << 16


@dataclass(frozen=True)
class RelativeLoss:
    """The violations ``1 - f_y + f_c`` of an example: the largest, or their sum."""

    largest: bool
    params: AscentParams
    seed: int
    name: str

    def at_zero(self, n_classes: int) -> float:
        return 1.0 if self.largest else n_classes - 1.0

    def layout(self, problem: Problem) -> Layout:
        k, dtype, dense = problem.n_classes, precision(self.params), DenseLayout.suits(problem.X)

        def make(X: sp.csr_matrix) -> Layout:
            if dense:
                return DenseLayout.of(X, k, dtype)
            return HybridLayout.within(X, k, dtype, self.params.memory_mb)

        # the end games take rows and weights as they are
        if self._few_examples(problem.n_samples, k) or (dense and self._few_weights(*problem.X.shape, k)):
            return make(problem.X)
        return holding_back(make, problem.X, self.params.bias, self.params.C * problem.weights, k)

    def duals(self, task: Task) -> Coefficients:
        return coefficients.empty(len(task.y), max(ROOM, 4 * task.n_classes))

    def with_room(self, task: Task, duals: Coefficients) -> Coefficients:
        room = max(ROOM, 2 * task.n_classes)
        if duals.used[0] + room > len(duals.classes):
            copies = (len(duals.classes) + coefficients.size_of_copy(duals, room)) * ENTRY_BYTES
            held, all_of_them = int(duals.length.sum()), f"{len(task.y):,} x {task.n_classes:,}"
            what = f"{self.name} has {held:,} dual variables of {all_of_them} so far, and"
            refuse(what, copies, self.params.memory_mb)
        return coefficients.with_room(duals, room)

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
        elif not hybrid_weights.rebuild(task.rows, duals, W.hot, W.lists):
            raise RuntimeError("weights made afresh take more room than before")

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

    def inner_pass(self, task: Task, run: Run, budget: float) -> float:
        """Begin an inner pass, of the examples whose last visit gained much; on dense rows, make passes while they pay.

        Now and then conjugate gradients go before. Returns what has been done has cost.
        """
        counters, schedule, layout = run.counters, run.schedule, run.layout
        if isinstance(task.rows, DenseRows):
            inner = Inner(
                self.seed, counters.epoch, counters.inner_passes, most_inner_passes(counters.epoch), LIVE_SHARE,
                WORTH * schedule.full_rate, budget,
            )  # fmt: skip
            order, cost, spent, passes = joint_dense.inner_passes(
                task, self.largest, run.W, run.duals, run.progress, layout.listed, inner, run.mean_gain
            )
            run.order, counters.position, schedule.cost = order, len(order), cost
            counters.inner_passes += passes
            return float(spent)
        number = counters.inner_passes
        spent = self._conjugate_gradients(task, run, budget) if number and number % GRADIENTS_EVERY == 0 else 0.0
        counters.inner_passes += 1
        draw = (LIVE_SHARE * run.mean_gain, self.seed, counters.epoch, counters.inner_passes)
        run.start(*live(run.progress.gains, run.duals.length, layout.listed, *draw))
        return spent

    def _conjugate_gradients(self, task: Task, run: Run, budget: float) -> float:
        """Conjugate gradients on the examples that gain more than the mean; where that did not pay, less often."""
        epoch, schedule = run.counters.epoch, run.schedule
        if epoch < max(GRADIENTS_FROM, schedule.gradients_epoch):
            return 0.0
        some = np.flatnonzero((run.duals.length > 0) & (run.progress.gains > run.mean_gain)).astype(np.int32)
        price = 2.0 * float((run.layout.listed[some] * run.duals.length[some]).sum())
        most = int(min(MOST_PRODUCTS, budget // max(price, 1.0)))
        if len(some) == 0 or most < FEWEST_PRODUCTS:
            return 0.0
        assert isinstance(run.layout, HybridLayout)
        run.no_change = run.layout.no_change(run.W, run.no_change)
        gain, products = conjugate.projected_conjugate_gradients(
            some, task, self.largest, *run.W, run.duals, *run.no_change, most, REDUCTION
        )
        cost = price * (products + 1)
        paid = gain > WORTH * schedule.full_rate * cost
        schedule.gradients_wait = 0.0 if paid else min(2 * schedule.gradients_wait + 1, LONGEST_WAIT)
        schedule.gradients_epoch = epoch + schedule.gradients_wait
        return float(cost)

    def end_game(self, task: Task, run: Run) -> Floats | None:
        """Proximal steps where dense rows have few features, or Newton's steps on few examples' dual variables."""
        n, k, tol = len(task.y), task.n_classes, self.params.tol
        if isinstance(task.rows, DenseRows) and self._few_weights(n, len(run.layout.features), k):
            far = tol < END_GAME_BELOW or run.schedule.last_gap > FAR * tol
            return self._proximal_steps(task, run) if far and run.counters.epoch >= PROXIMAL_FROM else None
        if self._few_examples(n, k):
            self._active_set(task, run)
        return None

    def _few_weights(self, n_samples: int, n_features: int, n_classes: int) -> bool:
        return augmented_lagrangian.suits(n_samples, n_features, n_classes, limit_bytes(self.params.memory_mb))

    def _few_examples(self, n_samples: int, n_classes: int) -> bool:
        precise = self.params.tol < END_GAME_BELOW and precision(self.params) == np.float64
        return precise and not self.largest and n_samples * n_classes <= active_set.MOST_VARIABLES

    def _proximal_steps(self, task: Task, run: Run) -> Floats:
        X = np.ascontiguousarray(task.rows.data[:, : len(run.layout.features)], np.float64)
        alpha = coefficients.duals(run.duals, task.n_classes)
        given = X, task.y, self._bounds(task), alpha, self.params.tol
        alpha, W = augmented_lagrangian.ascend(*given, largest=self.largest)
        run.duals = self._duals_of(task, alpha)
        return W

    def _active_set(self, task: Task, run: Run) -> None:
        rows, k = task.rows, task.n_classes
        X = rows.data if isinstance(rows, DenseRows) else sp.csr_matrix((rows.data, rows.indices, rows.indptr))
        G = X @ X.T if isinstance(X, np.ndarray) else (X @ X.T).toarray()
        alpha = active_set.ascend(G, task.y, self._bounds(task), coefficients.duals(run.duals, k), self.params.tol)
        run.duals = self._duals_of(task, alpha)

    def _bounds(self, task: Task) -> Floats:
        # empty rows have no dual variables: their loss is a constant
        return np.where(task.rows.squares > 0.0, task.bounds, 0.0)

    def _duals_of(self, task: Task, alpha: Floats) -> Coefficients:
        return coefficients.of_shares(sp.csr_matrix(alpha / task.bounds[:, None]), task.y, task.bounds, self.largest)
