"""Block ascent on the dual of machines over a label tree: the driver.

It minimises ``Omega(W) + sum_b C_b loss_b(W)`` over one weight vector a node, where

    Omega(W) = 1/2 sum_i K_ii |w_i|^2 + sum_{i, a above i} K_ia |w_i . w_a|     or the same without the bars,

and a loss is the largest of the scaled violations of its pairs of nodes: with the bars Zhou et al. 2011, equation 7.
Without them the coupling is fixed. With them ``Omega(W) = max_S 1/2 sum_ij (S o K)_ij w_i . w_j`` over S_ij in [-1, 1]
off the diagonal: all these matrices are positive definite if the comparison matrix of K is. So the optimum is
``max D(alpha, S)``, jointly concave, over dual variables and S, and every (alpha, S) gives a true lower bound. At the
optimum most pairs are exactly orthogonal with S inside its bounds, which is why S has to be continuous.

An epoch is one exact step on every hinge it visits, in a fresh random order; then, while they pay, inner passes that
visit hinges with the pairs alone that have a dual variable, which costs a few gathers where the first costs a scan of
the nodes; then one Newton step on S. Where all nodes rival, outer steps speed the ascent up, and certificates are of
the mean of the weights over an epoch (:mod:`solvers.hierarchical.hinges.acceleration`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from solvers.core.base import State, Step
from solvers.core.certified_ascent import Certificate, ascend, bounded, is_due
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem
from solvers.hierarchical import epochs
from solvers.hierarchical.design import Design
from solvers.hierarchical.epochs import Epoch
from solvers.hierarchical.hinges import path_steps, sibling_steps, steps, sums
from solvers.hierarchical.hinges.acceleration import Acceleration
from solvers.hierarchical.hinges.run import HingeRun, pool_of
from solvers.hierarchical.hinges.steps import VISITED, Progress, Visits
from solvers.hierarchical.hinges.sums import Sums
from solvers.labels import tree_factor
from solvers.labels.coupling import diagonal
from solvers.linear.driver.ascent import LIVE_SHARE, WORTH, most_inner_passes
from solvers.linear.driver.run import Schedule, extrapolated
from solvers.linear.layouts.layouts import DenseLayout, SparseLayout
from solvers.numerics import coefficients, scaling_search
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32
from solvers.numerics.orders import live
from solvers.numerics.rows import Rows
from solvers.numerics.rows import weights as zero_weights

# how many nodes of paths a known pair takes
PATHS = 2.0
ROOM = 1 << 16
HALVINGS = 30


def weights_dtype(tol: float) -> np.dtype[Any]:
    """The precision of weights that are trained to a gap of ``tol``, where no signs of a coupling are."""
    return np.dtype(np.float32 if tol >= 1e-4 else np.float64)


class HingeAscent:
    """The ascent for one design and one problem: all that stays fixed while training.

    Parameters
    ----------
    design : Design
    problem : Problem
        Prepared; its rows are those that are trained on.
    C : float
    tol : float
        The gap that will be asked for: from 1e-4 on, float32 will do, but for couplings whose signs are trained.
    of_duals : bool
        Whether the model is made of the dual variables, so that weights of its own are no use.
    """

    def __init__(self, design: Design, problem: Problem, C: float, tol: float, of_duals: bool = False) -> None:
        self.design = design
        self.accelerates = design.all_rival and not of_duals
        self.dtype = np.dtype(np.float64) if design.absolute else weights_dtype(tol)
        suitable = DenseLayout if DenseLayout.suits(problem.X) else SparseLayout
        self.layout = suitable.from_matrix(problem.X, design.tree.n_nodes, self.dtype)
        self.rows, self.features = self.layout.rows, self.layout.features
        self.tree = design.tree.arrays
        self.hinges = design.hinges(C * problem.weights)
        at_zero = sums.losses_at_zero(self.tree, self.hinges)
        empty = self.rows.squares[self.hinges.row] == 0
        # what the losses of empty rows come to, whatever the weights
        self.constant = float((self.hinges.bound * at_zero)[empty].sum())
        self.filled = ~empty & (at_zero > 0)
        self.n_rivals = design.n_rivals()[self.hinges.node]
        self.costs = self.layout.full[self.hinges.row] * self.n_rivals / design.tree.n_nodes
        self.listed_costs = PATHS * self.layout.listed[self.hinges.row]

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Train, from the start or from the ``state`` of an earlier step."""
        run = self._begin() if state is None else self._resume(state)
        return ascend(_Training(self, run, tol, max_epochs, seed), tol)

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at ``ratio`` times the C that the state was trained at."""
        run, last = self._begin(), self._resume(state)
        if last.acceleration is not None:
            last.acceleration = None
            self._set_vectors(last, last.B)
        linear = self._sums(last, np.zeros(len(self.filled)), scaling_search.blank()).linear
        factor = best_multiple(linear, self._square(last), ratio)
        run.pool, run.S, run.B = last.pool, last.S, last.B
        run.pool.values[:] *= factor
        run.R[:] = last.R
        run.R *= factor
        if run.acceleration is not None:
            run.acceleration.mean[:] = run.R
        return run.step(np.nan, np.nan, converged=False).state

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero."""
        # among the rivals of a level, or of a label, is the node itself
        own = 1 if self.design.all_rival else self.tree.level[self.hinges.node] - self.hinges.first
        pairs = (self.n_rivals - own)[self.filled].sum()
        return float(state["dual_length"].sum() / pairs) if pairs > 0 else 0.0

    def weights(self, state: State) -> tuple[Ints, Floats]:
        """The features that some example has, and the weights of the nodes in that order, shape (n_used, n_nodes)."""
        run = self._resume(state)
        W = np.empty((len(self.features), self.design.tree.n_nodes))
        tree_factor.to_weights(self.tree, run.B, self._by_feature(run.point), W)
        W *= run.scale
        return self.features, W

    def coefficients(self, state: State) -> Floats:
        """What each example adds to the weights of the nodes (Zhou et al. 2011, Theorem 3)."""
        n, m = len(self.rows.squares), self.design.tree.n_nodes
        alone = Rows(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n), np.ones(n))
        added, W = zero_weights(n, m, np.dtype(np.float64)), np.empty((n, m))
        B = self._factor(np.asarray(state["S"]))
        sums.to_vectors(alone, self.tree, self.hinges, pool_of(state), added)
        tree_factor.times_factor(self.tree, B, added)
        tree_factor.to_weights(self.tree, B, added, W)
        W *= float(state["scale"])
        return W

    def _begin(self) -> "HingeRun":
        n_hinges, tree = len(self.filled), self.design.tree
        S = np.zeros(len(self.design.K)) if self.design.absolute else np.ones(len(self.design.K))
        S[diagonal(tree)] = 1.0
        R = self.layout.weights()
        pool = coefficients.empty(n_hinges, max(ROOM, 4 * tree.n_nodes))
        gains = np.zeros(n_hinges, np.float32)
        run = HingeRun(R, S, self._factor(S), pool, Epoch.zeroth(n_hinges), gains, np.zeros(1, VISITED))
        if self.accelerates:
            run.acceleration = Acceleration(self.layout.weights())
        return run

    def _resume(self, state: State) -> "HingeRun":
        R = self.layout.weights()
        R[:] = state["R"]
        S = np.array(state["S"])
        return HingeRun(
            R, S, self._factor(S), pool_of(state), Epoch.from_state(state), np.array(state["gains"]),
            np.array(state["visited"]).view(VISITED), float(state["best_dual"]), int(state["n_certificates"]),
            int(state["inner_passes"]), Schedule(*(float(value) for value in state["schedule"])), float(state["scale"]),
            Acceleration.from_state(state) if self.accelerates else None,
        )  # fmt: skip

    def _factor(self, S: Floats) -> Floats:
        """B of the coupling with signs S."""
        B = np.empty_like(S)
        if not tree_factor.factor(self.tree, S * self.design.K, 0.0, B):
            raise FloatingPointError("the coupling is not positive definite")
        return B

    def begin_epoch(self, run: "HingeRun", blocks: Ints32, seed: int) -> None:
        if run.epoch.number > 0 and self.design.absolute:
            self._renew(run)
        if run.acceleration is not None:
            run.acceleration.begin_epoch(run.R)
        run.epoch.begin_next(blocks, seed)
        run.inner_passes, run.schedule.cost, run.visited[:] = 0, float(self.costs[run.epoch.order].sum()), 0

    def begin_inner_pass(self, run: "HingeRun", seed: int) -> None:
        """Visit the hinges whose last visit gained much, with the pairs alone that have a dual variable."""
        run.inner_passes += 1
        threshold = LIVE_SHARE * float(run.visited["gain"][0]) / max(1, len(run.epoch.order))
        run.epoch.order, run.schedule.cost = live(
            run.gains, run.pool.length, self.listed_costs, threshold, seed, run.epoch.number, run.inner_passes
        )
        run.epoch.position, run.visited["gain"] = 0, 0.0

    def inner_pass_pays(self, run: "HingeRun") -> bool:
        """Whether, at the end of a pass, visits of known pairs alone gain enough for their cost."""
        if run.epoch.number == 0 or run.inner_passes >= most_inner_passes(run.epoch.number):
            return False
        rate = float(run.visited["gain"][0]) / max(run.schedule.cost, 1.0)
        if run.inner_passes == 0:
            run.schedule.full_rate = rate
            return True
        return len(run.epoch.order) > 0 and rate > WORTH * run.schedule.full_rate

    def visit_slice(self, run: "HingeRun", budget: float) -> float:
        """Visit on to the end of the pass, or until it has cost the budget; returns what it has cost."""
        epoch, all_pairs = run.epoch, run.inner_passes == 0
        if epoch.is_over:
            return 0.0
        rest = epoch.order[epoch.position :]
        work = np.cumsum(self.costs[rest] if all_pairs else self.listed_costs[rest] * run.pool.length[rest])
        n = min(len(work), 1 + int(np.searchsorted(work, budget)))
        stop = epoch.position + n
        room = self.design.tree.n_nodes + 1 + steps.CANDIDATES * int(self.tree.level[-1])
        progress = Progress(epoch.unchanged, run.gains, run.visited)
        while epoch.position < stop:
            run.pool = coefficients.with_capacity(run.pool, max(ROOM, 2 * room))
            visits = Visits(epoch.order, epoch.position, stop, all_pairs)
            epoch.position = self._visit(run, visits, progress)
        run.products = None
        if epoch.is_over and run.acceleration is not None:
            run.acceleration.average(run.R, len(epoch.order), is_last=not self.inner_pass_pays(run))
        return float(work[n - 1])

    def _visit(self, run: "HingeRun", visits: Visits, progress: Progress) -> int:
        given = self.rows, self.tree, self.hinges
        if self.design.each_level:
            return int(sibling_steps.visit(*given, visits, run.R, run.pool, progress))
        if self.design.all_rival:
            share = 1.0 if run.acceleration is None else run.acceleration.share
            return int(path_steps.visit(*given, visits, share, run.R, run.pool, progress))
        return int(steps.visit(*given, run.B, visits, run.R, run.pool, progress))

    def _sums(self, run: "HingeRun", gaps: Floats, terms: Floats) -> Sums:
        found: Sums = sums.certify(self.rows, self.tree, self.hinges, run.B, run.point, run.pool, gaps, terms)
        return found

    def _inner_products(self, run: "HingeRun") -> Floats:
        """``w_i . w_a`` along the paths, computed once for each R."""
        if run.products is None:
            run.products = np.empty(len(run.S))
            tree_factor.inner_products(self.tree, run.B, self._by_feature(run.R), run.products)
        return run.products

    def excess(self, run: "HingeRun") -> float:
        """By how much Omega(W) exceeds ``|R|^2 / 2``, as S is not yet that of W."""
        if not self.design.absolute:
            return 0.0
        G = self._inner_products(run)
        terms = self.design.K * (np.abs(G) - run.S * G)
        terms[diagonal(self.design.tree)] = 0.0
        return float(terms.sum())

    def expected_gap(self, run: "HingeRun", excess: float) -> float:
        """The relative gap to be expected, from what the visits of the last two epochs with all pairs have met."""
        met = run.visited[0]
        gap = max(0.0, met["gap"]) + excess
        estimate = gap / (met["losses"] + 0.5 * self._square(run) + excess) if gap > 0.0 else 0.0
        if run.acceleration is not None:
            run.acceleration.note(estimate / run.schedule.last_gap)
        expected, run.schedule.last_gap = extrapolated(estimate, run.schedule.last_gap)
        return expected

    def _square(self, run: "HingeRun") -> float:
        """``|R|^2``."""
        return self.layout.square_norm(run.R)

    def certificate(self, run: "HingeRun", gaps: Floats, excess: float) -> tuple[float, float]:
        """Primal value of the best multiple of the weights, and the best lower bound so far.

        ``gaps`` takes each hinge's part at the weights themselves.
        """
        if not self.design.absolute:
            # many small changes have left their rounding
            self._set_vectors(run, run.B)
        terms, half = scaling_search.blank(), 0.5 * self._square(run)
        own = half + excess
        if run.acceleration is not None:
            run.acceleration.weigh(run.R)
            own = 0.5 * self.layout.square_norm(run.point)
        found = self._sums(run, gaps, terms)
        value, run.scale = scaling_search.best_point(own, found.losses, terms, scaling_search.ONE)
        primal, dual = value + self.constant, found.linear - half + self.constant
        run.visited["violation"] = found.violation
        run.best_dual = max(run.best_dual, bounded(primal, dual, self.dtype))
        return primal, min(run.best_dual, primal)

    def _renew(self, run: "HingeRun") -> None:
        """Make R afresh from the dual variables, after a step on S; one that lets the dual fall is halved."""
        before, new = self._square(run), np.empty_like(run.S)
        tree_factor.sign_step(self.tree, self.design.K, run.B, self._inner_products(run), run.S, new)
        for _ in range(HALVINGS):
            B = self._factor(new)
            self._set_vectors(run, B)
            if self._square(run) <= before * (1.0 + 1e-12):
                run.S, run.B = new, B
                return
            new = 0.5 * (run.S + new)
        self._set_vectors(run, run.B)

    def _set_vectors(self, run: "HingeRun", B: Floats) -> None:
        """R = V B, V being the vectors of the dual variables."""
        sums.to_vectors(self.rows, self.tree, self.hinges, run.pool, run.R)
        V = self._by_feature(run.R)
        tree_factor.times_factor(self.tree, B, V)
        if V is not run.R:
            self.layout.by_feature(run.R)[:] = V
        run.products = None

    def _by_feature(self, R: Floats) -> Floats:
        """R with one row a feature: itself, or beside dense rows a copy."""
        return R if isinstance(self.layout, SparseLayout) else np.ascontiguousarray(self.layout.by_feature(R))


