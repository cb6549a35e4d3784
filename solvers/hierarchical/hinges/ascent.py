"""Block ascent on the dual of machines over a label tree: the driver.

It minimises ``Omega(W) + sum_b C_b loss_b(W)`` over one weight vector a node, where

    Omega(W) = 1/2 sum_i K_ii |w_i|^2 + sum_{i, a above i} K_ia |w_i . w_a|     or the same without the bars,

and a loss is the largest of the scaled violations of its pairs of nodes: with the bars Zhou et al. 2011, equation 7.
Without them the coupling is fixed. With them ``Omega(W) = max_S 1/2 sum_ij (S o K)_ij w_i . w_j`` over S_ij in [-1, 1]
off the diagonal: all these matrices are positive definite if the comparison matrix of K is. So the optimum is
``max D(alpha, S)``, jointly concave, over dual variables and S, and every (alpha, S) gives a true lower bound. At the
optimum most pairs are exactly orthogonal with S inside its bounds, which is why S has to be continuous.

An epoch is one exact step on every hinge it visits, in a fresh random order, then one Newton step on S.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem
from solvers.hierarchical import epochs
from solvers.hierarchical.design import Design
from solvers.hierarchical.epochs import Epoch
from solvers.hierarchical.hinges import steps, sums
from solvers.hierarchical.hinges.steps import VISITED
from solvers.hierarchical.hinges.sums import Sums
from solvers.labels import tree_factor
from solvers.labels.coupling import diagonal
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows, arrange
from solvers.numerics.rows import weights as zero_weights

CERTIFY_SHARE = 0.1
# by how much more the gaps met on the way sum up to than the gap at the end of an epoch
SHRINKS = 2.0
ROOM = 1 << 16
HALVINGS = 30

Floats = NDArray[np.float64]


class HingeAscent:
    """The ascent for one design and one problem: all that stays fixed while training.

    Parameters
    ----------
    design : Design
    problem : Problem
        Prepared; its rows are those that are trained on.
    C : float
    """

    def __init__(self, design: Design, problem: Problem, C: float) -> None:
        self.design = design
        self.rows, self.features = arrange(problem.X, np.dtype(np.float64))
        self.tree = design.tree.arrays
        self.hinges = design.hinges(C * problem.weights)
        at_zero = sums.losses_at_zero(self.tree, self.hinges)
        empty = self.rows.squares[self.hinges.row] == 0
        # what the losses of empty rows come to, whatever the weights
        self.constant = float((self.hinges.bound * at_zero)[empty].sum())
        self.filled = ~empty & (at_zero > 0)
        self.n_rivals = design.n_rivals()[self.hinges.node]

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Train, from the start or from the ``state`` of an earlier step."""
        run = self._begin() if state is None else self._resume(state)
        epoch, gaps = run.epoch, np.zeros(len(self.filled))
        costs = (1.0 + np.diff(self.rows.indptr))[self.hinges.row] * self.n_rivals
        blocks = np.flatnonzero(self.filled).astype(np.int32)
        while True:
            if epoch.is_over:
                if epoch.number == max_epochs:
                    return
                if epoch.number > 0:
                    self._renew(run)
                epoch.begin_next(blocks, seed)
                run.visited[:] = 0
            self._advance(run, epoch.end_of_slice(costs, epochs.SLICE_OPERATIONS))
            if not epoch.is_over:
                yield run.step(np.nan, np.nan, converged=False)
                continue
            excess, met = self._excess(run), run.visited[0]
            near = met["gap"] + excess <= SHRINKS * tol * (met["losses"] + 0.5 * run.square())
            if not (near or epoch.number == max_epochs or CERTIFY_SHARE * epoch.number >= 1 + run.n_certificates):
                yield run.step(np.nan, np.nan, converged=False)
                continue
            run.n_certificates += 1
            primal, dual = self._certificate(run, gaps, excess)
            converged = relative_gap(primal, dual) <= tol
            epoch.unchanged[gaps > 0.1 * tol * primal / len(gaps)] = 0
            yield run.step(primal, dual, converged=converged)
            if converged:
                return

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at ``ratio`` times the C that the state was trained at."""
        run, last = self._begin(), self._resume(state)
        linear = self._sums(last, np.zeros(len(self.filled))).linear
        factor = best_multiple(linear, last.square(), ratio)
        run.pool, run.S, run.B = last.pool, last.S, last.B
        run.pool.values[:] *= factor
        run.R[:] = last.R
        run.R *= factor
        return run.step(np.nan, np.nan, converged=False).state

    def nonzero_duals(self, state: State) -> float:
        """The share of the dual variables that are not zero."""
        # among the rivals of a level, or of a label, is the node itself
        own = 1 if self.design.all_rival else self.tree.level[self.hinges.node] - self.hinges.first
        pairs = (self.n_rivals - own)[self.filled].sum()
        return float(state["dual_length"].sum() / pairs) if pairs > 0 else 0.0

    def weights(self, state: State) -> tuple[NDArray[np.int64], Floats]:
        """The features that some example has, and the weights of the nodes in that order, shape (n_used, n_nodes)."""
        run = self._resume(state)
        W = np.empty((len(self.features), self.design.tree.n_nodes))
        tree_factor.to_weights(self.tree, run.B, run.R, W)
        return self.features, W

    def coefficients(self, state: State) -> Floats:
        """What each example adds to the weights of the nodes (Zhou et al. 2011, Theorem 3)."""
        n, m = len(self.rows.squares), self.design.tree.n_nodes
        alone = Rows(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n), np.ones(n))
        added, W = zero_weights(n, m, np.dtype(np.float64)), np.empty((n, m))
        B = self._factor(np.asarray(state["S"]))
        sums.to_vectors(alone, self.tree, self.hinges, _pool(state), added)
        tree_factor.times_factor(self.tree, B, added)
        tree_factor.to_weights(self.tree, B, added, W)
        return W

    def _begin(self) -> "_Run":
        n_hinges, tree = len(self.filled), self.design.tree
        S = np.zeros(len(self.design.K)) if self.design.absolute else np.ones(len(self.design.K))
        S[diagonal(tree)] = 1.0
        R = zero_weights(len(self.features), tree.n_nodes, np.dtype(np.float64))
        pool = coefficients.empty(n_hinges, max(ROOM, 4 * tree.n_nodes))
        return _Run(R, S, self._factor(S), pool, Epoch.zeroth(n_hinges), np.zeros(1, VISITED))

    def _resume(self, state: State) -> "_Run":
        R = zero_weights(len(self.features), self.design.tree.n_nodes, np.dtype(np.float64))
        R[:] = state["R"]
        S = np.array(state["S"])
        return _Run(
            R, S, self._factor(S), _pool(state), Epoch.of_state(state), np.array(state["visited"]).view(VISITED),
            float(state["best_dual"]), int(state["n_certificates"]),
        )  # fmt: skip

    def _factor(self, S: Floats) -> Floats:
        """B of the coupling with signs S."""
        B = np.empty_like(S)
        if not tree_factor.factor(self.tree, S * self.design.K, 0.0, B):
            raise FloatingPointError("the coupling is not positive definite")
        return B

    def _advance(self, run: "_Run", stop: int) -> None:
        """Visit on up to a position of the epoch's order."""
        epoch = run.epoch
        room = self.design.tree.n_nodes + 1 + steps.CANDIDATES * int(self.tree.level[-1])
        while epoch.position < stop:
            run.pool = coefficients.with_room(run.pool, max(ROOM, 2 * room))
            epoch.position = steps.visit(
                self.rows, self.tree, self.hinges, run.B, epoch.order, epoch.position, stop, run.R, run.pool,
                epoch.unchanged, run.visited[0],
            )  # fmt: skip
        run.products = None

    def _sums(self, run: "_Run", gaps: Floats) -> Sums:
        found: Sums = sums.certify(self.rows, self.tree, self.hinges, run.B, run.R, run.pool, gaps)
        return found

    def _inner_products(self, run: "_Run") -> Floats:
        """``w_i . w_a`` along the paths, computed once for each R."""
        if run.products is None:
            run.products = np.empty(len(run.S))
            tree_factor.inner_products(self.tree, run.B, run.R, run.products)
        return run.products

    def _excess(self, run: "_Run") -> float:
        """By how much Omega(W) exceeds ``|R|^2 / 2``, as S is not yet that of W."""
        if not self.design.absolute:
            return 0.0
        G = self._inner_products(run)
        terms = self.design.K * (np.abs(G) - run.S * G)
        terms[diagonal(self.design.tree)] = 0.0
        return float(terms.sum())

    def _certificate(self, run: "_Run", gaps: Floats, excess: float) -> tuple[float, float]:
        """Primal value of the weights and the best lower bound so far; ``gaps`` takes each hinge's part."""
        found, half = self._sums(run, gaps), 0.5 * run.square()
        primal, dual = half + excess + found.losses + self.constant, found.linear - half + self.constant
        if dual - primal > 1e-9 * abs(primal):
            raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
        run.visited["violation"] = found.violation
        run.best_dual = max(run.best_dual, dual)
        return primal, min(run.best_dual, primal)

    def _renew(self, run: "_Run") -> None:
        """Make R afresh from the dual variables, after a step on S where it is free.

        A step that lets the dual fall is halved until it does not.
        """
        if not self.design.absolute:
            self._set_vectors(run, run.B)
            return
        before, new = run.square(), np.empty_like(run.S)
        tree_factor.sign_step(self.tree, self.design.K, run.B, self._inner_products(run), run.S, new)
        for _ in range(HALVINGS):
            B = self._factor(new)
            self._set_vectors(run, B)
            if run.square() <= before * (1.0 + 1e-12):
                run.S, run.B = new, B
                return
            new = 0.5 * (run.S + new)
        self._set_vectors(run, run.B)

    def _set_vectors(self, run: "_Run", B: Floats) -> None:
        """R = V B, V being the vectors of the dual variables."""
        sums.to_vectors(self.rows, self.tree, self.hinges, run.pool, run.R)
        tree_factor.times_factor(self.tree, B, run.R)
        run.products = None


@dataclass
class _Run:
    """What changes while a machine trains: the state of a step."""

    R: Floats
    S: Floats
    B: Floats
    pool: Coefficients
    epoch: Epoch
    visited: NDArray[np.void]
    best_dual: float = -np.inf
    n_certificates: int = 0
    products: Floats | None = None

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        arrays = self.epoch.state() | {f"dual_{name}": array for name, array in self.pool._asdict().items()}
        arrays |= {
            "R": self.R,
            "S": self.S,
            "visited": self.visited.view(np.float64),
            "best_dual": np.array(self.best_dual),
            "n_certificates": np.array(self.n_certificates),
        }
        return Step(self.epoch.number, primal, dual, float(self.visited["violation"][0]), converged, arrays)

    def square(self) -> float:
        """``|R|^2``."""
        return float(np.vdot(self.R, self.R))


def _pool(state: State) -> Coefficients:
    """A copy of the dual variables of a state."""
    return Coefficients(*(np.array(state[f"dual_{name}"]) for name in Coefficients._fields))
