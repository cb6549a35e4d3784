"""Block ascent on the dual of H-M3: the driver, its certificate and its acceleration.

An epoch visits every example once, in a fresh random order, and leaves out those whose visits change nothing. Where
that stalls, outer steps add ``kappa / 2`` times the squared distance of the weights from a point V that runs ahead of
them (Catalyst, Lin, Mairal and Harchaoui 2015): the scores are then those of ``(A + kappa V) / (1 + kappa)``, A being
the vectors of the dual variables. The lower bound is that of A, the objective that of the point where the scores are
made, which is far lower long before both meet; that point, too, is one of the original problem. A model that is made of
the dual variables themselves, as with kernels, has the objective of A.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, imprecise
from solvers.core.certified_ascent import Certificate, ascend
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem, ProblemError
from solvers.hierarchical import epochs
from solvers.hierarchical.epochs import Epoch
from solvers.hierarchical.marginals import closed_sets, graph_sets, labelings, visits
from solvers.hierarchical.marginals.example import Sets, markov_graph, markov_tree
from solvers.hierarchical.marginals.visits import VISITED, Sums
from solvers.labels.taxonomy import Weighting
from solvers.numerics import coefficients
from solvers.numerics.array_types import Bools, Floats, Ints
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.rows import Rows, arrange
from solvers.numerics.rows import weights as zero_weights

KAPPA = 8.0
# outer steps come after so many epochs, once an epoch has taken off less than this share of the gap
OUTER_EPOCHS = 2
FIRST_EPOCHS = 4
STALLED = 0.25
ROOM = 1 << 16
REBUILD_EPOCHS = 16
# an example is left as it is if its part of the gap is this share of the tolerance, or less
NEGLIGIBLE = 0.01


class MarkovAscent:
    """The ascent for one problem: all that stays fixed while training.

    Parameters
    ----------
    problem : Problem
        Prepared; its rows are those that are trained on.
    C : float
    scaling : {"uniform", "sibling", "subtree"}
        What each node counts in the loss.
    hierarchical : bool
        Whether a wrong node counts only under a right parent.
    edges : bool
        Whether all labelings compete with the true sets, or closed ones alone.
    of_duals : bool
        Whether the model has to be that of the dual variables.
    """

    def __init__(
        self, problem: Problem, C: float, scaling: Weighting, hierarchical: bool, edges: bool, of_duals: bool = False
    ) -> None:
        taxonomy, labels = problem.tree, problem.label_sets()
        self._of_duals = of_duals
        self.rows, self.features = arrange(problem.X, np.dtype(np.float64))
        self.tree = markov_tree(taxonomy) if taxonomy.is_tree else markov_graph(taxonomy)
        self.sets = Sets(
            labels.indptr.astype(np.int64), labels.indices.astype(np.int32), C * problem.weights,
            taxonomy.loss_weights(scaling), hierarchical, edges,
        )  # fmt: skip
        self.n_columns = taxonomy.n_nodes * (2 if edges else 1)
        self.filled = self.rows.squares > 0
        if edges and not taxonomy.is_tree:
            raise ProblemError(f"labelings=all needs a label tree, but {taxonomy.several_parents}")
        self._masses = labelings if edges else closed_sets if taxonomy.is_tree else graph_sets

    def train(self, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
        """Train, from the start or from the ``state`` of an earlier step."""
        run = self._begin() if state is None else self._resume(state)
        return ascend(_Training(self, run, tol, max_epochs, seed), tol)

    def rescaled(self, state: State, ratio: float) -> State:
        """The start at another C: the multiple of what the masses have moved that gives the largest dual value."""
        last = self._resume(state)
        A = self._zeros()
        A[:] = last.vectors()
        before = self.sets._replace(bound=self.sets.bound / ratio)
        linear = self.sums(A, last.pool, np.zeros(len(before.bound)), before).linear
        factor = best_multiple(linear, self.square_norm(A), ratio)
        visits.scale(self.tree, self.sets, ratio, factor, last.pool)
        run = self._begin()
        run.pool = last.pool
        self.rebuild(run)
        return run.step(np.nan, np.nan, converged=False).state

    def nonzero_duals(self, state: State) -> float:
        """The share of the masses, of examples that are not empty, that have moved away from the true set."""
        n = int(np.count_nonzero(self.filled)) * self.n_columns
        return float(np.asarray(state["mass_length"])[self.filled].sum() / n) if n else 0.0

    def weights(self, state: State) -> tuple[Ints, Floats]:
        """The features that some example has, and one vector a node in that order, for the rule of the best set."""
        W = np.empty((len(self.features), len(self.tree.parent)))
        run = self._resume(state)
        self._masses.to_nodes(self.tree, run.before if run.apart and run.before is not None else run.vectors(), W)
        return self.features, W

    def coefficients(self, state: State) -> Floats:
        """What each example adds to the vectors of the nodes, shape (n_samples, n_nodes)."""
        n = len(self.filled)
        alone = Rows(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n), np.ones(n))
        moved, added = np.zeros((n, self.n_columns)), np.empty((n, len(self.tree.parent)))
        visits.rebuild(alone, self.tree, self.sets, _pool(state), moved)
        self._masses.to_nodes(self.tree, moved, added)
        return added

    def sums(self, A: Floats, pool: Coefficients, gaps: Floats, sets: Sets | None = None) -> Sums:
        """The sums over all examples at the vectors A; ``gaps`` takes each example's part of the duality gap."""
        found: Sums = visits.certify(self.rows, self.tree, self.sets if sets is None else sets, A, pool, gaps)
        return found

    def square_norm(self, A: Floats) -> float:
        """``|w|^2`` of the vectors A."""
        return float(self._masses.square_norm(self.tree, A))

    def _zeros(self) -> Floats:
        return zero_weights(len(self.features), self.n_columns, np.dtype(np.float64))

    def _begin(self) -> "_Run":
        n = len(self.filled)
        pool = coefficients.empty(n, max(ROOM, 4 * self.n_columns))
        return _Run(self._zeros(), None, None, pool, Epoch.zeroth(n), np.zeros(1, VISITED))

    def _resume(self, state: State) -> "_Run":
        def aligned(name: str) -> Floats:
            W = self._zeros()
            W[:] = state[name]
            return W

        accelerated = int(state["accelerated"])
        V, before = (aligned("V"), aligned("before")) if accelerated else (None, None)
        visited = np.array(state["visited"]).view(VISITED)
        best_dual, last_gap, last_primal = (float(state[name]) for name in ("best_dual", "last_gap", "last_primal"))
        return _Run(
            aligned("E"), V, before, _pool(state), Epoch.from_state(state), visited, best_dual, last_gap, last_primal,
            accelerated, int(state.get("apart", 0)),
        )  # fmt: skip

    def visit_slice(self, run: "_Run", stop: int, negligible: float) -> None:
        """Visit on up to a position of the epoch's order."""
        epoch = run.epoch
        while epoch.position < stop:
            run.pool = coefficients.with_capacity(run.pool, max(ROOM, 2 * self.n_columns))
            epoch.position = visits.visit(
                self.rows, self.tree, self.sets, 1.0 / (1.0 + run.kappa), negligible, epoch.order, epoch.position,
                stop, run.E, run.pool, epoch.unchanged, run.visited[0],
            )  # fmt: skip

    def rebuild(self, run: "_Run") -> None:
        """E afresh from the dual variables."""
        visits.rebuild(self.rows, self.tree, self.sets, run.pool, run.E)
        if run.V is not None:
            run.E += run.kappa * run.V
            run.E /= 1.0 + run.kappa

    def certificate(self, run: "_Run", gaps: Floats) -> tuple[float, float]:
        """Primal value of A, or of E, and the best lower bound so far; ``gaps`` takes each example's part there."""
        A, run.apart = run.E, int(run.accelerated > 0 and not self._of_duals)
        if run.accelerated:
            A = self._zeros()
            A[:] = run.vectors()
        point, half = run.E if run.apart else A, 0.5 * self.square_norm(A)
        found = self.sums(point, run.pool, gaps)
        primal = 0.5 * self.square_norm(point) + found.losses + found.constant
        dual = found.linear - half + found.constant
        if dual - primal > 1e-9 * abs(primal):
            raise ProblemError(imprecise("weights", primal, dual))
        run.visited["violation"] = found.violation
        run.best_dual, run.last_primal = max(run.best_dual, dual), primal
        return primal, min(run.best_dual, primal)