class _Training:
    """The ascent on one problem."""

    def __init__(self, ascent: HingeAscent, run: HingeRun, tol: float, max_epochs: int, seed: int) -> None:
        self.ascent, self.run, self.tol, self.max_epochs, self.seed = ascent, run, tol, max_epochs, seed
        self.blocks = np.flatnonzero(ascent.filled).astype(np.int32)
        self.gaps, self.excess, self.expected = np.zeros(len(ascent.filled)), 0.0, 1.0

    @property
    def epoch(self) -> int:
        return self.run.epoch.number

    @property
    def epoch_over(self) -> bool:
        return self.run.epoch.is_over and not self.ascent.inner_pass_pays(self.run)

    def begin_epoch(self) -> None:
        self.ascent.begin_epoch(self.run, self.blocks, self.seed)

    def advance(self) -> None:
        ascent, run, spent = self.ascent, self.run, 0.0
        while spent < epochs.SLICE_OPERATIONS:
            if run.epoch.is_over and ascent.inner_pass_pays(run):
                ascent.begin_inner_pass(run, self.seed)
            spent += ascent.visit_slice(run, epochs.SLICE_OPERATIONS - spent)
            if self.epoch_over:
                return

    def certifies(self) -> bool:
        self.excess = self.ascent.excess(self.run)
        self.expected = self.ascent.expected_gap(self.run, self.excess)
        promising = self.run.schedule.found_share * self.expected <= self.tol
        return promising or is_due(self.epoch, self.max_epochs, self.run.n_certificates)

    def certify(self) -> Certificate:
        self.run.n_certificates += 1
        return Certificate(*self.ascent.certificate(self.run, self.gaps, self.excess))

    def learn(self, primal: float, gap: float) -> None:
        self.run.schedule.found_share = min(1.0, gap / self.expected) if self.expected > 0.0 else 1.0
        self.run.epoch.unchanged[self.gaps > 0.1 * self.tol * primal / len(self.gaps)] = 0

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        return self.run.step(primal, dual, converged=converged)
