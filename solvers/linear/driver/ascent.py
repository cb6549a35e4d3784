"""Dual block ascent over single examples: the driver that the flat linear machines share.

It minimises ``P(W) = 1/2 |W|^2 + sum_i C_i loss(W' x_i, y_i)`` by exact ascent on the dual variables of one example
at a time (Keerthi et al. 2008, Algorithm 3.1, with the whole example as the block), in a fresh random order every
epoch. Shrinking: examples that needed no change three times in a row are left out for two epochs, then four, then
eight. A certificate, taken where the gap is expected to be small enough, rebuilds W from the dual variables and
measures P and D over all examples; training ends on nothing less.

What the driver of the flat linear machines asks of a loss.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from solvers.core.base import State, Step, relative_gap
from solvers.core.certain_answers import Reach, joint_reach
from solvers.core.certified_ascent import Certificate, ascend, bounded, is_due
from solvers.core.dual_variables import best_multiple, is_warm, shares_of
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.params import AscentParams, precision
from solvers.linear.driver.run import Counters, Run, Schedule, duals_of
from solvers.linear.layouts.dense_simd import DenseRows
from solvers.linear.layouts.layouts import Layout, order_of_classes, rank_of_classes
from solvers.linear.visits import Task, Visits, no_progress
from solvers.numerics.array_types import Bools, Floats, Ints32
from solvers.numerics.orders import active, shuffled
from solvers.numerics.rows import ALIGNMENT


class Loss(Protocol):
    """A loss of the examples, as the driver takes it: its dual variables, block steps and certificate.

    Dual variables are a named tuple of arrays. The coefficients v that they make are signed so that
    ``w_c = sum_i v_ic x_i``.
    """

    def constant(self, task: Task, empty: Bools) -> float:
        """The weighted losses of the empty examples, whose scores all vanish, summed."""

    def layout(self, problem: Problem) -> Layout:
        """Rows and weights as the compiled loops take them."""

    def duals(self, task: Task) -> Any:
        """Dual variables that all vanish."""

    def with_capacity(self, task: Task, duals: Any) -> Any:
        """The same dual variables, with room for at least one more visit."""

    def visit(self, task: Task, run: Run, visits: Visits) -> int:
        """Ascend on the examples of ``visits``; returns where it stopped, before their end when out of room."""

    def measure(self, task: Task, run: Run, gaps: Floats, leads: Floats) -> tuple[float, float, float]:
        """Objective and dual value without the empty examples, and the multiple of W that the objective is of.

        That is the best of many multiples, as the length of W settles late: see :mod:`solvers.numerics.scaling_search`.
        Of each example that is not empty, its part of the gap at W itself goes to ``gaps``, and by how much the score
        of its own class leads the best other one to ``leads``.
        """

    def rebuild(self, task: Task, duals: Any, W: Any) -> None:
        """Make W afresh from the dual variables."""

    def sums(self, task: Task, duals: Any) -> Floats:
        """The coefficients v summed over the examples, shape (n_classes,)."""

    def linear_part(self, task: Task, duals: Any) -> float:
        """The part of the dual value that is linear in the dual variables."""

    def multiply(self, task: Task, duals: Any, factor: float) -> None:
        """Multiply the dual variables; where that brings one to its bound, it is there exactly."""

    def shares(self, task: Task, duals: Any) -> sp.csr_matrix:
        """The dual variables by their bounds, shape (n_samples, n_classes); TypeError of a loss without them."""

    def of_shares(self, task: Task, shares: sp.csr_matrix) -> Any:
        """The dual variables of such shares; TypeError as above."""


FIRST_CANDIDATES = 16
FIRST_INNER_PASSES, MOST_INNER_PASSES = 4, 40
LIVE_SHARE = 0.05
WORTH = 0.3
# of the gap that the passes let expect at W, at what the first certificate, of the best multiple, is taken
FIRST_SHARE = 0.5
SLICE_OPERATIONS = 1 << 27


class InnerPasses(Protocol):
    """Passes between those over all examples and classes."""

    def begin(self, task: Task, run: Run, budget: float) -> float:
        """Begin one; returns what passes that it has also ended have cost."""


class EndGame(Protocol):
    """What may raise the dual value by other means than passes; what it has cost does not count."""

    def suits(self, n_samples: int, n_features: int, n_classes: int, *, dense: bool) -> bool:
        """Whether it is for problems of this size."""

    def play(self, task: Task, run: Run) -> Floats | None:
        """Raise it; returns weights, as ``Layout.by_feature`` has them, where these may have the lower objective."""


@dataclass(frozen=True)
class Ascent:
    """The driver: epochs, inner passes and certificates of a machine, which gives it a loss.

    An epoch is one visit of every example that is not left out with all classes, then, while they pay, inner passes
    with the classes alone that its dual variables name: these cost a few gathers where the first costs a scan of W.

    Attributes
    ----------
    end_games : sequence of EndGame
        The first that suits the problem is played before the first, second, fourth, eighth ... certificate.
    long_passes : LongPasses, optional
        The rules where a pass over all classes is long.
    """

    loss: Loss
    params: AscentParams
    seed: int
    inner_passes: InnerPasses | None = None
    end_games: Sequence[EndGame] = ()
    long_passes: LongPasses | None = None

    def steps(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """Train on the prepared problem, from the start or from the state of a step."""
        task, layout = self.task(problem)
        if state is None:
            run = self._begin(task, layout)
        elif is_warm(state):
            run = self._warm(task, layout, problem, state)
        else:
            run = self.resumed(task, layout, state)
            if run.counters.apart:
                self.loss.rebuild(task, run.duals, run.W)
                run.counters.apart = 0
        return ascend(_Training(self, task, run), self.params.tol)

    def certificate(self, task: Task, run: Run, gaps: Floats, constant: float) -> Certificate:
        """Objective and dual value, the empty examples' ``constant`` in both; W is made afresh.

        Where the end game has weights of its own that end the run, these become W.
        """
        point, certified = None, run.counters.certified
        # where it has not ended the run it is tried ever more seldom: it may cost far more than passes
        if certified & (certified - 1) == 0:
            shape, dense = (len(task.y), len(run.layout.features), task.n_classes), isinstance(task.rows, DenseRows)
            game = next((game for game in self.end_games if game.suits(*shape, dense=dense)), None)
            point = None if game is None else game.play(task, run)
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
        return Certificate(primal, bounded(primal, dual, precision(self.params)), right)

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

    def begin_epoch(self, task: Task, run: Run, examples: Ints32) -> None:
        self._follow(task, run)
        run.counters.epoch, run.counters.inner_passes = run.counters.epoch + 1, 0
        run.counters.in_part = int(self.long_passes is not None and self.long_passes.begin_in_part(run))
        run.progress.statistics[:] = 0.0
        order = shuffled(active(examples, run.progress.unchanged, run.counters.epoch), self.seed, run.counters.epoch)
        cost = FIRST_CANDIDATES * run.layout.listed if run.counters.in_part else run.layout.full
        run.start(order, float(cost[order].sum()))

    def visit_slice(self, task: Task, run: Run, budget: float) -> float:
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
            run.duals, run.W = self.loss.with_capacity(task, run.duals), run.layout.with_capacity(run.W)
            visits = Visits(run.order, counters.position, stop, full, most)
            counters.position = self.loss.visit(task, run, visits)
        return spent

    def inner_pass_pays(self, run: Run) -> bool:
        """Whether, at the end of a pass, visits of listed classes alone gain enough for their cost.

        Cost is counted in vector operations, not in time, so that every run decides alike.
        """
        epoch, passes = run.counters.epoch, run.counters.inner_passes
        if self.inner_passes is None or epoch == 0 or passes >= most_inner_passes(epoch):
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

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach:
        """As :meth:`solvers.core.base.Solver.reach`, of the prepared problem."""
        return joint_reach(model, primal, dual, self.multiple(problem, state), self.params.bias)

    def multiple(self, problem: Problem, state: State) -> float | None:
        """As :meth:`solvers.core.base.Solver.multiple`, of the prepared problem.

        The model is a multiple of the weights that the dual variables make, but where these are those of an end game,
        or biases are held back.
        """
        apart = Counters(*(int(value) for value in state["counters"])).apart
        held = self.params.bias > 0 and self.loss.layout(problem).constant is not None
        scale = float(state["scale"][0])
        return None if apart or held or scale <= 0.0 else scale

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
        inner = self.inner_passes is not None
        schedule = Schedule(last_gap=1.0 if inner else np.inf, found_share=FIRST_SHARE if inner else 1.0)
        nobody = np.empty(0, np.int32)
        duals, progress = self.loss.duals(task), no_progress(len(task.y))
        return Run(layout, layout.weights(), duals, progress, nobody, Counters(), schedule)


class _Training:
    """The ascent on one problem."""

    def __init__(self, ascent: Ascent, task: Task, run: Run) -> None:
        self.ascent, self.task, self.run = ascent, task, run
        filled = task.rows.squares > 0
        self.examples = np.flatnonzero(filled).astype(np.int32)
        self.constant = ascent.loss.constant(task, ~filled)
        self.gaps, self.expected = np.zeros(len(filled)), 1.0
        self.inner = run.ended and ascent.inner_pass_pays(run)

    @property
    def epoch(self) -> int:
        return self.run.counters.epoch

    @property
    def max_epochs(self) -> int:
        return self.ascent.params.max_epochs

    @property
    def epoch_over(self) -> bool:
        return self.run.ended and not self.inner

    def begin_epoch(self) -> None:
        self.ascent.begin_epoch(self.task, self.run, self.examples)

    def advance(self) -> None:
        ascent, task, run, spent = self.ascent, self.task, self.run, 0.0
        while spent < SLICE_OPERATIONS:
            if self.inner:
                assert ascent.inner_passes is not None
                spent += ascent.inner_passes.begin(task, run, SLICE_OPERATIONS - spent)
            spent += ascent.visit_slice(task, run, SLICE_OPERATIONS - spent)
            self.inner = run.ended and ascent.inner_pass_pays(run)
            if self.epoch_over:
                return

    def certifies(self) -> bool:
        ascent, counters = self.ascent, self.run.counters
        self.expected = 1.0 if counters.in_part else self.run.expected_gap()
        promising = self.run.schedule.found_share * self.expected <= ascent.params.tol
        if ascent.long_passes is not None and not promising:
            promising = ascent.long_passes.promise(self.task, self.run, self.examples, self.expected)
        return promising or is_due(counters.epoch, self.max_epochs, counters.certified)

    def certify(self) -> Certificate:
        self.run.counters.certified += 1
        return self.ascent.certificate(self.task, self.run, self.gaps, self.constant)

    def learn(self, primal: float, gap: float) -> None:
        run, tol = self.run, self.ascent.params.tol
        run.schedule.found_share = min(1.0, gap / self.expected) if self.expected > 0.0 else 1.0
        run.progress.unchanged[self.gaps > 0.1 * tol * primal / len(self.gaps)] = 0

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        return self.run.step(primal, dual, converged=converged, right=right)


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