@dataclass
class _Run:
    """What changes while training: the state of a step.

    E is what the scores are made of, (n_features, n_columns). Before the acceleration it is A itself; later V and the
    E of the last outer step, ``before``, are there too, and ``accelerated`` is the epoch in which it began. ``apart``
    is 1 at a step whose objective is that of ``before``, not of A.
    """

    E: Floats
    V: Floats | None
    before: Floats | None
    pool: Coefficients
    epoch: Epoch
    visited: NDArray[np.void]
    best_dual: float = -np.inf
    last_gap: float = np.inf
    last_primal: float = 0.0
    accelerated: int = 0
    apart: int = 0

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        arrays = self.epoch.state() | {f"mass_{name}": array for name, array in self.pool._asdict().items()}
        arrays |= {"E": self.E, "visited": self.visited.view(np.float64), "accelerated": np.array(self.accelerated)}
        arrays["apart"] = np.array(self.apart)
        arrays |= {name: np.array(getattr(self, name)) for name in ("best_dual", "last_gap", "last_primal")}
        if self.V is not None and self.before is not None:
            arrays |= {"V": self.V, "before": self.before}
        return Step(self.epoch.number, primal, dual, float(self.visited["violation"][0]), converged, arrays)

    @property
    def kappa(self) -> float:
        return KAPPA if self.accelerated else 0.0

    def vectors(self) -> Floats:
        """A, the vectors of the dual variables."""
        return self.E if self.V is None else (1.0 + self.kappa) * self.E - self.kappa * self.V

    def is_certified_now(self, max_epochs: int) -> bool:
        """Whether this epoch ends with a certificate."""
        return (
            not self.accelerated
            or (self.epoch.number - self.accelerated) % OUTER_EPOCHS == 0
            or self.epoch.number == max_epochs
        )

    def accelerate(self, gap: float) -> None:
        """Begin the acceleration, or move its point V, once the gap falls slowly."""
        last, self.last_gap = self.last_gap, gap
        if self.V is not None and self.before is not None:
            root = np.sqrt(1.0 / (1.0 + KAPPA))
            ahead = self.E + (1.0 - root) / (1.0 + root) * (self.E - self.before)
            self.before[:] = self.E
            self.E += KAPPA / (1.0 + KAPPA) * (ahead - self.V)
            self.V[:] = ahead
        elif self.epoch.number >= FIRST_EPOCHS and gap > (1.0 - STALLED) * last:
            self.accelerated = self.epoch.number
            self.V, self.before = self.E.copy(), self.E.copy()


