"""Dual block ascent over single examples: the driver that the flat linear machines share.

It minimises ``P(W) = 1/2 |W|^2 + sum_i C_i loss(W' x_i, y_i)`` by exact ascent on the dual variables of one example
at a time (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block), in a fresh random order every
epoch. Shrinking: examples that needed no change three times in a row are left out for two epochs, then four, then
eight. A certificate, taken where the gap is expected to be small enough, rebuilds W from the dual variables and
measures P and D over all examples; training ends on nothing less.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple, is_warm, shares_of
from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.linear.driver.class_order import order_of_classes, rank_of_classes
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.loss import Loss
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.driver.run import Counters, Run, Schedule, duals_of
from solvers.linear.layouts.layouts import Layout
from solvers.linear.visits import Task, Visits, no_progress
from solvers.numerics.array_types import Bools, Floats, Ints32
from solvers.numerics.orders import active, shuffled
from solvers.numerics.rows import ALIGNMENT

FIRST_CANDIDATES = 16
FIRST_INNER_PASSES, MOST_INNER_PASSES = 4, 40
LIVE_SHARE = 0.05
WORTH = 0.3
CERTIFY_SHARE = 0.1
# of the gap that the passes let expect at W, at what the first certificate, of the best multiple, is taken
FIRST_SHARE = 0.5
SLICE_OPERATIONS = 1 << 27


@dataclass(frozen=True)
class Ascent:
    """The driver: epochs, inner passes and certificates of a machine, which gives it a loss.

    An epoch is one visit of every example that is not left out with all classes, then, while they pay, inner passes
    with the classes alone that its dual variables name: these cost a few gathers where the first costs a scan of W.

    Attributes
    ----------
    inner_pass : callable, optional
        Given task, run and budget, begins one, and returns what passes that it has also ended have cost.
    end_game : callable, optional
        Given the task and the run before the first, second, fourth, eighth ... certificate, may raise the dual value by
        other means than passes; what it has cost does not count. Returns weights of its own, as ``Layout.by_feature``
        has them, where these may have the lower objective; else None.
    long_passes : LongPasses, optional
        The rules where a pass over all classes is long.
    """

    loss: Loss
    params: AscentParams
    seed: int
    inner_pass: Callable[[Task, Run, float], float] | None = None
    end_game: Callable[[Task, Run], Floats | None] | None = None
    long_passes: LongPasses | None = None

    def steps(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """Train on the prepared problem, from the start or from the state of a step."""
        params, n = self.params, problem.n_samples
        task, layout = self.task(problem)
        filled = task.rows.squares > 0
        examples = np.flatnonzero(filled).astype(np.int32)
        constant = float(task.bounds[~filled].sum()) * self.loss.at_zero(problem.n_classes)
        if state is None:
            run = self._begin(task, layout)
        elif is_warm(state):
            run = self._warm(task, layout, problem, state)
        else:
            run = self.resumed(task, layout, state)
            if run.counters.apart:
                self.loss.rebuild(task, run.duals, run.W)
                run.counters.apart = 0
        counters, schedule, progress = run.counters, run.schedule, run.progress
        gaps, spent = np.zeros(n), 0.0
        inner = run.ended and self._inner_pass_pays(run)

        while True:
            if run.ended:
                if inner:
                    assert self.inner_pass is not None
                    spent += self.inner_pass(task, run, SLICE_OPERATIONS - spent)
                elif counters.epoch == params.max_epochs:
                    return
                else:
                    self._begin_epoch(task, run, examples)
            spent += self._advance(task, run, SLICE_OPERATIONS - spent)
            inner = run.ended and self._inner_pass_pays(run)
            if inner or not run.ended:
                if spent >= SLICE_OPERATIONS:
                    spent = 0.0
                    yield run.step(np.nan, np.nan, converged=False)
                continue
            spent, expected = 0.0, 1.0 if counters.in_part else run.expected_gap()
            promising = schedule.found_share * expected <= params.tol
            if self.long_passes is not None and not promising:
                promising = self.long_passes.promise(task, run, examples, expected)
            due = CERTIFY_SHARE * counters.epoch >= 1 + counters.certified or counters.epoch == params.max_epochs
            if not (promising or due):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            counters.certified += 1
            primal, dual, right = self._certificate(task, run, gaps, constant)
            gap = relative_gap(primal, dual)
            converged = gap <= params.tol
            schedule.found_share = min(1.0, gap / expected) if expected > 0.0 else 1.0
            progress.unchanged[gaps > 0.1 * params.tol * primal / n] = 0
            yield run.step(primal, dual, converged=converged, right=right)
            if converged:
                return

    def _certificate(self, task: Task, run: Run, gaps: Floats, constant: float) -> tuple[float, float, Bools]:
        """Objective and dual value, the empty examples' ``constant`` in both; W is made afresh.

        The last are the examples that W certainly answers with their own class: see :attr:`Step.right`.
        Where the end game has weights of its own that end the run, these become W.
        """
        point, certified = None, run.counters.certified
        # where it has not ended the run it is tried ever more seldom: it may cost far more than passes
        if self.end_game is not None and certified & (certified - 1) == 0:
            point = self.end_game(task, run)
        excess = self._rebuild(task, run)
        leads = np.zeros_like(gaps)
        primal, dual, run.scale = self.loss.measure(task, run, gaps, leads)
        primal, dual = primal + constant, dual + constant - excess
        if point is not None and relative_gap(primal, dual) > self.params.tol:
            run.layout.by_feature(run.W)[:] = point
            leads_there = np.zeros_like(gaps)
            lower, _, scale = self.loss.measure(task, run, np.zeros_like(gaps), leads_there)
            if relative_gap(lower + constant, dual) <= self.params.tol:
                primal, run.scale, run.counters.apart, leads = lower + constant, scale, 1, leads_there
            else:
                self.loss.rebuild(task, run.duals, run.W)
        right = run.layout.sure_leads(run.W, leads) & (run.scale > 0.0)
        return primal, bounded(primal, dual, precision(self.params)), right

    def _rebuild(self, task: Task, run: Run) -> float:
        """Make W afresh from the dual variables, all but biases that are held back.

        Returns what half the squared norm of the biases that the dual variables make has more than that of the biases.
        """
        biases, made = run.layout.biases(run.W), self._biases_made(task, run)
        self.loss.rebuild(task, run.duals, run.W)
        run.layout.set_biases(run.W, biases)
        return 0.5 * float(made @ made - biases @ biases)

    def _biases_made(self, task: Task, run: Run) -> Floats:
        """The weights that the dual variables make for a feature that is held back; none where there is no such."""
        constant = run.layout.constant
        return np.empty(0) if constant is None else constant.value * self.loss.sums(task, run.duals)

    def _follow(self, task: Task, run: Run) -> None:
        """Multipliers' step: biases that are held back go a part of the way to those that the dual variables make."""
        constant, biases = run.layout.constant, run.layout.biases(run.W)
        if constant is not None:
            run.layout.set_biases(run.W, biases + constant.share * (self._biases_made(task, run) - biases))

    def _begin_epoch(self, task: Task, run: Run, examples: Ints32) -> None:
        self._follow(task, run)
        run.counters.epoch, run.counters.inner_passes = run.counters.epoch + 1, 0
        run.counters.in_part = int(self.long_passes is not None and self.long_passes.begin_in_part(run))
        run.progress.statistics[:] = 0.0
        order = shuffled(active(examples, run.progress.unchanged, run.counters.epoch), self.seed, run.counters.epoch)
        cost = FIRST_CANDIDATES * run.layout.listed if run.counters.in_part else run.layout.full
        run.start(order, float(cost[order].sum()))

    def _advance(self, task: Task, run: Run, budget: float) -> float:
        """Visit on to the end of the pass, or until it has cost the budget; returns what it has cost."""
        counters, layout = run.counters, run.layout
        full = counters.inner_passes == 0 and not counters.in_part
        in_part = counters.inner_passes == 0 and not full
        stop, spent = len(run.order), run.schedule.cost
        if counters.position == stop:
            return 0.0
        if counters.position > 0 or spent > budget:
            left = run.order[counters.position :]
            named = FIRST_CANDIDATES if in_part else run.duals.length[left]
            work = np.cumsum(layout.full[left] if full else layout.listed[left] * named)
            n = min(len(work), 1 + int(np.searchsorted(work, budget)))
            stop, spent = counters.position + n, float(work[n - 1])
        most = task.n_classes if full else 0
        if counters.epoch == 1 and counters.inner_passes == 0:
            most = FIRST_CANDIDATES
        while counters.position < stop:
            run.duals, run.W = self.loss.with_room(task, run.duals), run.layout.with_room(run.W)
            visits = Visits(run.order, counters.position, stop, full, most)
            counters.position = self.loss.visit(task, run, visits)
        return spent

    def _inner_pass_pays(self, run: Run) -> bool:
        """Whether, at the end of a pass, visits of listed classes alone gain enough for their cost.

        Cost is counted in vector operations, not in time, so that every run decides alike.
        """
        epoch, passes = run.counters.epoch, run.counters.inner_passes
        if self.inner_pass is None or epoch == 0 or passes >= most_inner_passes(epoch):
            return False
        if passes == 0:
            run.schedule.full_rate = run.gain_per_cost
            return True
        return len(run.order) > 0 and run.gain_per_cost > WORTH * run.schedule.full_rate

    def rescaled(self, problem: Problem, state: State, ratio: float) -> State:
        """As :meth:`solvers.core.machine.Machine.rescale`."""
        task, layout = self.task(problem)
        run = self._begin(task, layout)
        run.W, run.duals = layout.restored(state), duals_of(type(run.duals), state)
        biases = layout.biases(run.W)
        factor = self._scale(task, run, ratio)
        layout.set_biases(run.W, factor * biases)
        return run.step(np.nan, np.nan, converged=False).state

    def shares(self, problem: Problem, state: State) -> sp.csr_matrix:
        """As :meth:`solvers.core.machine.Machine.shares_of`."""
        task, _ = self.task(problem)
        found = self.loss.shares(task, duals_of(type(self.loss.duals(task)), state))
        return sp.csr_matrix(found[:, rank_of_classes(problem)])

    def _warm(self, task: Task, layout: Layout, problem: Problem, state: State) -> Run:
        """The run that begins at shares of the bounds, with a pass over the examples that have none: the new ones."""
        run = self._begin(task, layout)
        columns = sp.csr_matrix(shares_of(state, task.n_classes)[:, order_of_classes(problem)])
        columns.sort_indices()
        run.duals = self.loss.of_shares(task, columns)
        self._scale(task, run, 1.0)
        new = np.flatnonzero((np.diff(columns.indptr) == 0) & (task.rows.squares > 0)).astype(np.int32)
        run.start(shuffled(new, self.seed, 0), float(layout.full[new].sum()))
        return run

    def _scale(self, task: Task, run: Run, most: float) -> float:
        """Take the best multiple, up to ``most``, of the run's dual variables, and of the weights that they make."""
        self.loss.rebuild(task, run.duals, run.W)
        run.layout.set_biases(run.W, self._biases_made(task, run))
        factor = best_multiple(self.loss.linear_part(task, run.duals), run.layout.square_norm(run.W), most)
        self.loss.multiply(task, run.duals, factor)
        run.layout.multiply(run.W, factor)
        return factor

    def task(self, problem: Problem) -> tuple[Task, Layout]:
        """What stays fixed, and how it lies in memory."""
        layout = self.loss.layout(problem)
        bounds = self.params.C * problem.weights
        return Task(layout.rows, rank_of_classes(problem)[problem.y], bounds, problem.n_classes), layout

    def resumed(self, task: Task, layout: Layout, state: State) -> Run:
        """The run that a step is of."""
        return Run.resumed(layout, type(self.loss.duals(task)), state)

    def _begin(self, task: Task, layout: Layout) -> Run:
        # what the first pass reports says much of the gap behind it, but little where there are no inner passes
        inner = self.inner_pass is not None
        schedule = Schedule(last_gap=1.0 if inner else np.inf, found_share=FIRST_SHARE if inner else 1.0)
        nobody = np.empty(0, np.int32)
        duals, progress = self.loss.duals(task), no_progress(len(task.y))
        return Run(layout, layout.weights(), duals, progress, nobody, Counters(), schedule)


