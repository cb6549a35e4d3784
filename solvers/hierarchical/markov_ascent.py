"""Block ascent on the dual of H-M3: the driver, its certificate and its acceleration.

An epoch visits every awake example once, in a fresh random order. Where that stalls, outer steps pull the weights
towards a point V that runs ahead of them (Catalyst, Lin, Mairal and Harchaoui 2015): the scores are then those of
``(A + kappa V) / (1 + kappa)``, A being the vectors of the dual variables. The certificate is always that of A, and so
one of the original objective.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.core.base import State, Step, relative_gap
from solvers.core.dual_variables import best_multiple
from solvers.core.problem import Problem
from solvers.hierarchical import marginal_blocks, order_blocks
from solvers.hierarchical.order_blocks import Forest, Sets
from solvers.labels.taxonomy import Weighting
from solvers.numerics import coefficients
from solvers.numerics.coefficients import Coefficients
from solvers.numerics.orders import awake
from solvers.numerics.rows import Rows, arrange, weights

KAPPA = 4.0
# outer steps come after so many epochs, once an epoch has taken off less than this share of the gap
OUTER_EPOCHS = 2
FIRST_EPOCHS = 4
STALLED = 0.25
SLICE_OPERATIONS = 1 << 27
ROOM = 1 << 16
REBUILD_EPOCHS = 16
TRIFLE = 0.01


@dataclass(frozen=True)
class Task:
    """All that stays fixed while training."""

    kernels: ModuleType
    rows: Rows
    features: NDArray[np.int64]
    forest: Forest
    sets: Sets
    n_columns: int
    filled: NDArray[np.bool_]
    costs: NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, C: float, scaling: Weighting, hierarchical: bool, labelings: str) -> "Task":
        tree, labels = problem.taxonomy, problem.label_sets()
        assert tree is not None
        rows, features = arrange(problem.X, np.dtype(np.float64))
        children = np.diff(tree.first_child)[1:]
        forest = Forest(tree.parent, tree.first_child, 2.0 * (1.0 + children))
        sets = Sets(
            labels.indptr.astype(np.int64), labels.indices.astype(np.int32), C * problem.weights,
            tree.loss_weights(scaling), hierarchical,
        )  # fmt: skip
        kernels = order_blocks if labelings == "consistent" else marginal_blocks
        n_columns = tree.n_nodes * (1 if labelings == "consistent" else 2)
        costs = (8.0 + np.diff(rows.indptr)) * n_columns
        return cls(kernels, rows, features, forest, sets, n_columns, rows.squares > 0, costs)


def ascend(task: Task, tol: float, max_epochs: int, seed: int, state: State | None) -> Iterator[Step]:
    """Train, from the start or from the ``state`` of an earlier step."""
    run = _Run.begin(task) if state is None else _Run.of_state(task, state)
    gaps, examples = np.zeros(len(task.filled)), np.flatnonzero(task.filled).astype(np.int32)
    while True:
        if run.position == len(run.order):
            if run.epoch == max_epochs:
                return
            run.epoch, run.tally[:] = run.epoch + 1, 0.0
            rng = np.random.default_rng([seed, run.epoch])
            run.order = rng.permutation(awake(examples, run.rest, run.epoch))
            run.position = 0
        run.advance(task, TRIFLE * tol)
        if run.position < len(run.order):
            yield run.step(np.nan, np.nan, converged=False)
            continue
        if run.epoch % REBUILD_EPOCHS == 0:
            run.refresh(task)
        if not run.is_due(max_epochs):
            yield run.step(np.nan, np.nan, converged=False)
            continue
        primal, dual = run.certificate(task, gaps)
        gap = relative_gap(primal, dual)
        run.rest[gaps > 0.1 * tol * primal / len(gaps)] = 0
        run.steer(gap)
        yield run.step(primal, dual, converged=gap <= tol)
        if gap <= tol:
            return


def rescaled(task: Task, state: State, ratio: float) -> State:
    """The start at another C: the multiple of what the masses have moved that gives the largest dual value."""
    last = _Run.of_state(task, state)
    A = weights(len(task.features), task.n_columns, np.dtype(np.float64))
    A[:] = last.vectors()
    before = task.sets._replace(bound=task.sets.bound / ratio)
    _, linear, _, _ = task.kernels.certify(task.rows, task.forest, before, A, last.pool, np.zeros(len(before.bound)))
    factor = best_multiple(linear, float(task.kernels.square(task.forest, A)), ratio)
    order_blocks.scale(task.forest, task.sets, ratio, factor, task.kernels is order_blocks, last.pool)
    run = _Run.begin(task)
    run.pool = last.pool
    run.refresh(task)
    return run.step(np.nan, np.nan, converged=False).state


def share_of_wrong(task: Task, state: State) -> float:
    """The share of the masses, of examples that are not empty, that have moved away from the true set."""
    n = int(np.count_nonzero(task.filled)) * task.n_columns
    return float(np.asarray(state["mass_length"])[task.filled].sum() / n) if n else 0.0


def node_weights(task: Task, state: State) -> NDArray[np.float64]:
    """One vector a node, shape (n_used, n_nodes), as :class:`SubtreeModel` takes them for the best set."""
    run = _Run.of_state(task, state)
    W = np.empty((len(task.features), len(task.forest.parent)))
    task.kernels.to_nodes(task.forest, run.vectors(), W)
    return W


def node_coefficients(task: Task, state: State) -> NDArray[np.float64]:
    """What each example adds to the vectors of the nodes, shape (n_samples, n_nodes)."""
    n, m = len(task.filled), len(task.forest.parent)
    pool = Coefficients(*(np.asarray(state[f"mass_{name}"]) for name in Coefficients._fields))
    alone = Rows(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n), np.ones(n))
    moved, coefficients = np.zeros((n, task.n_columns)), np.empty((n, m))
    task.kernels.rebuild(alone, task.forest, task.sets, pool, moved)
    task.kernels.to_nodes(task.forest, moved, coefficients)
    return coefficients


@dataclass
class _Run:
    """What changes while training: the state of a step.

    E is what the scores are made of, (n_features, n_columns). Without a pull it is A itself, else V and the E of the
    last outer step, ``before``, are there too.
    """

    E: NDArray[np.float64]
    V: NDArray[np.float64] | None
    before: NDArray[np.float64] | None
    pool: Coefficients
    rest: NDArray[np.uint8]
    order: NDArray[np.int32]
    tally: NDArray[np.float64]
    best: NDArray[np.float64]
    epoch: int
    position: int
    pulled: int

    @classmethod
    def begin(cls, task: Task) -> "_Run":
        n = len(task.filled)
        E = weights(len(task.features), task.n_columns, np.dtype(np.float64))
        pool = coefficients.empty(n, max(ROOM, 4 * task.n_columns))
        # best: the best dual value, the last gap, the last primal value
        best = np.array([-np.inf, np.inf, 0.0])
        return cls(E, None, None, pool, np.zeros(n, np.uint8), np.empty(0, np.int32), np.zeros(2), best, 0, 0, 0)

    @classmethod
    def of_state(cls, task: Task, state: State) -> "_Run":
        def aligned(name: str) -> NDArray[np.float64]:
            W = weights(len(task.features), task.n_columns, np.dtype(np.float64))
            W[:] = state[name]
            return W

        epoch, position, pulled = (int(value) for value in state["clock"])
        pool = Coefficients(*(np.array(state[f"mass_{name}"]) for name in Coefficients._fields))
        rest, order, tally, best = (np.array(state[name]) for name in ("rest", "order", "tally", "best"))
        V, before = (aligned("V"), aligned("before")) if pulled else (None, None)
        return cls(aligned("E"), V, before, pool, rest, order, tally, best, epoch, position, pulled)

    def step(self, primal: float, dual: float, *, converged: bool) -> Step:
        """The step at this point."""
        arrays: dict[str, NDArray[Any]] = {
            "E": self.E,
            "rest": self.rest,
            "order": self.order,
            "tally": self.tally,
            "best": self.best,
            "clock": np.array([self.epoch, self.position, self.pulled]),
        }
        if self.V is not None and self.before is not None:
            arrays |= {"V": self.V, "before": self.before}
        arrays |= {f"mass_{name}": array for name, array in self.pool._asdict().items()}
        return Step(self.epoch, primal, dual, float(self.tally[1]), converged, arrays)

    @property
    def kappa(self) -> float:
        return KAPPA if self.pulled else 0.0

    def advance(self, task: Task, share: float) -> None:
        """Visit on to the end of the epoch, or until a slice of work is done."""
        work = np.cumsum(task.costs[self.order[self.position :]])
        stop = self.position + min(len(work), 1 + int(np.searchsorted(work, SLICE_OPERATIONS)))
        trifle = share * float(self.best[2]) / len(task.filled)
        while self.position < stop:
            self.pool = coefficients.with_room(self.pool, max(ROOM, 2 * task.n_columns))
            self.position = task.kernels.visit(
                task.rows, task.forest, task.sets, 1.0 / (1.0 + self.kappa), trifle, self.order, self.position, stop,
                self.E, self.pool, self.rest, self.tally,
            )  # fmt: skip

    def vectors(self) -> NDArray[np.float64]:
        """A, the vectors of the dual variables."""
        return self.E if self.V is None else (1.0 + self.kappa) * self.E - self.kappa * self.V

    def refresh(self, task: Task) -> None:
        """E afresh from the dual variables."""
        task.kernels.rebuild(task.rows, task.forest, task.sets, self.pool, self.E)
        if self.V is not None:
            self.E += self.kappa * self.V
            self.E /= 1.0 + self.kappa

    def is_due(self, max_epochs: int) -> bool:
        """Whether this epoch ends with a certificate."""
        return not self.pulled or (self.epoch - self.pulled) % OUTER_EPOCHS == 0 or self.epoch == max_epochs

    def certificate(self, task: Task, gaps: NDArray[np.float64]) -> tuple[float, float]:
        """Primal value of A and the best lower bound so far; ``gaps`` takes each example's part."""
        A = weights(len(task.features), task.n_columns, np.dtype(np.float64)) if self.pulled else self.E
        if self.pulled:
            A[:] = self.vectors()
        losses, linear, constant, violation = task.kernels.certify(
            task.rows, task.forest, task.sets, A, self.pool, gaps
        )
        half = 0.5 * task.kernels.square(task.forest, A)
        primal, dual = half + losses + constant, linear - half + constant
        if dual - primal > 1e-9 * abs(primal):
            raise FloatingPointError(f"dual {dual} above primal {primal}: the weights have lost their precision")
        self.tally[1] = violation
        self.best[0], self.best[2] = max(self.best[0], dual), primal
        return primal, min(float(self.best[0]), primal)

    def steer(self, gap: float) -> None:
        """Pull, or move the point that pulls, once the gap falls slowly."""
        last, self.best[1] = float(self.best[1]), gap
        if self.pulled:
            assert self.V is not None
            assert self.before is not None
            root = np.sqrt(1.0 / (1.0 + KAPPA))
            ahead = self.E + (1.0 - root) / (1.0 + root) * (self.E - self.before)
            self.before[:] = self.E
            self.E += KAPPA / (1.0 + KAPPA) * (ahead - self.V)
            self.V[:] = ahead
        elif self.epoch >= FIRST_EPOCHS and gap > (1.0 - STALLED) * last:
            self.pulled = self.epoch
            self.V, self.before = self.E.copy(), self.E.copy()