class _Training:
    """The ascent on one problem."""

    def __init__(self, ascent: MarkovAscent, run: _Run, tol: float, max_epochs: int, seed: int) -> None:
        self.ascent, self.run, self.tol, self.max_epochs, self.seed = ascent, run, tol, max_epochs, seed
        self.blocks, self.gaps = np.flatnonzero(ascent.filled).astype(np.int32), np.zeros(len(ascent.filled))
        self.costs = (8.0 + np.diff(ascent.rows.indptr)) * ascent.n_columns

    @property
    def epoch(self) -> int:
        return self.run.epoch.number

    @property
    def epoch_over(self) -> bool:
        return self.run.epoch.is_over

    def begin_epoch(self) -> None:
        self.run.epoch.begin_next(self.blocks, self.seed)
        self.run.visited[:], self.run.apart = 0, 0

    def advance(self) -> None:
        negligible = NEGLIGIBLE * self.tol * self.run.last_primal / len(self.gaps)
        stop = self.run.epoch.end_of_slice(self.costs, epochs.SLICE_OPERATIONS)
        self.ascent.visit_slice(self.run, stop, negligible)

    def certifies(self) -> bool:
        if self.epoch % REBUILD_EPOCHS == 0:
            self.ascent.rebuild(self.run)
        return self.run.is_certified_now(self.max_epochs)

    def certify(self) -> Certificate:
        return Certificate(*self.ascent.certificate(self.run, self.gaps))

    def learn(self, primal: float, gap: float) -> None:
        self.run.epoch.unchanged[self.gaps > 0.1 * self.tol * primal / len(self.gaps)] = 0
        self.run.accelerate(gap)

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        return self.run.step(primal, dual, converged=converged)


def _pool(state: State) -> Coefficients:
    """A copy of the dual variables of a state."""
    return Coefficients(*(np.array(state[f"mass_{name}"]) for name in Coefficients._fields))
