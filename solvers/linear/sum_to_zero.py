"""The flat machines with absolute margins and sum_c w_c = 0: one driver; each method chooses the constraints.

Where an example sums its losses, a second algorithm is at hand: block ascent needs epochs in proportion to C on data
that cannot be separated, an interior point method some dozens of iterations for any C, each in O(k (n d^2 + d^3)).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import State, Step, relative_gap
from solvers.core.certain_answers import Reach, joint_reach
from solvers.core.dual_variables import filled, share, snapped_to_bounds
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear import near_duplicates
from solvers.linear.driver.ascent import Ascent, fitted, weights_bytes
from solvers.linear.driver.params import A, AscentParams, precision
from solvers.linear.driver.run import Run
from solvers.linear.interior import interior_point
from solvers.linear.interior.interior_point import Losses
from solvers.linear.interior.normal_equations import ClassSums
from solvers.linear.layouts.layouts import Layout, SparseLayout, holding_back, rank_of_classes
from solvers.linear.steps import absolute
from solvers.linear.steps.absolute import Alpha, Margins
from solvers.linear.visits import Task, Visits
from solvers.numerics import scaling_search
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints32

AUTO_FEATURES = 300
CHUNK = 256
# epochs between joint steps on near-duplicates, which wait longer where they gain less than this part of a pass
JOINT_EVERY, MOST_WAIT, WORTH_JOINT = 5, 40, 0.1
NEXT_TO_NOTHING = 1e-6


class SummedParams(AscentParams):
    """What the machines have in common that sum the losses of an example."""

    algorithm: Literal["auto", "ascent", "interior"] = Field(
        default="auto",
        description=f"Block ascent or interior point; auto selects interior point up to {AUTO_FEATURES} features.",
    )
    interior_mb: int = Field(default=4096, ge=1, description="Memory limit of the interior point method in megabytes.")


@dataclass(frozen=True)
class AbsoluteLoss:
    """The violations of absolute margins: their weighted sum, or the largest."""

    margins: Callable[[int], Margins]
    params: AscentParams

    def at_zero(self, n_classes: int) -> float:
        """The loss of an example whose scores all vanish, as those of an empty row always do."""
        own, other, own_share, other_share, shared = self.margins(n_classes)
        if shared:
            return max(own if own_share > 0 else 0.0, other if other_share > 0 else 0.0)
        return own_share * own + other_share * other * (n_classes - 1)

    def constant(self, task: Task, empty: Bools) -> float:
        return float(task.bounds[empty].sum()) * self.at_zero(task.n_classes)

    def layout(self, problem: Problem) -> Layout:
        k, dtype = problem.n_classes, precision(self.params)
        bounds = self.params.C * problem.weights
        return holding_back(lambda X: SparseLayout.from_matrix(X, k, dtype), problem.X, self.params.bias, bounds, k)

    def duals(self, task: Task) -> Alpha:
        return Alpha(np.zeros((len(task.y), task.n_classes), task.rows.data.dtype))

    def with_capacity(self, task: Task, duals: Alpha) -> Alpha:
        return duals

    def visit(self, task: Task, run: Run, visits: Visits) -> int:
        margins = self.margins(task.n_classes)
        absolute.visit(task, visits, margins, run.W, run.duals.values, run.progress)
        if visits.end == len(run.order) and not margins.shared:
            self._move_near_duplicates(task, run, margins)
        return visits.end

    def _move_near_duplicates(self, task: Task, run: Run, margins: Margins) -> None:
        """At the end of every fifth pass move near-duplicates jointly; where that gains little, less often."""
        epoch, schedule = run.counters.epoch, run.schedule
        if epoch < max(JOINT_EVERY, schedule.gradients_epoch):
            return
        gains = np.zeros(len(task.y))
        gains[run.order] = run.progress.gains[run.order]
        gain = near_duplicates.ascend(task, margins, run.W, run.duals.values, gains)
        paid = gain > WORTH_JOINT * float(gains.sum())
        schedule.gradients_wait = JOINT_EVERY if paid else min(2 * max(schedule.gradients_wait, JOINT_EVERY), MOST_WAIT)
        schedule.gradients_epoch = epoch + schedule.gradients_wait

    def measure(self, task: Task, run: Run, gaps: Floats, leads: Floats) -> tuple[float, float, float]:
        margins, terms = self.margins(task.n_classes), scaling_search.blank()
        sums = np.empty(2)
        absolute.certify(task, margins, run.W, run.duals.values, gaps, leads, terms, sums, 0, len(gaps))
        losses, total = sums.tolist()
        half = 0.5 * run.layout.square_norm(run.W)
        primal, multiple = (half + losses, 1.0) if margins.shared else scaling_search.best_point(half, losses, terms)
        return primal, total - half, multiple

    def rebuild(self, task: Task, duals: Alpha, W: Array) -> None:
        totals = np.empty(len(task.y))
        absolute.signed_sums(task.y, duals.values, totals, 0, len(totals))
        absolute.rebuild(task.rows, task.y, task.n_classes, duals.values, totals, W, 0, task.n_classes)

    def sums(self, task: Task, duals: Alpha) -> Floats:
        own = duals.values[np.arange(len(task.y)), task.y]
        total = np.bincount(task.y, 2.0 * own, task.n_classes) - duals.values.sum(axis=0, dtype=np.float64)
        return np.asarray(total - total.mean())

    def linear_part(self, task: Task, duals: Alpha) -> float:
        own, other, *_ = self.margins(task.n_classes)
        true = duals.values[np.arange(len(task.y)), task.y].sum(dtype=np.float64)
        return float(own * true + other * (duals.values.sum(dtype=np.float64) - true))

    def shares(self, task: Task, duals: Alpha) -> sp.csr_matrix:
        raise TypeError("absolute margins support no warm start")

    def of_shares(self, task: Task, shares: sp.csr_matrix) -> Alpha:
        raise TypeError("absolute margins support no warm start")

    def multiply(self, task: Task, duals: Alpha, factor: float) -> None:
        _, _, own_share, other_share, shared = self.margins(task.n_classes)
        for i in range(0, len(task.y), CHUNK):
            part, bounds = duals.values[i : i + CHUNK], task.bounds[i : i + CHUNK, None]
            part *= part.dtype.type(factor)
            if not shared:
                true = task.y[i : i + CHUNK, None] == np.arange(task.n_classes)
                part[:] = snapped_to_bounds(part, bounds * np.where(true, own_share, other_share))


class SumToZero(Machine[A]):
    """A machine of this family is no more than its margins (Dogan et al. 2016, Table 1).

    One that sums the losses of an example trains by block ascent or by interior point, in shards as in one worker.
    """

    shards = "solvers.linear.sharded.sum_to_zero_shards:SumToZeroShards"
    lead = 2.0
    bounds_answers = True

    @abstractmethod
    def margins(self, n_classes: int) -> Margins:
        """The constraints of one example."""

    @property
    def loss(self) -> AbsoluteLoss:
        """The loss of one example."""
        return AbsoluteLoss(self.margins, self.params)

    @property
    def ascent(self) -> Ascent:
        """The driver of block ascent."""
        return Ascent(self.loss, self.params, self.seed)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """Train; ``max_epochs`` bounds the iterations of the interior point method too, which may also stall.

        Raises
        ------
        TooLargeError
            The interior point method was asked for and would need more than ``interior_mb``.
        """
        features = used_features(problem)
        if self.takes_interior(problem, features):
            return self.interior_steps(problem, features, state)
        return self.ascent.steps(problem, state)

    def fitted(self, problem: Problem, state: State) -> LinearModel:
        features = used_features(problem)
        if not self.takes_interior(problem, features):
            return fitted(problem, self.loss.layout(problem), state)
        return LinearModel(problem.classes, problem.n_features, features, np.array(state["W"], precision(self.params)))

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach:
        """As all machines; the interior point's W is not what its dual variables make, and that is not kept."""
        prepared = self.prepared(problem)
        if self.takes_interior(prepared, used_features(prepared)):
            return joint_reach(model, primal, dual, None, self.params.bias)
        return self.ascent.reach(prepared, state, model, primal, dual)

    def multiple(self, problem: Problem, state: State) -> float | None:
        prepared = self.prepared(problem)
        if self.takes_interior(prepared, used_features(prepared)):
            return None
        return self.ascent.multiple(prepared, state)

    @property
    def weight_bytes(self) -> int:
        return precision(self.params).itemsize

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        if self.suits_interior(n_samples, n_features, n_classes):
            return interior_point.estimate_bytes(n_samples, n_features, n_classes, density=0.0)
        dtype = precision(self.params)
        return weights_bytes(n_samples, n_features, n_classes, dtype) + n_samples * n_classes * dtype.itemsize

    def dual_variables(self, problem: Problem, state: State) -> Floats:
        """The dual variables of a state on the prepared problem, shape (n_samples, n_classes)."""
        if self.takes_interior(problem, used_features(problem)):
            return np.array(state["alpha"], np.float64)
        return np.asarray(state["dual_values"][:, rank_of_classes(problem)], np.float64)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        _, _, own_share, other_share, _ = self.margins(problem.n_classes)
        each = (own_share > 0) + (other_share > 0) * (problem.n_classes - 1)
        return share(self._count(problem, state), int(filled(problem).sum()) * each)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """As for all machines by block ascent; the interior point method starts again around its current W."""
        features = used_features(problem)
        if not self.takes_interior(problem, features):
            return self.ascent.rescaled(problem, state, ratio)
        return interior_point.around(*self.interior_problem(problem, features), state["W"])

    def takes_interior(self, problem: Problem, features: Ints) -> bool:
        """Whether a problem with these features is trained by the interior point method."""
        return self.suits_interior(problem.n_samples, len(features), problem.n_classes)

    def suits_interior(self, n: int, d: int, k: int) -> bool:
        """Whether so many examples, features and classes are trained so."""
        params = self.params
        if not isinstance(params, SummedParams):
            return False
        if params.algorithm != "auto":
            return params.algorithm == "interior"
        allowed = min(params.interior_mb, params.memory_mb or params.interior_mb)
        return 0 < d <= AUTO_FEATURES and interior_point.estimate_bytes(n, d, k) <= allowed << 20

    def _count(self, problem: Problem, state: State) -> int:
        features = used_features(problem)
        if not self.takes_interior(problem, features):
            return int(np.count_nonzero(state["dual_values"]))
        # the method stays within the box: what is next to nothing of the bound would vanish
        _, losses = self.interior_problem(problem, features)
        return int(np.count_nonzero((state["alpha"] > NEXT_TO_NOTHING * losses.bounds)[filled(problem)]))

    def interior_problem(self, problem: Problem, features: Ints) -> tuple[sp.csr_matrix, Losses]:
        """What the interior point method is given."""
        own, other, own_share, other_share, _ = self.margins(problem.n_classes)
        costs = self.params.C * problem.weights
        losses = Losses.of_classes(problem.y, problem.n_classes, costs, (own, own_share), (other, other_share))
        return sp.csr_matrix(problem.X[:, features]), losses

    def interior_steps(
        self,
        problem: Problem,
        features: Ints,
        state: State | None,
        own: Ints32 | None = None,
        sums: ClassSums | None = None,
    ) -> Iterator[Step]:
        """Iterations on all classes, or on a shard's own with the sums over all."""
        assert isinstance(self.params, SummedParams)
        limit = self.params.interior_mb << 20
        X, losses = self.interior_problem(problem, features)
        if own is not None:
            losses = losses.restrict(own)
        iterates = interior_point.iterations(X, losses, sum_to_zero=True, state=state, limit_bytes=limit, sums=sums)
        for iterate in iterates:
            converged = relative_gap(iterate.primal, iterate.dual) <= self.params.tol
            dual = min(iterate.dual, iterate.primal)
            yield Step(iterate.number, iterate.primal, dual, iterate.violation, converged, iterate.state)
            if converged or iterate.number >= self.params.max_epochs:
                return


def used_features(problem: Problem) -> Ints:
    """The features that some example has, ascending."""
    return np.flatnonzero(np.bincount(problem.X.indices, minlength=problem.n_features))
