"""Inner passes of the machines with relative margins: visits of those examples that gain, and of the classes they hold.

Between them come conjugate gradients now and then, which move the dual variables of many examples together.
"""

from dataclasses import dataclass

import numpy as np

from solvers.labels.costs import Costs
from solvers.linear.driver.ascent import LIVE_SHARE, WORTH, most_inner_passes
from solvers.linear.driver.run import Run
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.steps import conjugate, joint_dense
from solvers.linear.steps.joint_dense import Inner
from solvers.linear.visits import Task
from solvers.numerics.orders import live

GRADIENTS_FROM, GRADIENTS_EVERY, LONGEST_WAIT = 10, 4, 31
FEWEST_PRODUCTS, MOST_PRODUCTS, REDUCTION = 8, 40, 1e-3


@dataclass(frozen=True)
class InnerPasses:
    """Those of a machine that takes the largest violation of an example, or their sum."""

    largest: bool
    seed: int
    costs: Costs | None = None

    def begin(self, task: Task, run: Run, budget: float) -> float:
        """Begin one, of the examples whose last visit gained much; on dense rows, make passes while they pay.

        Returns what has been done has cost.
        """
        counters, schedule, layout = run.counters, run.schedule, run.layout
        if isinstance(task.rows, DenseRows):
            inner = Inner(
                self.seed, counters.epoch, counters.inner_passes, most_inner_passes(counters.epoch), LIVE_SHARE,
                WORTH * schedule.full_rate, budget,
            )  # fmt: skip
            order, cost, spent, passes = joint_dense.inner_passes(
                task, self.largest, run.W, run.duals, run.progress, layout.listed, inner, run.mean_gain, self.costs
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
        # their faces know no weights of the variables
        if epoch < max(GRADIENTS_FROM, schedule.gradients_epoch) or (self.costs is not None and self.costs.slack):
            return 0.0
        some = np.flatnonzero((run.duals.length > 0) & (run.progress.gains > run.mean_gain)).astype(np.int32)
        price = 2.0 * float((run.layout.listed[some] * run.duals.length[some]).sum())
        most = int(min(MOST_PRODUCTS, budget // max(price, 1.0)))
        if len(some) == 0 or most < FEWEST_PRODUCTS:
            return 0.0
        assert isinstance(run.layout, HybridLayout)
        run.no_change = run.layout.no_change(run.W, run.no_change)
        gain, products = conjugate.projected_conjugate_gradients(
            some, task, self.largest, *run.W, run.duals, *run.no_change, most, REDUCTION, self.costs
        )
        cost = price * (products + 1)
        paid = gain > WORTH * schedule.full_rate * cost
        schedule.gradients_wait = 0.0 if paid else min(2 * schedule.gradients_wait + 1, LONGEST_WAIT)
        schedule.gradients_epoch = epoch + schedule.gradients_wait
        return float(cost)
