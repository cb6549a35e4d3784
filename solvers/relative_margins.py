"""The flat machines with relative margins: one kernel; each method says how an example's violations become its loss."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.ascent import LIVE_SHARE, WORTH, A, DualAscent, Run, Task, precision
from solvers.kernels import coefficients, conjugate, joint, joint_dense
from solvers.kernels.coefficients import Coefficients
from solvers.kernels.joint_dense import DenseRows
from solvers.kernels.settling import settle
from solvers.layouts import DenseLayout, Layout, SparseLayout
from solvers.problem import Problem

CLIMB_FROM, CLIMB_EVERY, LONGEST_WAIT = 10, 4, 31
FEWEST_PRODUCTS, MOST_PRODUCTS, REDUCTION = 8, 40, 1e-3


class RelativeMargins(DualAscent[A]):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    largest_loss: ClassVar[bool]

    def loss_at_zero(self, n_classes: int) -> float:
        return 1.0 if self.largest_loss else n_classes - 1.0

    def multiply(self, task: Task, duals: Coefficients, factor: float) -> None:
        super().multiply(task, duals, factor)
        if not self.largest_loss:
            settle(duals.start, duals.length, duals.values, task.bounds)

    def layout(self, problem: Problem) -> Layout:
        kind = DenseLayout if DenseLayout.suits(problem.X) else SparseLayout
        return kind.of(problem.X, problem.n_classes, precision(self.params))

    def rebuild(self, task: Task, duals: Coefficients, W: NDArray[Any]) -> None:
        kernel = joint_dense if isinstance(task.rows, DenseRows) else coefficients
        kernel.rebuild(task.rows, duals, W)

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
        if run.blank is None:
            run.blank = run.layout.weights()
        gain, products = conjugate.climb(some, *task, self.largest_loss, run.W, run.duals, run.blank, most, REDUCTION)
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
        W: NDArray[Any],
        duals: Coefficients,
        rest: NDArray[np.uint8],
        gains: NDArray[np.float32],
        tally: NDArray[np.float64],
    ) -> int:
        kernel = joint_dense if isinstance(task.rows, DenseRows) else joint
        return int(kernel.visit(*task, order, begin, end, full, most, self.largest_loss, W, duals, rest, gains, tally))

    def certify(
        self, task: Task, W: NDArray[Any], duals: Coefficients, gaps: NDArray[np.float64]
    ) -> tuple[float, float]:
        kernel = joint_dense if isinstance(task.rows, DenseRows) else joint
        return kernel.certify(*task, self.largest_loss, W, duals, gaps)  # type: ignore[no-any-return]
