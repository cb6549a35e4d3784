"""Multi-class boosting with weak learners of every class's own, by column generation and coordinate descent.

    minimise  sum_c |w_c|_1 + (C / p) sum_i sum_{q != y_i} exp(F_q(x_i) - F_{y_i}(x_i)),   F_c = sum_h w_ch h,

over weights w_ch >= 0 of all weak learners h, functions of an example to +1 or -1; p is the sum of the examples'
weights times (n_classes - 1). Lin et al. 2012, equation 2; Algorithm 1 is a round, Algorithm 2 what it does with the
weights. The paper's h and its negative are here one learner whose weight may have either sign.

A round finds, for each class, the weak learner that violates the optimality conditions most
(Lin et al. 2012, equation 4), and moves the weights of all that were found by exact coordinate steps
(Lin et al. 2012, equation 12). With ``tau_max = 1`` that is all: stage-wise boosting. With more, up to tau_max - 1
iterations over all weights follow, until none violates the conditions by more than eps (Lin et al. 2012, equation 17,
and the stop of equation 18): :mod:`solvers.boosting.pairs.master_problem`. The dual has no use for equation 3c, which
belongs to another loss; the bound, :meth:`solvers.boosting.pairs.pair_loss.PairLoss.bound`, is over all weak learners,
found or not.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from pydantic import Field

from solvers.boosting.pair_boosting import PairBoosting, PairParams, PairRun
from solvers.boosting.pairs import quadratic_step
from solvers.boosting.pairs.master_problem import MasterProblem
from solvers.boosting.pairs.pair_loss import chunks
from solvers.boosting.pairs.variables import Variables
from solvers.boosting.rounds import Report, Task
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.numerics.array_types import Array, Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool

REFRESH = 100
SLICE_PRODUCTS = 1 << 32
SEARCH = 1.0


class MultiboostCwParams(PairParams):
    """Parameters of :class:`MultiboostCw`."""

    tau_max: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Passes over the weights in each round: 1 moves only those of the new weak learners "
        "(stage-wise); more passes correct the others too.",
    )
    shrinkage: float = Field(
        default=1.0, gt=0, le=1, description="Share of the distance to its minimum that a step covers."
    )


class MultiboostCw(PairBoosting[MultiboostCwParams]):
    """One set of weak learners a class, all weights in one convex problem."""

    name = "multiboost_cw"
    title = "MultiBoost with class-specific weak learners"
    paper = "Lin, Shen, van den Hengel and Suter 2012"
    Params = MultiboostCwParams

    def run(self, task: Task) -> "_Run":
        return _Run(task, self.params, self.seed)

    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        more = quadratic_step.estimate_bytes(n_samples, n_classes) if self.params.tau_max > 1 else 0
        return super().training_bytes(n_samples, n_classes) + more


class _Measured(NamedTuple):
    """What there is to do at the current scores: channels, the best learners, gradients of the known variables."""

    channels: Channels
    found: Found | None
    values: Floats


class _Run(PairRun):
    """Scores, the weights of all learners found, and where in a round we are.

    ``tau`` counts the sweeps of the round under way, 0 between rounds; no other variables than ``touched`` have been
    moved in this round, None where that could be any.
    """

    def __init__(self, task: Task, params: MultiboostCwParams, seed: int) -> None:
        super().__init__(task, params, seed)
        self.params: MultiboostCwParams = params
        self.variables = Variables()
        self.master = MasterProblem(self.loss, self.variables, self._responses, shrinkage=params.shrinkage)
        self.tau, self.violation = 0, 0.0
        self._touched: Ints | None = None
        self._measured: _Measured | None = None
        self._last = b"", np.empty((0, len(task.y)), np.int8)

    @property
    def under_way(self) -> bool:
        return self.tau > 0

    def advance(self, thread_pool: ThreadPool) -> Report | None:
        work = 0
        while True:
            if self.tau == 0:
                view = self._measure(thread_pool)
                found = self.sought(view.channels, view.found, thread_pool)
                if found is None:
                    return None
                self.epoch += 1
                order = self._touched = self._admit(found)
                self.master.sweep(thread_pool, order)
                work += len(self.task.y) * len(order)
            else:
                if self.tau == self.params.tau_max:
                    return self._finish(self._measure(thread_pool))
                values = None
                if self.master.sweeps_left == 0:
                    values = self._values(thread_pool)
                    if not self.master.choose_working_set(self.master.violations(values), self.certificate.eps):
                        return self._finish(self._measure(thread_pool))
                self._touched = None
                work += self.master.iterate(thread_pool, values, [self.seed, self.epoch, self.tau])
            self._measured = None
            self.tau += 1
            work += self.task.learners.work * self.task.n_classes
            if work >= SLICE_PRODUCTS:
                return None

    def _responses(self, part: Ints) -> Ints8:
        """What the learners of variables say; those of a round are asked for twice."""
        learners = self.variables.learners[part]
        key = learners.tobytes()
        if key != self._last[0]:
            self._last = key, self.task.learners.responses(learners)
        return self._last[1]

    def _measure(self, thread_pool: ThreadPool) -> _Measured:
        """Learners and violations at the current weights, to which the scores are moved first."""
        if self._measured is None:
            variables = self.variables
            moved = variables.changed(variables.scored, self._touched)
            for some in chunks(len(moved), len(self.loss.y)):
                part = moved[some]
                steps = variables.weights[part] - variables.scored[part]
                self.loss.shift(thread_pool, self._responses(part), variables.owners[part], steps)
            variables.scored[moved] = variables.weights[moved]
            channels = self.channels(thread_pool)
            known = slice(0, 0) if self.params.tau_max == 1 else slice(None)
            learners, owners, found = variables.learners[known], variables.owners[known], None
            if self.task.learners.exact:
                found, values = self.task.learners.find_and_evaluate(
                    channels, thread_pool, learners, owners.astype(np.int64)
                )
            else:
                values = self.master.gradients() if len(owners) else np.empty(0)
            self._measured = _Measured(channels, found, values)
        return self._measured

    def _values(self, thread_pool: ThreadPool) -> Floats:
        """The gradients of all variables: computed by a search if that is faster."""
        n_visits = len(self.task.y) * len(self.variables)
        if self.task.learners.exact and n_visits > SEARCH * self.task.learners.work * self.task.n_classes:
            return self._measure(thread_pool).values
        return self.master.gradients()

    def _admit(self, found: Found) -> Ints:
        """Make variables of the best learners, where they are not yet; returns those that violate."""
        self.violation = self.violation_of(found)
        classes = np.flatnonzero(self.loss.rate * found.sizes > self.params.bag)
        return self.variables.admit(found.learners[classes], classes)

    def _finish(self, view: _Measured) -> Report:
        """End the round: bounds, votes, and how exact the next one has to be."""
        variables = self.variables
        norm = float(np.abs(variables.weights).sum())
        bounds = self.certificate.update(self.loss, norm, view.channels, view.found)
        violation = self.violation if view.found is None else self.violation_of(view.found)
        if len(view.values):
            violation = max(violation, float(self.master.violations(view.values).max()))
        moved = np.sort(variables.changed(variables.before, self._touched))
        deltas = variables.weights[moved] - variables.before[moved]
        self.vote(variables.learners[moved], variables.owners[moved], deltas)
        variables.before[moved] = variables.weights[moved]
        self.tau = self.master.sweeps_left = 0
        if self.epoch % REFRESH == 0:
            self.loss.refresh()
            self._measured = None
        # with the gap unknown, there is no more to do than to correct what was found
        only = self.params.tau_max == 1 or view.found is None
        held = float(np.count_nonzero(variables.weights))
        return self.ended(bounds, violation, len(moved), only=only, variables=held)

    def arrays(self) -> dict[str, Array]:
        own: dict[str, Array] = {"tau": np.array(self.tau), "violation": np.array(self.violation)}
        parts = self.certificate, self.master, self.variables, self.loss
        for part in parts:
            own |= part.arrays()
        return own

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self.tau, self.violation = int(arrays["tau"]), float(arrays["violation"])
        for part in (self.certificate, self.master, self.variables, self.loss):
            part.restore(arrays)