def fitted(problem: Problem, layout: Layout, state: State) -> LinearModel:
    """The model of a step whose weights are an array."""
    ascending = np.argsort(layout.features)
    W = np.ascontiguousarray(layout.by_feature(state["W"])[np.ix_(ascending, rank_of_classes(problem))])
    if layout.constant is not None:
        W[ascending == layout.constant.place] *= W.dtype.type(layout.constant.root)
    W *= W.dtype.type(state["scale"][0])
    return LinearModel(problem.classes, problem.n_features, layout.features[ascending], W)


def most_inner_passes(epoch: int) -> int:
    """How many inner passes an epoch may have."""
    return min(FIRST_INNER_PASSES + epoch, MOST_INNER_PASSES)


def weights_bytes(n_samples: int, n_features: int, n_classes: int, dtype: np.dtype[Any]) -> int:
    """What dense weights take, and the bookkeeping of examples."""
    width = ALIGNMENT // dtype.itemsize
    return n_features * -(-n_classes // width) * ALIGNMENT + 16 * n_samples


def bounded(primal: float, dual: float, dtype: np.dtype[Any]) -> float:
    """The dual value; where it meets the primal, rounding alone may lift it above, and is taken off."""
    if dual - primal > 1e3 * float(np.finfo(dtype).eps) * abs(primal):
        raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
    return min(dual, primal)
